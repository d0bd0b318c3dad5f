/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/distribute_blocks.h"

#include "ir/infer.h"

struct state {
    const struct loop *loop;
    struct ir_cloner cloner;
    struct ir_op *inner;
};

/* The body's counter begins at `first`. */
static tssa_status *shift_counter(struct ir_block *body, struct ir_value *first)
{
    struct ir_value *counter = body->params[0];
    struct ir_op *sum = loop_make_op(body->first, IR_OP_Add, 2);
    TRY_ALLOC(sum);
    ir_value_replace(counter, &sum->results[0]);
    ir_op_set_operand(sum, 0, first);
    ir_op_set_operand(sum, 1, counter);
    return NULL;
}

static tssa_status *clone_loop(void *user, struct ir_block *block, struct batch *batch,
                               struct ir_value **results, bool *done)
{
    struct state *s = user;
    ir_cloner_reset(&s->cloner);
    struct ir_op *copy = ir_clone_op(&s->cloner, s->loop->op);
    TRY_ALLOC(copy);
    ir_op_insert_before(copy, batch->before);
    ir_op_set_operand(copy, 0, batch->trips);
    for (uint32_t k = 0; k < s->loop->n_carried; k++)
        ir_op_set_operand(copy, k + 2, block->params[k + 2]);
    TRY(shift_counter(copy->blocks[0], batch->first));
    TRY(ir_infer_op_lenient(copy));
    for (uint32_t i = 0; i < copy->n_results; i++)
        results[i] = &copy->results[i];
    copy->fits = true;
    s->inner = copy;
    *done = true;
    return NULL;
}

static tssa_status *make(struct state *s, const struct strip *strip, const struct block_size *size)
{
    struct ir_op *op = s->loop->op, *mark = op->prev;
    struct ir_value *trips,
        **results = ARENA_ARRAY(&strip->pass->graph->arena, struct ir_value *, op->n_results);
    struct batch batch;
    bool done;
    TRY_ALLOC(results);
    TRY(loop_make_trips(s->loop, &trips));
    TRY(batch_init(&batch, strip->pass, strip->shared, strip->stacked, op, trips));
    TRY(strip_mine(strip, &batch, size, results, &done));
    if (!done) {
        s->inner = NULL;
        batch.mark = mark;
        batch_undo(&batch);
        return NULL;
    }
    for (uint32_t i = 0; i < op->n_results; i++)
        loop_replace(&op->results[i], results[i]);
    ir_release_blocks(op);
    ir_op_remove(op);
    strip->pass->changed = true;
    return NULL;
}

tssa_status *distribute_blocks(struct pass_context *pass, const struct loop *loop,
                               const struct block_size *size, struct ir_op **inner)
{
    struct ir_cloner shared, stacked;
    struct state state = {.loop = loop};
    const struct strip strip = {.pass = pass,
                                .loop = *loop,
                                .shared = &shared,
                                .stacked = &stacked,
                                .compute = clone_loop,
                                .user = &state};
    ir_cloner_init(&shared, pass->graph);
    ir_cloner_init(&stacked, pass->graph);
    ir_cloner_init(&state.cloner, pass->graph);
    tssa_status *status = make(&state, &strip, size);
    ir_cloner_free(&state.cloner);
    ir_cloner_free(&stacked);
    ir_cloner_free(&shared);
    *inner = state.inner;
    return status;
}
