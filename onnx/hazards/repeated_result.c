/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a block must be different values. */
#include "onnx/hazard.h"

bool hazard_repeated_result(const struct ir_op *results, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (ir_operand(results, i) == ir_operand(results, index))
            return true;
    return false;
}
