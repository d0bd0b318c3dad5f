/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops of a loop body have a form for all iterations at once (batch.h). */
#include "passes/loops/batch.h"

#include "ir/total.h"
#include "passes/analysis/recurrence.h"
#include "passes/analysis/regions.h"

/* Does the op, or what is in it, use a value that differs between iterations? */
static bool uses_batched(const struct batch *batch, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && ir_cloner_get(batch->stacked, value) != value)
            return true;
    }
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (uses_batched(batch, inner))
                return true;
    return false;
}

/* The same in all iterations: computed once. */
static bool share_op(struct batch *batch, const struct ir_op *op)
{
    if (!ir_op_is_pure(op) || (op->info->flags & IR_RANDOM))
        return batch_refuse(batch, op, "it is not pure");
    if (!ir_op_is_total(op) && batch_may_be_empty(batch))
        return batch_refuse(batch, op, "it could fail where the loop makes no iteration");
    struct ir_op *copy = ir_clone_op(batch->shared, op);
    return batch_put(batch, copy) || batch_refuse(batch, op, "its types cannot be told");
}

/* The region is there in every run, and the source has its shape, or is broadcast to it. */
static bool is_assign_total(const struct ir_op *op)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(op, 0)->type, *source = ir_operand(op, 1)->type;
    int rank;
    if (!region_never_fails(op) || source->kind != TYPE_TENSOR || source->rank < 0)
        return false;
    /* Only the op's graph is written to. */
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, base->rank, base->dims, &rank, dims);
    bool fits = !status && source->rank <= rank;
    tssa_status_free(status);
    for (int i = 1; fits && i <= source->rank; i++) {
        const struct dim *dim = source->dims[source->rank - i];
        fits = dim == dims[rank - i] || dim_is(dim, 1);
    }
    return fits;
}

/*
 * Reads and writes at an index that depends on the iteration fail in no iteration that is not made.
 */
static bool is_safe(struct batch *batch, const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_Gather))
        return true;
    return (ir_op_is(op, IR_OP_assign) ? is_assign_total(op) : ir_op_is_total(op)) ||
           !batch_may_be_empty(batch);
}

static bool batch_op(struct batch *batch, const struct ir_op *op)
{
    batch_rule rule = batch_find_rule(op);
    if (op->n_blocks)
        return batch_control(batch, op);
    if (!rule)
        return batch_refuse(batch, op, "there is no form of it for all iterations at once");
    if (!is_safe(batch, op))
        return batch_refuse(batch, op, "it could fail where the loop makes no iteration");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && (value->type->kind != TYPE_TENSOR || value->type->rank < 0 ||
                      value->type->rank >= TSSA_MAX_RANK))
            return batch_refuse(batch, op, "the rank of an operand is not known");
    }
    return rule(batch, op) ||
           batch_refuse(batch, op, "this use of it has no form for all iterations");
}

static bool has_unknown_operand(const struct batch *batch, const struct ir_op *op)
{
    bool batched;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && !batch_get(batch, op->operands[i].value, &batched))
            return true;
    return false;
}

static bool is_skipped(const struct ir_op *op, const struct ir_op *const *skip, size_t n_skip)
{
    for (size_t i = 0; i < n_skip; i++)
        if (skip[i] == op)
            return true;
    return false;
}

/* false with batch->status or a reason. */
static bool make_form(struct batch *batch, const struct ir_op *op)
{
    if (has_unknown_operand(batch, op))
        return batch_refuse(batch, op, "it needs what another iteration computed");
    return (uses_batched(batch, op) ? batch_op(batch, op) : share_op(batch, op)) && !batch->status;
}

bool batch_ops(struct batch *batch, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op != ir_block_return(block); op = op->next) {
        if (!ir_op_is_used(op))
            continue;
        if (batch->nested == 0)
            return batch_refuse(batch, op, "there are too many ops in branches and loops");
        batch->nested--;
        if (!make_form(batch, op))
            return false;
    }
    return true;
}

static bool has_form(const struct batch *batch, const struct ir_op *op)
{
    bool batched;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses && !batch_get(batch, &op->results[i], &batched))
            return false;
    return true;
}

tssa_status *batch_body(struct batch *batch, const struct ir_op *const *skip, size_t n_skip,
                        bool *done)
{
    *done = false;
    for (const struct ir_op *op = batch->body->first; op != ir_block_return(batch->body);
         op = op->next)
        if (ir_op_is_used(op) && !is_skipped(op, skip, n_skip) && !has_form(batch, op) &&
            !make_form(batch, op))
            return batch->status;
    *done = true;
    return NULL;
}

struct slice {
    const struct batch *batch;
    bool *needed; /* by op id */
};

/* The op of the body that a value is a result of, or a value in a block of it. */
static bool mark_op(void *context, struct ir_value *value)
{
    const struct slice *slice = context;
    if (value->op && value->op->parent == slice->batch->body)
        slice->needed[value->op->id] = true;
    return true;
}

tssa_status *batch_slice(struct batch *batch, const struct ir_value *value, bool *done)
{
    const tssa_allocator *allocator = batch->graph->allocator;
    struct slice slice = {batch, allocator_calloc(allocator, batch->graph->n_ops, sizeof(bool))};
    TRY_ALLOC(slice.needed);
    (void)mark_op(&slice, (struct ir_value *)value);
    for (const struct ir_op *op = ir_block_return(batch->body); op; op = op->prev)
        if (slice.needed[op->id])
            (void)recurrence_visit_operands(op, mark_op, &slice);
    *done = true;
    /* What is made meanwhile stands before the loop, not in its body. */
    for (const struct ir_op *op = batch->body->first; *done && op; op = op->next)
        *done = !slice.needed[op->id] || has_form(batch, op) || make_form(batch, op);
    allocator_free(allocator, slice.needed);
    return batch->status;
}
