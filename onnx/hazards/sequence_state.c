/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence that a Loop carries is handed over, not copied: what the body returns as it came is
 * taken from the value around the Loop that it began with, which is empty for all who read it
 * later. It is copied before it is returned.
 */
#include "onnx/hazard.h"

/* Does anybody else read it, or the Loop again? */
static bool is_read_again(const struct ir_value *value, const struct ir_op *loop)
{
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    return block != loop->parent || value->uses->next || (!value->op && !block->owner);
}

bool hazard_sequence_state(const struct ir_op *results, uint32_t index)
{
    const struct ir_op *loop = results->parent->owner;
    const struct ir_value *value = ir_operand(results, index);
    if (!loop || !ir_op_is(loop, IR_OP_Loop) || value->block != results->parent ||
        value->type->kind != TYPE_SEQUENCE)
        return false;
    for (uint32_t i = 0; i < loop->n_operands; i++)
        if (results->parent->params[i] == value)
            return is_read_again(ir_operand(loop, i), loop);
    return false;
}
