/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Loop's iteration number is one tensor that is counted up in place: what the body returns as it
 * came is that tensor in every iteration. It is copied before it is returned.
 */
#include "onnx/hazard.h"

bool hazard_loop_counter(const struct ir_op *results, uint32_t index)
{
    const struct ir_block *block = results->parent;
    return block->owner && ir_op_is(block->owner, IR_OP_Loop) && block->n_params &&
           ir_operand(results, index) == block->params[0];
}
