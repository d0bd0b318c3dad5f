/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a Scan's body are expected where they are to be in the Scan's own results: a
 * parameter that is returned as it came is never put there.
 */
#include "onnx/hazard.h"

bool hazard_scan_parameter(const struct ir_op *results, uint32_t index)
{
    const struct ir_block *block = results->parent;
    return block->owner && ir_op_is(block->owner, IR_OP_Scan) &&
           ir_operand(results, index)->block == block;
}
