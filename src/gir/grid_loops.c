/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a loop of which an iteration is one kernel (ir_fuse_loop): grids in which each thread has a
 * column and walks the iterations; see grid_maker.h.
 *
 * The space of a part is that of what an iteration computes for its results. A state is made where
 * an element of what the loop carries is wanted first, for where that is, and what it is next is
 * computed there. So a thread may carry elements that are another one's as well, if they are few: a
 * number that all of them carry, or the other parts of what it rotates.
 */
#include <string.h>

#include "gir/grid_maker.h"
#include "gir/iteration.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"

/* ---- The loop -------------------------------------------------------------------------------- */

static const struct ir_block *block_of(const struct grid_maker *m)
{
    return m->loop->blocks[0];
}

/* Axis of a Scan's list, of a tensor of this rank. */
static int64_t axis_of(const struct grid_maker *m, const char *name, uint32_t index, int rank)
{
    const int64_t axis = gir_loop_number(m->loop, name, index);
    return axis < 0 ? axis + rank : axis;
}

/* So many iterations there are, by what the loop is handed, or none where it is negative; NULL: an
 * operand says so, or nobody. */
static const struct dim *find_trips(const struct grid_maker *m)
{
    const struct ir_op *loop = m->loop;
    if (ir_op_is(loop, IR_OP_Loop)) {
        const struct ir_known *known = ir_operand(loop, 0)->known;
        return known && known->count == 1 ? known->elements[0] : NULL;
    }
    const struct ir_value *first = ir_operand(loop, ir_loop_carried(loop));
    const struct ir_type *type = first ? first->type : NULL;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 1)
        return NULL;
    const int64_t axis = axis_of(m, "scan_input_axes", 0, type->rank);
    return axis >= 0 && axis < type->rank ? type->dims[axis] : NULL;
}

bool grid_begin_loop(struct grid_maker *m)
{
    const bool loops = ir_op_is(m->loop, IR_OP_Loop), counted = gir_loop_is_counted(m->loop);
    m->trips = counted ? find_trips(m) : NULL;
    if (!counted)
        grid_refuse(m, "a condition ends the loop");
    else if (!loops && m->loop->version < 9)
        grid_refuse(m, "it scans batches");
    else if (!loops && !m->trips)
        grid_refuse(m, "how many iterations there are is not known");
    return !m->maker.why;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

uint32_t grid_result_of_loop(const struct grid_maker *m, uint32_t index)
{
    const struct ir_value *value = ir_operand(ir_block_return(ir_fuse_body(m->fuse)), index);
    return value && value->op == m->loop ? value->index : GIR_NONE;
}

bool grid_loop_space(struct grid_maker *m, uint32_t index, struct gir_grid_part *part)
{
    const uint32_t result = grid_result_of_loop(m, index);
    const struct ir_value *next = result == GIR_NONE ? NULL : gir_loop_next(m->loop, result);
    const struct ir_type *type = next ? next->type : NULL;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 0 || type->rank == TSSA_MAX_RANK)
        return false;
    part->rank = 1 + type->rank;
    part->column = 0;
    part->dims[0] = m->trips;
    part->trips = m->trips ? 0 : 1 + ir_operand(m->loop, 0)->index;
    for (int i = 0; i < type->rank; i++)
        part->dims[1 + i] = type->dims[i];
    return true;
}

/* Of a Loop. */
static uint32_t number_of_trips(struct grid_maker *m)
{
    const struct ir_value *count = ir_operand(m->loop, 0);
    struct grid_place place = {0};
    if (m->trips)
        return grid_dim(m, m->trips);
    if (count->type->kind != TYPE_TENSOR || count->type->rank < 0)
        return grid_refuse(m, "the shape of what it reads is not known");
    place.rank = count->type->rank;
    for (int i = 0; i < place.rank; i++)
        place.at[i] = grid_constant(m, 0);
    return grid_evaluate(m, count, &place);
}

uint32_t grid_loop_runs(struct grid_maker *m)
{
    if (m->trips && m->trips->low > 0)
        return GIR_NONE;
    return grid_test(m, SCALAR_GT, number_of_trips(m), grid_constant(m, 0));
}

void grid_loop_part(struct grid_maker *m, uint32_t row, uint32_t position)
{
    const struct gir_grid_part *part = m->part;
    m->row = row;
    m->n_states = 0;
    grid_know_below(m, row, m->trips);
    grid_know_below(m, position, grid_count(m, part->dims + 1, part->rank - 1));
    grid_unflatten(m, position, part->rank - 1, part->dims + 1, &m->space);
}

/* ---- States ---------------------------------------------------------------------------------- */

