/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ReduceSum that takes the place of additions must be exact, and wrap around, as they do. CumSum is and does, and
 * takes no longer: the last of its elements is the sum. There is one: `exact` promises it.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/reduction.h"

void hazard_integer_sum(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    struct reduction reduction;
    if (!ir_op_is(op, IR_OP_ReduceSum) || !reduction_read(op, &reduction) ||
        reduction.magnitude <= reduction.exact / reduction.length)
        return;
    const struct ir_value *value = ir_operand(op, 0);
    for (int i = reduction.n_axes;
         i-- > 0;) { /* the last one first: the others stay where they are */
        const struct ir_value *const sums[] = {value, hazard_int(rewrite, 0, reduction.axes[i])};
        value = hazard_emit(rewrite, IR_OP_CumSum, reduction.dtype, 2, sums);
        const struct ir_value *const last[] = {value,
                                               hazard_int(rewrite, reduction.keepdims ? 1 : 0, -1)};
        value = hazard_emit(rewrite, IR_OP_Gather, reduction.dtype, 2, last);
        hazard_set_int(rewrite, "axis", reduction.axes[i]);
    }
}
