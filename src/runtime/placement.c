/* SPDX-License-Identifier: Apache-2.0 */
/* Which results have places; see placement.h. */
#include "runtime/placement.h"

#include "base/vec.h"
#include "runtime/caller_memory.h"
#include "runtime/control.h"
#include "runtime/lifetime.h"
#include "runtime/reuse.h"

/* ---- Who is placed --------------------------------------------------------------------------- */

struct analysis {
    struct plan *plan;
    struct lifetimes lifetimes;
    struct reuse reuse;
    bool *given;       /* per plan->outputs: in memory that the caller may give */
    uint32_t *entries; /* per plan->outputs: index into `placed`, plus 1 */
    uint32_t *updates; /* per plan->outputs: the output whose memory it goes on using, plus 1 */
    struct plan_placed *placed; /* found so far, in reverse */
    uint32_t n_placed;
};

static const struct lifetime *lifetime_of(const struct analysis *a, const struct ir_value *value)
{
    return &a->lifetimes.values[value->id];
}

/* Of a loop: what its body is told, if that is read in the same iteration alone. */
static void lend_scalars(const struct analysis *a, const struct step *loop)
{
    struct step *lender = (struct step *)loop; /* the plan's, which is being made */
    for (uint32_t i = 0; i < 2; i++) {
        const struct lifetime *life = lifetime_of(a, loop->blocks[0]->block->params[i]);
        lender->lends[i] = !life->escapes && !life->loop;
    }
}

/* The entry whose place a result has, which is placed. */
static struct plan_placed *place_of(const struct analysis *a, uint32_t output)
{
    while (a->updates[output])
        output = a->updates[output] - 1;
    return &a->placed[a->entries[output] - 1];
}

/* Stretches an entry over that of what takes its place. */
static void join_place(struct analysis *a, const struct ir_value *value, struct plan_placed *placed)
{
    const struct ir_value *next = a->reuse.next[value->id];
    const struct step *step =
        next ? a->lifetimes.steps[a->lifetimes.step_of_op[next->op->id]] : NULL;
    const uint32_t output = step ? step->first_output + next->index : 0;
    if (!step || !a->entries[output])
        return;
    const struct plan_placed *taker = place_of(a, output);
    placed->last = taker->last > placed->last ? taker->last : placed->last;
    a->updates[taker->output] = placed->output + 1;
}

static void place_result(struct analysis *a, const struct step *step, uint32_t i)
{
    const struct ir_value *value = &step->op->results[i];
    const struct lifetime *life = lifetime_of(a, value);
    const bool shares = step->kernel
                            ? step->kernel->hands_on || lifetime_is_view(&a->lifetimes, value)
                            : !control_stacks(step, i) || plan_space(a->plan, value) != SPACE_HOST;
    if (life->escapes || shares || a->given[step->first_output + i] ||
        !a->plan->told[step->first_output + i])
        return;
    struct plan_placed *placed = &a->placed[a->n_placed++];
    *placed = (struct plan_placed){
        .output = step->first_output + i,
        .first = lifetime_first(life, step),
        .last = life->last,
        .leaves = life->leaves,
        .exit = life->exit,
        .several = life->several,
        .type = value->type,
        .space = plan_space(a->plan, value),
        .turns = lifetime_takes_turns(life, step) ? life->loop : NULL,
    };
    join_place(a, value, placed);
    a->entries[placed->output] = a->n_placed;
}

/* Of those that run on the host: a device's own memory is not asked for on the way. */
static void place_scratch(struct analysis *a, const struct step *step)
{
    const struct plan *plan = a->plan;
    if ((plan->spaces.on_device && plan->spaces.on_device[step->op->id]) ||
        (!step->kernel && !ir_op_is(step->op, IR_OP_Loop)))
        return;
    a->placed[a->n_placed++] = (struct plan_placed){
        .output = SLOT_NONE,
        .scratch = step->index,
        .first = lifetime_step_first(step),
        .last = step->index,
        .space = SPACE_HOST,
    };
}

/* In reverse, so that users come before what they use. */
static void place_results(struct analysis *a)
{
    for (uint32_t i = a->plan->n_steps; i-- > 0;) {
        const struct step *step = a->lifetimes.steps[i];
        place_scratch(a, step);
        for (uint32_t k = step->n_outputs; k-- > 0;)
            if (step->op->results[k].wanted)
                place_result(a, step, k);
        if (ir_op_is(step->op, IR_OP_Loop))
            lend_scalars(a, step);
    }
}

/* By `first`, and in the steps' order where that is equal: a counting sort of what was found in
 * reverse. */
static struct plan_placed *sort_placed(struct analysis *a, struct arena *scratch)
{
    const struct plan_placed *found = a->placed;
    const size_t n = a->n_placed;
    struct plan_placed *sorted = ARENA_ARRAY(&a->plan->arena, struct plan_placed, n);
    uint32_t *next = ARENA_ARRAY(scratch, uint32_t, (size_t)a->plan->n_steps + 2); /* by `first` */
    if (!sorted || !next)
        return NULL;
    for (size_t i = 0; i < n; i++)
        next[found[i].first + 1]++;
    for (uint32_t first = 1; first <= a->plan->n_steps; first++)
        next[first] += next[first - 1];
    for (size_t i = n; i-- > 0;)
        sorted[next[found[i].first]++] = found[i];
    return sorted;
}

