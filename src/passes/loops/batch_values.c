/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for the values of a loop body that is batched, and why for some nothing does
 * (batch.h). */
#include "passes/loops/batch.h"

tssa_status *batch_init(struct batch *batch, struct pass_context *pass, struct ir_cloner *shared,
                        struct ir_cloner *stacked, struct ir_op *loop, struct ir_value *trips)
{
    struct ir_value *counter = loop->blocks[0]->params[0];
    *batch = (struct batch){.pass = pass,
                            .graph = pass->graph,
                            .before = loop,
                            .mark = loop->prev,
                            .body = loop->blocks[0],
                            .trips = trips,
                            .shared = shared,
                            .stacked = stacked};
    ir_cloner_reset(shared);
    ir_cloner_reset(stacked);
    batch->n_trips = trips->known ? trips->known->elements[0] : dim_fresh(&pass->graph->dims, "n");
    TRY_ALLOC(batch->n_trips);
    batch->n_all = batch->n_trips;
    batch->may_be_empty = batch->n_trips->low < 1;
    if (counter->known && counter->known->count == 1)
        batch->counter = counter->known->elements[0];
    return NULL;
}

void batch_undo(struct batch *batch)
{
    struct ir_op *previous;
    for (struct ir_op *op = batch->before->prev; op != batch->mark; op = previous) {
        previous = op->prev;
        ir_release_blocks(op);
        ir_op_remove(op);
    }
}

tssa_status *batch_share(struct batch *batch, struct ir_value *value, struct ir_value *outer)
{
    return ir_cloner_map(batch->shared, value, outer) ? NULL : status_out_of_memory();
}

tssa_status *batch_stack(struct batch *batch, struct ir_value *value, struct ir_value *stacked)
{
    return ir_cloner_map(batch->stacked, value, stacked) ? NULL : status_out_of_memory();
}

static bool is_in(const struct batch *batch, const struct ir_block *block)
{
    for (; block; block = block->owner ? block->owner->parent : NULL)
        if (block == batch->body)
            return true;
    return false;
}

struct ir_value *batch_get(const struct batch *batch, const struct ir_value *value, bool *batched)
{
    struct ir_value *stacked = ir_cloner_get(batch->stacked, value);
    *batched = stacked != value;
    if (*batched)
        return stacked;
    struct ir_value *shared = ir_cloner_get(batch->shared, value);
    if (shared != value)
        return shared;
    return is_in(batch, value->op ? value->op->parent : value->block) ? NULL : shared;
}

bool batch_define(struct batch *batch, const struct ir_op *op, uint32_t result, struct ir_value *to,
                  bool batched)
{
    struct ir_cloner *map = batched ? batch->stacked : batch->shared;
    if (!to)
        return false;
    if (ir_cloner_map(map, &op->results[result], to))
        return true;
    batch->status = batch->status ? batch->status : status_out_of_memory();
    return false;
}

bool batch_refuse(struct batch *batch, const struct ir_op *op, const char *reason)
{
    if (!batch->reason) {
        batch->blamed = op;
        batch->reason = reason;
    }
    return false;
}

bool batch_refuse_operand(struct batch *batch, const struct ir_op *op, uint32_t index,
                          const char *reason)
{
    if (!batch->reason)
        batch->blamed_value = ir_operand(op, index);
    return batch_refuse(batch, op, reason);
}
