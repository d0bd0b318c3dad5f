/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose iterations do not need each other: all iterations are computed at once, by the ops of
 * the body with an axis more (batch.h), and the Loop goes. What a loop carries may be
 *
 *     a tensor       that every iteration writes elsewhere, and reads only where it writes itself:
 *                    rows i, say. After the loop one assign writes what all iterations wrote.
 *     rows           that data tells, which are combined with something (Add, Mul, Max, Min), of
 *                    integers: a histogram, say. In sessions floats are added up, and rows are
 *                    written, the last one last: a scatter does so in the order of iterations.
 *     a result       of an operation on integers or truth values whose order does not matter
 *     a sum          that the iteration uses, of integers, FLOAT or DOUBLE: of those before it
 *                    (CumSum, which adds one after the other as the loop does)
 *     nothing        scan outputs are what all iterations computed
 *
 * Ifs and Loops in the body may be among its ops (batch_control.c): an If that all iterations
 * decide alike stays, outside; of one that each iteration decides both branches are computed, where
 * they are cheap and cannot fail; a Loop that runs as often in all iterations stays, and takes a
 * step of all of them at once.
 *
 * A Loop that carries nothing is the map that loops are turned into: it needs no op of its own,
 * since it can be run, written as ONNX, and left as it is where an op has no form for all
 * iterations (NonZero).
 *
 * A loop that may make no iteration, in which something could fail that it then would not compute,
 * is computed in a branch that asks first (guard.h).
 *
 * All at once is not always best. What it takes is estimated (batch_cost.h), for small and large
 * sizes where only a run tells them: where temporaries would need much more memory than the loop,
 * or leave the caches, the loop becomes one over blocks of iterations (strip_mine.c), and where an
 * iteration does so much that calls cost little beside it, it stays. What blocks stack is copied
 * once more: with short rows they are tens of times as fast as the loop, with long ones slower.
 * Where only a run can tell how long rows are, there are two versions of the loop, behind a branch
 * that asks (versions.h), as long as the file does not grow too much (--file-growth). So there are
 * of a loop that would take too much memory from some million iterations on only, because an
 * iteration makes mere numbers: all at once below 65536 iterations, and blocks from there on.
 *
 * Of a loop in which this run of the pass has computed another one at once, only the next run tells
 * whether it should be in blocks, or stay: when what that left has been cleaned.
 *
 *   needs   forward_assigns, the loop's counter as a known element
 *   keeps   results' bits, but that matrix products and sums of floats may be added up in another
 *           order; loops that it does not understand, which a remark explains
 *   breaks  ops of the body that nothing uses were copied as well (dead_code)
 *
 * A trip count below zero is none. An index that is out of range is an error after the rewriting as
 * before, though perhaps of another op; it is none where the loop has elements of no size only.
 */
#include "passes/loops/parallelize.h"

#include "ir/infer.h"
#include "ir/total.h"
#include "passes/loops/branch.h"
#include "passes/loops/guard.h"
#include "passes/loops/versions.h"

static const char *name_of(const struct ir_value *value)
{
    return value && value->name ? value->name : "?";
}

/* Parameters of the body that are known before the ops are. */
static tssa_status *set_params(struct parallel *s, struct batch *batch)
{
    struct ir_value *truth, *range = batch_range(batch);
    TRY(batch->status);
    TRY_ALLOC(range);
    TRY(loop_make_bool(batch->before, true, &truth));
    TRY(batch_stack(batch, s->loop.body->params[0], range));
    TRY(batch_share(batch, s->loop.body->params[1], truth));
    for (uint32_t k = 0; k < s->loop.n_carried; k++) {
        const struct carried *c = &s->carried[k];
        if ((c->kind == CARRIED_REDUCED || (c->kind == CARRIED_SCATTERED && c->combine)) &&
            !vec_push(&s->skipped, c->combine))
            return status_out_of_memory();
        if (c->kind == CARRIED_SCATTERED && c->read && !vec_push(&s->skipped, c->read))
            return status_out_of_memory();
        for (uint32_t i = 0; i < c->n_assigns; i++)
            if (!vec_push(&s->skipped, c->assigns[i]))
                return status_out_of_memory();
        if (c->kind == CARRIED_SAME || c->kind == CARRIED_TENSOR)
            TRY(batch_share(batch, loop_param(&s->loop, k), parallel_given(s, k)));
    }
    return NULL;
}

static struct ir_op *make_cumsum(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *terms, bool exclusive)
{
    static const int64_t zero = 0;
    struct ir_value *operands[] = {terms, batch_ints(batch, 0, 1, &zero)};
    struct ir_op *sums = batch_new(batch, origin, IR_OP_CumSum, 2, operands);
    bool made =
        sums && batch_set_int(batch, sums, "exclusive", exclusive) && batch_put(batch, sums);
    return made ? sums : NULL;
}