/* ---- Parts of what is joined ----------------------------------------------------------------- */

/* The entry of a result, whose place nothing had before and nothing has in turns or outside. */
static struct plan_placed *own_place(const struct analysis *a, uint32_t output)
{
    struct plan_placed *placed = a->entries[output] ? place_of(a, output) : NULL;
    return placed && !placed->turns && !placed->leaves ? placed : NULL;
}

/* Operand i of the step, if it may be computed in the place of the result; false: it may not. The
 * entries are told by outputs. */
static bool find_part(const struct analysis *a, const struct step *step, uint32_t i,
                      struct plan_part *part)
{
    const struct ir_value *memory = a->reuse.parts[step->first_input + i];
    const struct step *maker =
        memory ? a->lifetimes.steps[a->lifetimes.step_of_op[memory->op->id]] : NULL;
    const struct plan_placed *own =
        maker ? own_place(a, maker->first_output + memory->index) : NULL;
    const struct plan_placed *whole = own ? own_place(a, step->first_output) : NULL;
    if (!whole || whole->output != step->first_output || own->last != step->index)
        return false;
    *part = (struct plan_part){
        .entry = own->output, .whole = whole->output, .step = step, .operand = i};
    return true;
}

/* Numbers them, once it is known which entry (per plan->outputs) a place has. */
static tssa_status *keep_parts(struct analysis *a, struct plan_placed *placed,
                               const uint32_t *entry)
{
    struct plan *plan = a->plan;
    VEC(struct plan_part) parts = VEC_INIT(plan->arena.allocator);
    struct plan_part part;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const struct step *step = a->lifetimes.steps[s];
        for (uint32_t i = 0; i < step->n_inputs; i++) {
            if (!find_part(a, step, i, &part))
                continue;
            part.entry = entry[part.entry];
            part.whole = entry[part.whole];
            if (!vec_push(&parts, part)) {
                vec_free(&parts);
                return status_out_of_memory();
            }
            placed[part.entry].part = (uint32_t)parts.count;
        }
    }
    plan->n_parts = (uint32_t)parts.count;
    if (plan->n_parts)
        plan->parts = arena_copy(&plan->arena, parts.data, parts.count * sizeof part);
    vec_free(&parts);
    return plan->n_parts && !plan->parts ? status_out_of_memory() : NULL;
}

/* ---- What the plan keeps --------------------------------------------------------------------- */

static tssa_status *keep_placed(struct analysis *a, struct arena *scratch)
{
    struct plan *plan = a->plan;
    struct plan_placed *placed = sort_placed(a, scratch);
    uint32_t *entry = ARENA_ARRAY(scratch, uint32_t, plan->n_outputs);
    if (!placed || !entry)
        return status_out_of_memory();
    plan->placed = placed;
    plan->n_placed = a->n_placed;
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        if (placed[i].output == SLOT_NONE)
            continue;
        uint32_t updated = a->updates[placed[i].output];
        entry[placed[i].output] = i;
        placed[i].back = updated ? i - entry[updated - 1] : 0;
    }
    return a->reuse.joins ? keep_parts(a, placed, entry) : NULL;
}

/* The entries that take turns in a loop go to `turns`, if that is there; how many they are. */
static uint32_t list_turns(const struct plan *plan, const struct step *loop, uint32_t *turns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (plan->placed[i].turns == loop) {
            if (turns)
                turns[n] = i;
            n++;
        }
    return n;
}

/* Tells each loop which these are. The steps are the plan's, which is being made. */
static tssa_status *keep_turns(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        struct step *loop = (struct step *)plan->placed[i].turns;
        if (!loop || loop->turns)
            continue;
        const uint32_t n = list_turns(plan, loop, NULL);
        uint32_t *turns = ARENA_ARRAY(&plan->arena, uint32_t, n);
        TRY_ALLOC(turns);
        loop->n_turns = list_turns(plan, loop, turns);
        loop->turns = turns;
    }
    return NULL;
}

tssa_status *placement_analyse(struct plan *plan, struct arena *scratch)
{
    struct analysis a = {.plan = plan};
    a.given = ARENA_ARRAY(scratch, bool, plan->n_outputs);
    a.entries = ARENA_ARRAY(scratch, uint32_t, plan->n_outputs);
    a.updates = ARENA_ARRAY(scratch, uint32_t, plan->n_outputs);
    if (!a.given || !a.entries || !a.updates)
        return status_out_of_memory();
    TRY(lifetimes_find(&a.lifetimes, plan, scratch));
    TRY(reuse_find(&a.lifetimes, scratch, &a.reuse));
    TRY(caller_memory_results(plan, &a.reuse, a.given));
    a.placed = allocator_alloc(plan->arena.allocator,
                               ((size_t)plan->n_outputs + plan->n_steps) * sizeof *a.placed);
    TRY_ALLOC(a.placed);
    place_results(&a);
    tssa_status *status = keep_placed(&a, scratch);
    allocator_free(plan->arena.allocator, a.placed);
    TRY(status);
    TRY(caller_memory_leaving(plan, scratch));
    return keep_turns(plan);
}
