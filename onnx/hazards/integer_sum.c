/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ReduceSum that takes the place of additions must be exact, and wrap around, as they do. CumSum
 * is and does, and takes no longer: the last of its elements is the sum. There is one: `exact`
 * promises it.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/reduction.h"

void hazard_integer_sum(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    struct reduction reduction;
    if (!ir_op_is(op, IR_OP_ReduceSum) || !reduction_read(op, &reduction) ||
        reduction.magnitude <= reduction.exact / reduction.length)
        return;
    reduction_write_sum(rewrite, op, &reduction);
}