/* The initial value and then the terms, in this order; without the last one they are what the
 * iterations find. */
static struct ir_value *ordered_sums(struct batch *batch, struct carried *c,
                                     struct ir_value *initial, struct ir_value *terms)
{
    static const int64_t zero = 0;
    struct ir_value *parts[] = {batch_unsqueeze(batch, c->combine, initial, 0, 1), terms};
    struct ir_value *all = batch_concat(batch, c->combine, 0, 2, parts);
    struct ir_op *sums = make_cumsum(batch, c->combine, all, false);
    if (!sums)
        return NULL;
    c->sums = &sums->results[0];
    struct ir_value *before = parallel_slice(batch, c->combine, c->sums, 0,
                                             batch_ints(batch, 1, 1, &zero), batch_trips_1d(batch));
    return before ? batch_check(batch, c->combine, before) : NULL;
}

/* Of a sum, what the iterations find there: the initial value and the terms before each. */
static tssa_status *set_sum(struct parallel *s, struct batch *batch, uint32_t k, bool *done)
{
    struct carried *c = &s->carried[k];
    struct ir_value *initial = parallel_given(s, k), *all = NULL;
    TRY(batch_slice(batch, c->term, done));
    if (!*done)
        return NULL;
    struct ir_value *terms = batch_stacked(batch, c->term, c->combine);
    if (c->ordered) {
        all = ordered_sums(batch, c, initial, terms);
    } else {
        struct ir_op *sums = make_cumsum(batch, c->combine, terms, true);
        struct ir_value *operands[] = {sums ? &sums->results[0] : NULL, initial};
        struct ir_op *sum = sums ? batch_make(batch, c->combine, IR_OP_Add, 2, operands) : NULL;
        all = sum ? &sum->results[0] : NULL;
    }
    *done = all != NULL;
    return all ? batch_stack(batch, loop_param(&s->loop, k), all) : batch->status;
}

static tssa_status *set_sums(struct parallel *s, struct batch *batch, bool *done)
{
    *done = true;
    for (uint32_t k = 0; *done && k < s->loop.n_carried; k++)
        if (s->carried[k].kind == CARRIED_SUMMED)
            TRY(set_sum(s, batch, k, done));
    return NULL;
}

static tssa_status *replace_loop(struct parallel *s, struct batch *batch, struct ir_value **results)
{
    struct ir_op *op = s->loop.op;
    if (s->blocks) {
        const struct versions_few few = {s->begun, s->last, results, s->blocks, s->guarded};
        return versions_split(batch, &s->loop, &few);
    }
    if (s->question)
        return versions_create(s->pass, &s->loop, s->question, batch->trips, s->begun, results);
    for (uint32_t i = 0; i < op->n_results; i++)
        loop_replace(&op->results[i], results[i]);
    ir_release_blocks(op);
    ir_op_remove(op);
    s->pass->changed = true;
    return NULL;
}

/* Where the loop makes an iteration; else it leaves what it was given. What was made goes into the
 * branch, behind the number of iterations. */
static tssa_status *replace_under_guard(struct parallel *s, struct batch *batch,
                                        struct ir_value **results)
{
    struct ir_op *op = s->loop.op, *branch, *last = op->prev;
    if (s->question || s->blocks) /* which asks for iterations, too */
        return replace_loop(s, batch, results);
    uint32_t *kept = ARENA_ARRAY(&s->pass->graph->arena, uint32_t, op->n_results);
    TRY_ALLOC(kept);
    TRY(guard_create(&s->loop, batch->trips, &branch, kept));
    branch_fill(branch, 0, s->begun, last ? last->next : branch->parent->first, results, kept);
    TRY(ir_infer_op_lenient(branch));
    ir_release_blocks(op);
    ir_op_remove(op);
    s->pass->changed = true;
    return pass_remark(s->pass, TSSA_REMARK_APPLIED, branch,
                       "asks first whether there is an iteration: what could fail without one is "
                       "computed only then");
}

static tssa_status *remark_missed(struct parallel *s, const struct batch *batch)
{
    char description[128] = "";
    if (s->reason) {
        if (s->at)
            ir_op_describe(s->at, description, sizeof description);
        return pass_remark(s->pass, TSSA_REMARK_MISSED, s->loop.op,
                           "iterations depend on each other through %%%s: %s%s%s",
                           name_of(s->blamed), s->reason, s->at ? ", in " : "", description);
    }
    if (batch->blamed)
        ir_op_describe(batch->blamed, description, sizeof description);
    return pass_remark(s->pass, TSSA_REMARK_MISSED, s->loop.op,
                       "iterations are independent but stay a loop because of %s%s%s: %s",
                       description, batch->blamed_value ? ", %" : "",
                       batch->blamed_value ? name_of(batch->blamed_value) : "",
                       batch->reason ? batch->reason : "it has no form for all iterations");
}

