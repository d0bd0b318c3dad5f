/* SPDX-License-Identifier: Apache-2.0 */
/* Operands and results of the op that a rule makes a form of (batch_rules.h). */
#include "passes/loops/batch_rules.h"

struct ir_value *batch_operand(struct batch *batch, const struct ir_op *op, uint32_t index,
                               bool *batched)
{
    const struct ir_value *value = ir_operand(op, index);
    *batched = false;
    return value ? batch_get(batch, value, batched) : NULL;
}

bool batch_has_axis(struct batch *batch, const struct ir_op *op, uint32_t index)
{
    bool batched;
    batch_operand(batch, op, index, &batched);
    return batched;
}

int batch_rank(const struct ir_op *op, uint32_t index)
{
    return ir_operand(op, index)->type->rank;
}

struct ir_value *batch_aligned(struct batch *batch, const struct ir_op *op, uint32_t index,
                               int rank)
{
    bool batched;
    struct ir_value *value = batch_operand(batch, op, index, &batched);
    return batched ? batch_unsqueeze(batch, op, value, 1, rank - batch_rank(op, index)) : value;
}

bool batch_finish(struct batch *batch, const struct ir_op *op, struct ir_op *copy)
{
    if (!batch_put(batch, copy))
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (!batch_define(batch, op, i, &copy->results[i], true))
            return false;
    return true;
}

struct ir_op *batch_copy_operands(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct ir_op *copy = batch_copy(batch, op);
    for (uint32_t i = 0; copy && i < op->n_operands; i++)
        ir_op_set_operand(copy, i, batch_operand(batch, op, i, &batched));
    return copy;
}
