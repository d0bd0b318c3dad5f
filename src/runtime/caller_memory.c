/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/caller_memory.h"

#include "base/vec.h"
#include "ir/memory.h"
#include "runtime/control.h"

/* ---- Results that may be written where the caller wants them --------------------------------- */

struct finder {
    const struct plan *plan;
    const struct reuse *reuse;
    bool *given;
    VEC(struct plan_result) results;
};

static bool keeps_handles(const struct plan *plan, const struct ir_use *use)
{
    const struct ir_op *user = use->user;
    const struct ir_block *fused = plan_fused(plan, user);
    if (fused) {
        const struct ir_value *param = fused->params[use - user->operands];
        for (const struct ir_use *inner = param->uses; inner; inner = inner->next)
            if (keeps_handles(plan, inner))
                return true;
        return false;
    }
    return ir_op_is(user, IR_OP_return) || user->info->cls == IR_CLASS_CONTROL ||
           user->info->cls == IR_CLASS_SEQUENCE;
}

/* May return i of a block be computed in memory that the caller may reuse? It must not live on
 * elsewhere, be it as another result of an If. */
static bool goes_out(const struct finder *f, const struct block_plan *block, uint32_t i,
                     const struct ir_value *value)
{
    const struct ir_op *op = value->op;
    if (!block->returns[i].move || !op || op->parent != block->block ||
        value->type->dtype == TSSA_STRING || ir_is_view(value) ||
        op->info->cls == IR_CLASS_SEQUENCE ||
        (op->n_blocks && !ir_op_is(op, IR_OP_If) && !ir_op_is(op, IR_OP_fuse) &&
         !ir_op_is(op, IR_OP_Loop)))
        return false;
    uint32_t handles = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next)
        handles += keeps_handles(f->plan, use);
    return handles == 1; /* the return itself */
}

/* NULL for what is no step, as constants. */
static const struct step *step_of(const struct block_plan *block, const struct ir_op *op)
{
    for (uint32_t i = 0; i < block->n_steps; i++)
        if (block->steps[i].op == op)
            return &block->steps[i];
    return NULL;
}

/* Return i of a body is what it carries on, updated in place: so the caller's memory is it from the
 * first iteration on. */
static bool is_updated(const struct finder *f, const struct block_plan *body, uint32_t i)
{
    const struct ir_value *param = body->block->params[i + 1];
    const struct ir_value *returned = ir_operand(ir_block_return(body->block), i);
    return f->reuse->updates[param->id] &&
           f->reuse->updates[param->id] == plan_value(f->plan, returned);
}

/* The outputs of steps that return i of a block is: those of both branches where it is an If's, and
 * that of the body where it is what a Loop updates. */
static tssa_status *find_results(struct finder *f, const struct block_plan *block, uint32_t i,
                                 uint32_t result)
{
    const struct ir_value *value = ir_operand(ir_block_return(block->block), i);
    const struct step *step = goes_out(f, block, i, value) ? step_of(block, value->op) : NULL;
    if (!step || plan_space(f->plan, value) != SPACE_HOST)
        return NULL;
    const uint32_t index = (uint32_t)(value - value->op->results);
    const bool loop = ir_op_is(step->op, IR_OP_Loop);
    for (uint32_t b = 0; b < step->n_blocks && !loop; b++)
        TRY(find_results(f, step->blocks[b], index, result));
    const bool carried = loop && !control_stacks(step, index);
    if (carried && is_updated(f, step->blocks[0], index + 1))
        return find_results(f, step->blocks[0], index + 1, result);
    if (loop ? carried : step->n_blocks)
        return NULL;
    struct plan_result found = {result, step->first_output + index};
    f->given[found.output] = true;
    return vec_push(&f->results, found) ? NULL : status_out_of_memory();
}

tssa_status *caller_memory_results(struct plan *plan, const struct reuse *reuse, bool *given)
{
    struct finder f = {.plan = plan, .reuse = reuse, .given = given};
    tssa_status *status = NULL;
    vec_init(&f.results, plan->arena.allocator);
    for (uint32_t i = 0; !status && i < plan->body->n_returns; i++)
        status = find_results(&f, plan->body, i, i);
    if (!status && f.results.count) {
        plan->results =
            arena_copy(&plan->arena, f.results.data, f.results.count * sizeof *f.results.data);
        plan->n_results = (uint32_t)f.results.count;
        if (!plan->results)
            status = status_out_of_memory();
    }
    vec_free(&f.results);
    return status;
}

/* ---- What leaves the run --------------------------------------------------------------------- */

#define SEVERAL UINT32_MAX

/* Numbers are plus 1; 0: none. What is another output as well cannot lie in the memory of this one,
 * which may yet be filled with something else. */
struct leavers {
    const struct plan *plan;
    uint32_t *places; /* per graph output: the entry whose place it may have; SEVERAL: it may be
                       * something else */
    uint32_t *exits;  /* per entry with a place of its own: the graph output that may have it;
                       * SEVERAL: it is not one place, or not that of one output */
};

static uint32_t entry_of_place(const struct plan *plan, uint32_t entry)
{
    while (plan->placed[entry].back)
        entry -= plan->placed[entry].back;
    return entry;
}

static void note(uint32_t *kept, uint32_t found)
{
    *kept = *kept == 0 || *kept == found ? found : SEVERAL;
}

static void find_leavers(struct leavers *l)
{
    const struct plan *plan = l->plan;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (plan->placed[i].leaves) {
            const uint32_t place = entry_of_place(plan, i), exit = plan->placed[i].exit;
            note(&l->places[exit], place + 1);
            note(&l->exits[place], exit + 1);
        }
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (plan->placed[i].turns || plan->placed[i].several)
            l->exits[entry_of_place(plan, i)] = SEVERAL;
    for (uint32_t i = 0; i < plan->n_results; i++)
        l->places[plan->results[i].result] = SEVERAL;
}

/* Whether the entry's place is that of one graph output, which is nothing else. */
static bool is_there(const struct leavers *l, uint32_t entry, uint32_t *exit)
{
    const uint32_t place = entry_of_place(l->plan, entry);
    if (l->exits[place] == 0 || l->exits[place] == SEVERAL)
        return false;
    *exit = l->exits[place] - 1;
    return l->places[*exit] == place + 1;
}

tssa_status *caller_memory_leaving(struct plan *plan, struct arena *scratch)
{
    struct leavers l = {.plan = plan};
    struct plan_leaving *leaving = ARENA_ARRAY(scratch, struct plan_leaving, plan->n_placed);
    l.places = ARENA_ARRAY(scratch, uint32_t, plan->body->n_returns);
    l.exits = ARENA_ARRAY(scratch, uint32_t, plan->n_placed);
    if (!leaving || !l.places || !l.exits)
        return status_out_of_memory();
    find_leavers(&l);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        uint32_t exit = plan->placed[i].exit;
        const bool there = is_there(&l, i, &exit);
        if (there || plan->placed[i].leaves)
            leaving[n++] = (struct plan_leaving){i, exit, there};
    }
    plan->leaving = arena_copy(&plan->arena, leaving, n * sizeof *leaving);
    TRY_ALLOC(plan->leaving);
    plan->n_leaving = n;
    return NULL;
}