tssa_status *parallel_compute(struct parallel *s, struct batch *batch, struct ir_value **results,
                              bool *done)
{
    batch->nested = s->nested;
    s->skipped.count = 0;
    TRY(set_params(s, batch));
    TRY(set_sums(s, batch, done));
    if (*done)
        TRY(batch_body(batch, s->skipped.data, s->skipped.count, done));
    *done = *done && parallel_results(s, batch, results);
    s->nested = batch->nested;
    return batch->status;
}

/* The batch before the loop. */
static tssa_status *begin(struct parallel *s, struct batch *batch, struct ir_op *mark)
{
    struct ir_value *trips;
    TRY(loop_make_trips(&s->loop, &trips));
    s->question = NULL;
    s->blocks = NULL;
    s->begun = s->loop.op->prev;
    TRY(batch_init(batch, s->pass, &s->shared, &s->stacked, s->loop.op, trips));
    batch->mark = mark;
    batch->may_be_empty &= !s->guarded && !ir_loop_runs(s->loop.op);
    return NULL;
}

static const char *const ways[] = {
    [CHOICE_ALL] = "all iterations are computed at once: none needs what another one computes",
    [CHOICE_BLOCKS] = "computed in blocks of iterations: none needs what another one computes, "
                      "but all at once would be too much",
    [CHOICE_LEAVE] = "iterations are independent but stay a loop: each does so much that little "
                     "is won by fewer calls",
    [CHOICE_BOTH] = "computed in blocks of iterations where that pays, and else as it is: none "
                    "needs what another one computes, but long rows would be copied once more",
    [CHOICE_FEW] = "all iterations are computed at once where there are few, and else in blocks: "
                   "none needs what another one computes"};

static tssa_status *compute_block(void *user, struct ir_block *block, struct batch *batch,
                                  struct ir_value **results, bool *done)
{
    struct parallel *s = user;
    s->block = block;
    tssa_status *status = parallel_compute(s, batch, results, done);
    s->block = NULL;
    return status;
}

static tssa_status *compute_blocks(struct parallel *s, struct batch *batch,
                                   const struct block_size *size, struct ir_value **results,
                                   bool *done)
{
    const struct strip strip = {.pass = s->pass,
                                .loop = s->loop,
                                .shared = &s->shared,
                                .stacked = &s->stacked,
                                .compute = compute_block,
                                .user = s};
    struct ir_value *trips = batch->trips;
    bool may_be_empty = batch->may_be_empty;
    TRY(batch_init(batch, s->pass, &s->shared, &s->stacked, s->loop.op, trips));
    batch->may_be_empty = may_be_empty;
    return strip_mine(&strip, batch, size, results, done);
}

/* Blocks as well, behind what is made all at once; only that where blocks have no form. */
static tssa_status *add_blocks(struct parallel *s, struct batch *batch,
                               const struct block_size *size)
{
    bool done;
    struct ir_value **results =
        ARENA_ARRAY(&s->pass->graph->arena, struct ir_value *, s->loop.op->n_results);
    TRY_ALLOC(results);
    s->last = s->loop.op->prev;
    TRY(compute_blocks(s, batch, size, results, &done));
    if (!done)
        batch_undo(batch);
    s->blocks = done ? results : NULL;
    return batch->status;
}

static tssa_status *note_around(struct parallel *s, const struct ir_op *gone)
{
    for (const struct ir_op *op = gone->parent->owner; op; op = op->parent->owner)
        if (!vec_push(&s->around, op))
            return status_out_of_memory();
    return NULL;
}

/* Is there, in what an iteration does, what a loop in it has left in this run of the pass? The next
 * run finds it without what nobody needs of that, and tells what it costs. */
static bool is_unclean(const struct parallel *s)
{
    for (size_t i = 0; i < s->around.count; i++)
        if (s->around.data[i] == s->loop.op)
            return true;
    return false;
}

