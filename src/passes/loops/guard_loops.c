/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not change in a loop, but could fail, must not be computed before a loop that may make
 * no iteration. Such a loop goes into a branch that asks first (guard.h), where hoist moves these
 * ops in front of it:
 *
 *     Loop(n, _, x) { (i, c, v): .. Gather(y, k) .. }
 *     If(n > 0) { r = Gather(y, k)  Loop(n, _, x) { (i, c, v): .. r .. } } { x }
 *
 * The branch has its price, so this is done only where a few iterations win it back.
 *
 *   needs   types, known elements
 *   keeps   loops that stack rows of a size that only a run tells, since without an iteration
 *           nothing could stand for them; loops in which too little is won; a remark tells of both
 *   breaks  nothing; hoist is to follow
 */
#include "base/bitset.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/loops/choice.h"
#include "passes/loops/guard.h"
#include "passes/pass.h"

#define SECONDS_BRANCH 5e-6 /* to ask, and to enter a branch: measured in ONNX Runtime 1.31 */
#define EXPECTED_TRIPS 16   /* where only a run tells, within the bounds that are known */
#define EXPECTED_SIZE 256

/* What leaves the loop once it is certain that it runs. */
struct movable {
    const struct ir_op *first; /* the first op that could fail, or NULL */
    double seconds;            /* that they take together */
};

struct guard_loops {
    struct pass_context *pass;
    struct arena arena;
    struct bitset moved; /* values, by id; empty between loops */
};

static bool stays_inside(const struct ir_value *value, const struct ir_block *body,
                         const struct bitset *moved)
{
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    return block == body && !(value->op && bitset_has(moved, value->id));
}

/* Does it, or what is in it, read what stays in the body? */
static bool reads_inside(const struct ir_op *op, const struct ir_block *body,
                         const struct bitset *moved)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && stays_inside(op->operands[i].value, body, moved))
            return true;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (reads_inside(inner, body, moved))
                return true;
    return false;
}

/* Room for values that were made since. */
static tssa_status *make_room(struct guard_loops *guard)
{
    size_t values = guard->pass->graph->n_values;
    if (values > guard->moved.size && !bitset_init(&guard->moved, &guard->arena, 2 * values))
        return status_out_of_memory();
    return NULL;
}

static void forget(struct guard_loops *guard, const struct ir_block *body)
{
    for (const struct ir_op *op = body->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_results; i++)
            bitset_remove(&guard->moved, op->results[i].id);
}

static void find_movable(struct guard_loops *guard, const struct ir_block *body,
                         struct movable *movable)
{
    const struct cost_sizes sizes = {.size = EXPECTED_SIZE};
    for (const struct ir_op *op = body->first; op->next; op = op->next) {
        if (!ir_op_is_pure(op) || pass_is_pinned(guard->pass, op) ||
            reads_inside(op, body, &guard->moved))
            continue;
        for (uint32_t i = 0; i < op->n_results; i++)
            bitset_add(&guard->moved, op->results[i].id);
        if (!movable->first && !ir_op_is_total(op))
            movable->first = op;
        const struct cost_work work = cost_work(op, op->next, &sizes);
        movable->seconds += choice_seconds(choice_rates(guard->pass), &work, work.bytes);
    }
}

static double expected_trips(const struct ir_op *loop)
{
    const struct ir_known *trips = infer_known(loop, 0);
    const struct dim *number = trips && trips->count == 1 ? trips->elements[0] : NULL;
    return number && number->high < EXPECTED_TRIPS ? (double)number->high : EXPECTED_TRIPS;
}

static tssa_status *visit_loop(struct guard_loops *guard, struct ir_op *op)
{
    struct movable movable = {0};
    const struct loop loop = loop_of(op);
    if (op->in_blocks || ir_loop_runs(op))
        return NULL;
    TRY(make_room(guard));
    find_movable(guard, loop.body, &movable);
    forget(guard, loop.body);
    if (!movable.first)
        return NULL;
    if (!guard_has_form(&loop))
        return pass_remark(guard->pass, TSSA_REMARK_MISSED, movable.first,
                           "not moved out of the loop, in which nothing changes it: it might fail, "
                           "the loop might not run at all, and what it leaves then cannot be told");
    if (movable.seconds * expected_trips(op) < SECONDS_BRANCH)
        return pass_remark(guard->pass, TSSA_REMARK_MISSED, movable.first,
                           "not moved out of the loop, in which nothing changes it: it might fail, "
                           "the loop might not run at all, and to ask first costs as much");
    TRY(pass_remark(guard->pass, TSSA_REMARK_APPLIED, op,
                    "put into a branch that asks whether it runs: what could fail otherwise can be "
                    "computed before it"));
    guard->pass->changed = true;
    return guard_loop(&loop);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) && op->n_blocks == 1 ? visit_loop(context, op) : NULL;
}

tssa_status *pass_guard_loops(struct pass_context *pass)
{
    struct guard_loops guard = {.pass = pass};
    arena_init(&guard.arena, pass->graph->allocator);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &guard);
    arena_clear(&guard.arena);
    return status;
}
