/* SPDX-License-Identifier: Apache-2.0 */
/* What a block returns must be made in it. */
#include "onnx/hazard.h"

bool hazard_outer_result(const struct ir_op *results, uint32_t index)
{
    const struct ir_value *value = ir_operand(results, index);
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    return results->parent->owner && block != results->parent;
}