/* All at once, in blocks, or not: as it costs. */
static tssa_status *decide(struct parallel *s, struct batch *batch, struct ir_op *mark,
                           struct ir_value **results, bool *done)
{
    struct batch_cost cost;
    TRY(batch_cost_find(batch, &s->loop, results, &cost));
    enum choice_way way = cost.choice.way;
    if (s->guarded && way != CHOICE_BOTH && !guard_has_form(&s->loop)) {
        *done = false;
        return NULL;
    }
    if (way != CHOICE_ALL && is_unclean(s)) {
        *done = false;
        s->explained = true;
        return NULL;
    }
    if (way == CHOICE_FEW) {
        TRY(add_blocks(s, batch, &cost.size));
        batch->mark = mark;
    }
    if (way == CHOICE_ALL || way == CHOICE_FEW)
        return choice_remark(&cost.choice, s->pass, s->loop.op, ways);
    batch->mark = s->begun; /* the number of iterations stays: the costs are told by it */
    batch_undo(batch);
    *done = false;
    if (way == CHOICE_BOTH) {
        TRY(versions_ask(batch, &s->loop, &cost.choice.rows, &s->question));
        s->begun = s->loop.op->prev;
    }
    if (way == CHOICE_BLOCKS || s->question)
        TRY(compute_blocks(s, batch, &cost.size, results, done));
    batch->mark = mark;
    s->loop.op->kept = way == CHOICE_LEAVE;
    s->explained = *done || s->loop.op->kept;
    return s->explained ? choice_remark(&cost.choice, s->pass, s->loop.op, ways) : batch->status;
}

/* Everything that is made stands before the loop and goes again when it comes to nothing. */
static tssa_status *attempt(struct parallel *s, struct batch *batch, struct ir_op *mark,
                            struct ir_value **results, bool *done)
{
    TRY(begin(s, batch, mark));
    for (uint32_t k = 0; k < s->loop.n_carried; k++) {
        bool ok;
        TRY(parallel_check_carried(s, batch, k, &ok));
        if (!ok)
            return NULL;
    }
    TRY(parallel_compute(s, batch, results, done));
    return *done ? decide(s, batch, mark, results, done) : NULL;
}

static bool is_counted(const struct loop *loop)
{
    const struct ir_value *trips = ir_operand(loop->op, 0);
    return trips && trips->type->kind == TYPE_TENSOR &&
           (trips->type->rank == 0 || trips->type->rank == 1) && loop_enters(loop) == LOOP_TRUE &&
           loop_stays(loop) == LOOP_TRUE;
}

static void undo(struct parallel *s, struct batch *batch, struct ir_op *mark)
{
    batch->before = s->loop.op;
    batch->mark = mark;
    batch_undo(batch);
}

static tssa_status *visit_loop(struct parallel *s, struct ir_op *op)
{
    struct batch batch = {0};
    bool done = false;
    struct ir_op *mark = op->prev;
    s->loop = loop_of(op);
    s->reason = NULL;
    s->at = NULL;
    s->block = NULL;
    s->explained = false;
    if (op->in_blocks || versions_has(op) || !s->loop.ret || op->n_results < s->loop.n_carried)
        return NULL;
    if (!is_counted(&s->loop))
        return pass_remark(s->pass, TSSA_REMARK_MISSED, op,
                           "how many iterations there are depends on what they compute");
    struct arena *arena = &s->pass->graph->arena;
    struct ir_value **results = ARENA_ARRAY(arena, struct ir_value *, op->n_results);
    s->carried = ARENA_ARRAY(arena, struct carried, s->loop.n_carried);
    if (!results || !s->carried)
        return status_out_of_memory();
    s->guarded = false;
    TRY(attempt(s, &batch, mark, results, &done));
    if (done) {
        TRY(note_around(s, op));
        return replace_loop(s, &batch, results);
    }
    undo(s, &batch, mark);
    if (batch.empty_matters && !s->explained) {
        struct batch guarded = {0};
        s->guarded = true;
        TRY(attempt(s, &guarded, mark, results, &done));
        if (done) {
            TRY(note_around(s, op));
            return replace_under_guard(s, &guarded, results);
        }
        undo(s, &guarded, mark);
    }
    return s->explained ? NULL : remark_missed(s, &batch);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) && op->n_blocks == 1 ? visit_loop(context, op) : NULL;
}

tssa_status *pass_parallelize(struct pass_context *pass)
{
    struct parallel state = {.pass = pass, .nested = BATCH_MAX_NESTED};
    vec_init(&state.skipped, pass->graph->allocator);
    vec_init(&state.around, pass->graph->allocator);
    ir_cloner_init(&state.shared, pass->graph);
    ir_cloner_init(&state.stacked, pass->graph);
    region_space_init(&state.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &state);
    region_space_free(&state.space);
    ir_cloner_free(&state.stacked);
    ir_cloner_free(&state.shared);
    vec_free(&state.around);
    vec_free(&state.skipped);
    return status;
}
