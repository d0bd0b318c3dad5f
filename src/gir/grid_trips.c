/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of which each iteration goes through stages: a block has a group and does all iterations of
 * it, between which its threads meet as they do between stages, so that the groups' axis lies
 * outside of the loop; see grid_maker.h.
 *
 * What the loop carries lies in the memory of its result, which begins as what the loop is given
 * for it. An iteration stores a region of that (ir/update.h), or all of it, and then whoever needs
 * what was there before is in a stage before.
 */
#include "gir/grid_maker.h"
#include "gir/iteration.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"

/* Why iterations cannot leave what the result is where they read it; NULL: they can. */
static const char *refuse_result(const struct grid_maker *m, uint32_t result)
{
    const uint32_t carried = grid_result_of_loop(m, result);
    const struct ir_value *value = grid_result_value(m, result);
    uint32_t operand;
    int64_t count;
    if (carried == GIR_NONE || carried >= ir_loop_carried(m->loop))
        return "iterations stack what they compute";
    if (!value || !value->op || !grid_returned(m, result))
        return "what it carries is not what an iteration computes for it";
    if (!grid_carried_param(m, carried) || !grid_count_elements(value->type, &count))
        return "the shape of what it carries is not known";
    return grid_begins_as(m, result, &operand)
               ? NULL
               : "what it carries begins as what something else needs";
}

bool grid_begin_trips(struct grid_maker *m)
{
    for (uint32_t i = 0; i < m->fuse->n_results; i++) {
        const char *why = refuse_result(m, i);
        if (why)
            grid_refuse(m, why);
    }
    if (m->trips)
        m->grid->trips = grid_told(m, m->trips);
    else
        m->grid->trips_operand = 1 + ir_operand(m->loop, 0)->index;
    if (m->trips && !m->grid->trips)
        grid_refuse(m, "how many iterations there are is not known");
    return !m->maker.why;
}

uint32_t grid_make_trip(struct grid_maker *m)
{
    const uint32_t trip =
        gir_make(&m->maker, (struct gir_code){.op = GIR_TRIP, .type = TSSA_INT64});
    grid_know_below(m, trip, m->trips);
    return trip;
}

/* The fuse op's result that is what the loop carries as this. */
static uint32_t result_of(const struct grid_maker *m, uint32_t carried)
{
    uint32_t i = 0;
    while (i < m->fuse->n_results && grid_result_of_loop(m, i) != carried)
        i++;
    return i < m->fuse->n_results && m->fuse->results[i].wanted ? i : GIR_NONE;
}

uint32_t grid_left(struct grid_maker *m, uint32_t carried, const struct grid_place *place)
{
    const uint32_t result = result_of(m, carried);
    if (result == GIR_NONE)
        return grid_refuse(m, "nobody wants what it carries");
    if (m->part->stage >= grid_stage_of(m, grid_stored_value(m, result)))
        return grid_refuse(m, "it needs what it carries when the next of that is stored");
    return grid_look_up(m, GIR_OF_RESULT, result, grid_carried_param(m, carried)->type, place);
}
