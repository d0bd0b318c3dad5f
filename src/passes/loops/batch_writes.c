/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that only writes one and the same value to elements of a tensor is one write:
 *
 *     Loop(n, c, x) { (i, c, t): t1 = assign(t, v, a, b + i){[select(0, $0), select(0, $1)]}
 *                                return(c, t1) }
 *     ScatterND(x, [[a, b], [a, b + 1], ...], [v, v, ...])
 *
 * Whether iterations write the same elements does not matter, since they write the same value; that
 * is why this is more than independent iterations (parallelize), which must prove that they do not.
 * The indices are computed for all iterations at once (batch.h), or for blocks of them
 * (strip_mine.h) where all would take much more memory than the loop (batch_cost.h), which a run
 * may have to tell (versions.h).
 *
 *   needs   assigns (recover), counters computed from the iteration's number (induction),
 *           invariants outside of the loop (hoist), loops in loops made one (coalesce)
 *   keeps   types
 *   breaks  ops of the body that nothing uses were copied as well (dead_code)
 */
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/loops/batch.h"
#include "passes/loops/batch_cost.h"
#include "passes/loops/versions.h"
#include "passes/loops/write_nest.h"

struct state {
    struct pass_context *pass;
    struct ir_cloner shared, stacked;
    struct loop loop;
    struct ir_block *block; /* the body of a loop over blocks of iterations, or NULL */
    /* where a run chooses between all at once and blocks; in_blocks: else NULL */
    struct versions_few few;
};

/* ---- Recognition ----------------------------------------------------------------------------- */

/* The assign that is all that is done with a carried value. */
static struct ir_op *only_write(const struct loop *loop, uint32_t k)
{
    struct ir_op *step = write_nest_step(loop, k);
    return step && step == write_nest_find(loop, k) ? step : NULL;
}

