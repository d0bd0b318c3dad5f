/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest or smallest of all iterations' numbers is an element of the one axis that there is. ArgMax and ArgMin
 * compare whole numbers; and take no longer, with the Gather behind them.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/bounds.h"

void hazard_integer_reduced_extreme(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    bool largest = ir_op_is(op, IR_OP_ReduceMax);
    const struct ir_value *value = op->n_operands ? ir_operand(op, 0) : NULL;
    if ((!largest && !ir_op_is(op, IR_OP_ReduceMin)) || value->type->kind != TYPE_TENSOR ||
        value->type->dtype != TSSA_INT64 || value->type->rank != 1)
        return;
    struct range range = hazard_bounds(value);
    if (range.low >= INT32_MIN && range.high <= INT32_MAX)
        return;
    const struct ir_value *at =
        hazard_emit(rewrite, largest ? IR_OP_ArgMax : IR_OP_ArgMin, TSSA_INT64, 1, &value);
    hazard_set_int(rewrite, "axis", 0);
    hazard_set_int(rewrite, "keepdims", ir_attr_int(op, "keepdims", 1));
    const struct ir_value *const operands[] = {value, at};
    hazard_emit(rewrite, IR_OP_Gather, TSSA_INT64, 2, operands);
    hazard_set_int(rewrite, "axis", 0);
}