bool grid_varies(const struct grid_maker *m, uint32_t step)
{
    bool each[GIR_MAX_CODES];
    for (uint32_t i = 0; i <= step; i++) {
        const struct gir_code *code = &m->maker.codes[i];
        each[i] = code->op == GIR_ROW || code->op == GIR_STATE;
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            each[i] |= each[code->operands[k]];
    }
    return each[step];
}

static bool same_place(const struct grid_place *a, const struct grid_place *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof *a->at) == 0;
}

const struct ir_value *grid_carried_param(const struct grid_maker *m, uint32_t carried)
{
    const struct ir_value *param = block_of(m)->params[ir_loop_param(m->loop, carried)];
    const struct ir_type *type = param->type;
    const bool known = type->kind == TYPE_TENSOR && type->rank >= 0;
    return known && gir_has_dims(gir_loop_next(m->loop, carried), type) &&
                   gir_has_dims(ir_operand(m->loop, ir_loop_operand(m->loop, carried)), type)
               ? param
               : NULL;
}

/* May there be a state of it there? */
static bool stays(const struct grid_maker *m, const struct grid_place *place)
{
    bool all = m->n_states < GRID_MOST_STATES;
    for (int i = 0; all && i < place->rank; i++)
        all = !grid_varies(m, place->at[i]);
    return all;
}

static uint32_t begin_state(struct grid_maker *m, const struct ir_value *param, uint32_t carried,
                            const struct grid_place *place)
{
    const struct ir_value *begin = ir_operand(m->loop, ir_loop_operand(m->loop, carried));
    const uint32_t active = m->active;
    m->active = GIR_NONE;
    const uint32_t first = grid_element(m, grid_evaluate(m, begin, place), param->type->dtype);
    m->active = active;
    if (m->maker.why)
        return 0;
    return gir_make(&m->maker, (struct gir_code){.op = GIR_STATE,
                                                 .type = m->maker.codes[first].type,
                                                 .operands = {first},
                                                 .bits = m->n_states});
}

/* An element of what the loop carries. */
static uint32_t state(struct grid_maker *m, uint32_t carried, const struct grid_place *place)
{
    for (uint32_t i = 0; i < m->n_states; i++)
        if (m->states[i].carried == carried && same_place(&m->states[i].place, place))
            return m->states[i].step;
    const struct ir_value *param = grid_carried_param(m, carried);
    if (!param || param->type->rank != place->rank)
        return grid_refuse(m, "the shape of what it carries is not known");
    if (!stays(m, place))
        return grid_refuse(m, "it reads other elements of what it carries");
    const uint32_t step = begin_state(m, param, carried, place);
    m->states[m->n_states++] = (struct grid_state){carried, step, *place};
    return step;
}

/* Is it known that the place is among those of a tensor of these dims, which is as the space is? */
static bool is_own(const struct grid_maker *m, const struct grid_place *place, int axis,
                   const struct dim *dim)
{
    const int own = m->space.rank - place->rank + axis;
    int64_t at, size;
    if (own >= 0 && place->at[axis] == m->space.at[own] && dim == m->part->dims[1 + own])
        return true;
    return grid_is_constant(m, place->at[axis], &at) && at >= 0 &&
           (dim_at_least(dim, at + 1) || (dim_is_const(dim, &size) && at < size));
}

/* Whether there is such an element: what nobody chooses may be computed all the same. */
static uint32_t is_inside(struct grid_maker *m, const struct grid_place *place,
                          const struct ir_type *type)
{
    uint32_t inside = GIR_NONE;
    for (int i = 0; i < place->rank; i++) {
        if (is_own(m, place, i, type->dims[i]))
            continue;
        inside = grid_both(m, inside, grid_test(m, SCALAR_GE, place->at[i], grid_constant(m, 0)));
        inside =
            grid_both(m, inside, grid_test(m, SCALAR_LT, place->at[i], grid_dim(m, type->dims[i])));
    }
    return inside;
}

/* Of which there may be more when it is done. */
static uint32_t next_of_state(struct grid_maker *m, uint32_t i)
{
    const struct grid_state own = m->states[i];
    const struct ir_value *next = gir_loop_next(m->loop, own.carried);
    m->active = is_inside(m, &own.place, next->type);
    const uint32_t step = grid_element(m, grid_evaluate(m, next, &own.place), next->type->dtype);
    m->active = GIR_NONE;
    return step;
}