static bool only_writes(const struct loop *loop)
{
    if (loop->n_stacked || !loop->n_carried)
        return false;
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (!only_write(loop, k))
            return false;
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* One param of the rule in all iterations, as a column. NULL: it has no form for all of them. */
static struct ir_value *make_column(struct batch *batch, const struct ir_op *assign,
                                    const struct rule_param *param)
{
    struct ir_value *value = rule_param_value(assign, param);
    if (value) {
        value = batch_stacked(batch, value, assign);
    } else {
        struct ir_value *operands[] = {batch_ints(batch, 0, 1, &param->value),
                                       batch_trips_1d(batch)};
        struct ir_op *op = batch_make(batch, assign, IR_OP_Expand, 2, operands);
        value = op ? &op->results[0] : NULL;
    }
    return batch_unsqueeze(batch, assign, value, 1, 1);
}

/* The indices [[a, b], [a, b + 1], ...] of sessions, for which Pad is one call in place of three. A
 * file keeps the columns, which recover reads. NULL: not of this form. */
static struct ir_value *pad_column(struct batch *batch, const struct ir_op *assign)
{
    static const int64_t in_front[] = {0, 1, 0, 0};
    const struct rule *rule = rule_of(assign);
    bool row_batched, batched;
    if (!pass_is_for_session(batch->pass) || rule->n_steps != 2)
        return NULL;
    struct ir_value *row = rule_param_value(assign, &rule->steps[0].params[1]),
                    *column = rule_param_value(assign, &rule->steps[1].params[1]);
    row = row && row->type->rank == 0 ? batch_get(batch, row, &row_batched) : NULL;
    column = column ? batch_get(batch, column, &batched) : NULL;
    if (!row || row_batched || !column || !batched)
        return NULL;
    struct ir_value *operands[] = {batch_unsqueeze(batch, assign, column, 1, 1),
                                   batch_ints(batch, 1, 4, in_front), row};
    struct ir_op *op = batch_make(batch, assign, IR_OP_Pad, 3, operands);
    return op ? &op->results[0] : NULL;
}

static struct ir_value *write_all(const struct state *s, struct batch *batch, uint32_t k)
{
    const struct loop *loop = &s->loop;
    const struct ir_op *assign = only_write(loop, k);
    const struct rule *rule = rule_of(assign);
    struct ir_value *columns[TSSA_MAX_RANK];
    struct ir_value *indices = pad_column(batch, assign);
    for (uint32_t i = 0; i < rule->n_steps && !indices; i++)
        columns[i] = make_column(batch, assign, &rule->steps[i].params[1]);
    struct ir_value *operands[] = {s->block ? s->block->params[k + 2] : loop_initial(loop, k),
                                   indices ? indices
                                           : batch_concat(batch, assign, 1, rule->n_steps, columns),
                                   batch_stacked(batch, ir_operand(assign, 1), assign)};
    struct ir_op *op = batch_make(batch, assign, IR_OP_ScatterND, 3, operands);
    return op ? &op->results[0] : NULL;
}

/* What the loop leaves; *done: all of it could be made. */
static tssa_status *make_results(struct state *s, struct batch *batch, struct ir_value **results,
                                 bool *done)
{
    const struct loop *loop = &s->loop;
    const struct ir_op **writes =
        ARENA_ARRAY(&s->pass->graph->arena, const struct ir_op *, loop->n_carried);
    struct ir_value *truth, *range = batch_range(batch);
    TRY(batch->status);
    TRY_ALLOC(writes);
    TRY_ALLOC(range);
    TRY(loop_make_bool(batch->before, true, &truth));
    TRY(batch_stack(batch, loop->body->params[0], range));
    TRY(batch_share(batch, loop->body->params[1], truth));
    for (uint32_t k = 0; k < loop->n_carried; k++)
        writes[k] = only_write(loop, k);
    TRY(batch_body(batch, writes, loop->n_carried, done));
    for (uint32_t k = 0; *done && k < loop->n_carried; k++) {
        results[k] = write_all(s, batch, k);
        *done = results[k] != NULL;
    }
    return batch->status;
}

static tssa_status *compute_block(void *user, struct ir_block *block, struct batch *batch,
                                  struct ir_value **results, bool *done)
{
    struct state *s = user;
    s->block = block;
    tssa_status *status = make_results(s, batch, results, done);
    s->block = NULL;
    return status;
}

static tssa_status *begin(struct state *s, struct batch *batch, struct ir_value *trips)
{
    return batch_init(batch, s->pass, &s->shared, &s->stacked, s->loop.op, trips);
}

/* Blocks as well, behind what is made all at once; only that where blocks have no form. */
static tssa_status *add_blocks(struct state *s, struct batch *batch, const struct strip *strip,
                               const struct block_size *size, struct ir_value *const *results)
{
    bool done;
    const struct ir_op *begun = batch->mark, *last = s->loop.op->prev;
    struct ir_value **blocks =
        ARENA_ARRAY(&s->pass->graph->arena, struct ir_value *, s->loop.op->n_results);
    TRY_ALLOC(blocks);
    TRY(begin(s, batch, batch->trips));
    TRY(strip_mine(strip, batch, size, blocks, &done));
    if (done)
        s->few = (struct versions_few){begun, last, results, blocks, false};
    else
        batch_undo(batch);
    return batch->status;
}

/* All elements are to be written at once; but if that takes too much, the loop is taken apart. */
static tssa_status *decide(struct state *s, struct batch *batch, struct ir_value **results,
                           bool *done)
{
    static const char *const ways[] = {
        [CHOICE_ALL] = "writes one value: all elements at once",
        [CHOICE_BLOCKS] = "writes one value: as many elements at once as there is memory for",
        [CHOICE_LEAVE] = "writes one value, but stays a loop: little is won by fewer writes",
        [CHOICE_FEW] = "writes one value: all elements at once if there are few, else in blocks"};
    const struct strip strip = {.pass = s->pass,
                                .loop = s->loop,
                                .shared = &s->shared,
                                .stacked = &s->stacked,
                                .compute = compute_block,
                                .user = s};
    struct ir_value *trips = batch->trips;
    struct batch_cost cost;
    TRY(batch_cost_find(batch, &s->loop, results, &cost));
    if (cost.choice.way == CHOICE_FEW) {
        TRY(add_blocks(s, batch, &strip, &cost.size, results));
    } else if (cost.choice.way != CHOICE_ALL) {
        batch_undo(batch);
        *done = false;
        TRY(begin(s, batch, trips));
    }
    if (cost.choice.way == CHOICE_BLOCKS)
        TRY(strip_mine(&strip, batch, &cost.size, results, done));
    bool told = *done || cost.choice.way == CHOICE_LEAVE;
    return told ? choice_remark(&cost.choice, s->pass, s->loop.op, ways) : NULL;
}

static tssa_status *rewrite(struct state *s)
{
    struct ir_op *op = s->loop.op, *mark = op->prev;
    struct batch batch;
    struct ir_value *trips,
        **results = ARENA_ARRAY(&s->pass->graph->arena, struct ir_value *, op->n_results);
    bool done = false;
    s->few = (struct versions_few){0};
    TRY_ALLOC(results);
    TRY(loop_make_trips(&s->loop, &trips));
    TRY(begin(s, &batch, trips));
    TRY(make_results(s, &batch, results, &done));
    if (done)
        TRY(decide(s, &batch, results, &done));
    if (!done) {
        batch.mark = mark;
        batch_undo(&batch);
        return NULL;
    }
    if (s->few.in_blocks)
        return versions_split(&batch, &s->loop, &s->few);
    for (uint32_t k = 0; k < s->loop.n_carried; k++)
        loop_replace(loop_final(&s->loop, k), results[k]);
    ir_release_blocks(op);
    ir_op_remove(op);
    s->pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct state *s = context;
    if (!ir_op_is(op, IR_OP_Loop) || op->in_blocks)
        return NULL;
    s->loop = loop_of(op);
    return only_writes(&s->loop) ? rewrite(s) : NULL;
}

tssa_status *pass_batch_writes(struct pass_context *pass)
{
    struct state state = {.pass = pass};
    ir_cloner_init(&state.shared, pass->graph);
    ir_cloner_init(&state.stacked, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &state);
    ir_cloner_free(&state.stacked);
    ir_cloner_free(&state.shared);
    return status;
}
