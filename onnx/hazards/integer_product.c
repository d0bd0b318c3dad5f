/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ReduceProd that takes the place of multiplications must be exact, and wrap around, as they do.
 * The elements behind the first are multiplied into the first one: ScatterElements does it in their
 * own type.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/reduction.h"

/* Elements from `start` to `end` of an axis. */
static const struct ir_value *part(struct hazard_rewrite *rewrite,
                                   const struct reduction *reduction, const struct ir_value *value,
                                   int64_t axis, int64_t start, int64_t end)
{
    const struct ir_value *const operands[] = {value, hazard_int(rewrite, 1, start),
                                               hazard_int(rewrite, 1, end),
                                               hazard_int(rewrite, 1, axis)};
    return hazard_emit(rewrite, IR_OP_Slice, reduction->dtype, 4, operands);
}

/* The axis stays, with one element. */
static const struct ir_value *multiply(struct hazard_rewrite *rewrite,
                                       const struct reduction *reduction,
                                       const struct ir_value *value, int64_t axis)
{
    const struct ir_value *first = part(rewrite, reduction, value, axis, 0, 1);
    const struct ir_value *rest = part(rewrite, reduction, value, axis, 1, INT64_MAX);
    const struct ir_value *shape = hazard_emit(rewrite, IR_OP_Shape, TSSA_INT64, 1, &rest);
    const struct ir_value *const zeros[] = {hazard_int(rewrite, 0, 0), shape};
    const struct ir_value *indices = hazard_emit(rewrite, IR_OP_Expand, TSSA_INT64, 2, zeros);
    const struct ir_value *const operands[] = {first, indices, rest};
    const struct ir_value *product =
        hazard_emit(rewrite, IR_OP_ScatterElements, reduction->dtype, 3, operands);
    hazard_set_int(rewrite, "axis", axis);
    hazard_set_string(rewrite, "reduction", "mul");
    return product;
}

void hazard_integer_product(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    struct reduction reduction;
    if (!ir_op_is(op, IR_OP_ReduceProd) || !reduction_read(op, &reduction) ||
        reduction.magnitude <= 1)
        return;
    const struct ir_value *value = ir_operand(op, 0);
    for (int i = 0; i < reduction.n_axes; i++)
        value = multiply(rewrite, &reduction, value, reduction.axes[i]);
    if (reduction.keepdims)
        return;
    const struct ir_value *const operands[] = {
        value, hazard_ints(rewrite, 1, (size_t)reduction.n_axes, reduction.axes)};
    hazard_emit(rewrite, IR_OP_Squeeze, reduction.dtype, 2, operands);
}