void grid_end_loop(struct grid_maker *m)
{
    uint32_t next[GRID_MOST_STATES];
    for (uint32_t i = 0; i < m->n_states && !m->maker.why; i++)
        next[i] = next_of_state(m, i);
    for (uint32_t i = 0; i < m->n_states && !m->maker.why; i++)
        gir_make(&m->maker, (struct gir_code){.op = GIR_NEXT,
                                              .type = m->maker.codes[next[i]].type,
                                              .operands = {m->states[i].step, next[i]}});
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Where an iteration's element lies among those of all, which have one more axis; false: there is
 * no such axis. */
static bool among_all(struct grid_maker *m, const char *axes, const char *directions,
                      uint32_t index, struct grid_place *place)
{
    const int64_t axis = axis_of(m, axes, index, place->rank + 1);
    const bool reversed = gir_loop_number(m->loop, directions, index) != 0;
    if (place->rank == TSSA_MAX_RANK || axis < 0 || axis > place->rank)
        return false;
    const uint32_t last =
        reversed ? grid_add(m, grid_dim(m, m->trips), grid_constant(m, -1)) : GIR_NONE;
    grid_insert(place, axis, reversed ? grid_sub(m, last, m->row) : m->row);
    return true;
}

/* What an iteration of a Scan is handed. */
static uint32_t scanned(struct grid_maker *m, uint32_t index, const struct grid_place *place)
{
    const struct ir_value *all = ir_operand(m->loop, index);
    const uint32_t number = index - ir_loop_carried(m->loop);
    struct grid_place from = *place;
    if (!among_all(m, "scan_input_axes", "scan_input_directions", number, &from) ||
        all->type->kind != TYPE_TENSOR || all->type->rank != from.rank ||
        all->type->dims[axis_of(m, "scan_input_axes", number, from.rank)] != m->trips)
        return grid_refuse(m, "what iterations read is not known to be one of each");
    return grid_evaluate(m, all, &from);
}

/* The same value by a name around it; NULL: it has none. */
static const struct ir_value *other_name(const struct grid_maker *m, const struct ir_value *value)
{
    if (value->block == m->body)
        return ir_fuse_operand(value);
    return value->op && value->op == m->body->owner
               ? ir_operand(ir_block_return(m->body), value->index)
               : NULL;
}

const struct ir_value *grid_loop_source(const struct grid_maker *m, const struct ir_value *value)
{
    for (const struct ir_value *other; (other = other_name(m, value));)
        value = other;
    return value;
}

bool grid_is_of_iteration(const struct grid_maker *m, const struct ir_value *param)
{
    return m->loop && param->block == block_of(m);
}

uint32_t grid_iteration_param(struct grid_maker *m, const struct ir_value *param,
                              const struct grid_place *place)
{
    const uint32_t first = ir_loop_param(m->loop, 0), n = ir_loop_carried(m->loop);
    if (first && param->index == 0)
        return m->row;
    if (param->index < first)
        return grid_refuse(m, "a condition ends the loop");
    if (param->index >= first + n)
        return scanned(m, param->index, place);
    return m->walks ? state(m, param->index - first, place)
                    : grid_left(m, param->index - first, place);
}

/* ---- Results --------------------------------------------------------------------------------- */

static uint32_t last_of(struct grid_maker *m, uint32_t carried)
{
    const uint32_t step = state(m, carried, &m->space);
    if (m->maker.why)
        return 0;
    return gir_make(
        &m->maker,
        (struct gir_code){.op = GIR_LAST, .type = m->maker.codes[step].type, .operands = {step}});
}

/* Of a result that is stacked. */
static uint32_t value_of_each(struct grid_maker *m, uint32_t result, struct grid_place *place)
{
    const struct ir_value *next = gir_loop_next(m->loop, result);
    const uint32_t number = result - ir_loop_carried(m->loop);
    const uint32_t step = grid_element(m, grid_evaluate(m, next, &m->space), next->type->dtype);
    if (!among_all(m, "scan_output_axes", "scan_output_directions", number, place))
        return grid_refuse(m, "where its results are stacked is not known");
    return step;
}

void grid_loop_result(struct grid_maker *m, uint32_t index, struct grid_stored *stored)
{
    const uint32_t result = grid_result_of_loop(m, index);
    const struct ir_type *type = m->loop->results[result].type;
    struct grid_place place = m->space;
    stored->value =
        result < ir_loop_carried(m->loop) ? last_of(m, result) : value_of_each(m, result, &place);
    if (type->kind != TYPE_TENSOR || type->rank != place.rank) {
        grid_refuse(m, "the shape of what it computes is not known");
        return;
    }
    stored->number = grid_flatten(m, &place, type->dims);
    stored->arg = grid_arg(m, GIR_OF_OP, index, true, type->dtype);
    stored->inside = grid_is_sure(m, stored->arg, stored->number, type->dims, type->rank);
    stored->type = type->dtype == TSSA_BOOL ? TSSA_UINT8 : type->dtype;
}
