/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Along the first of two axes ONNX Runtime takes the largest and smallest of whole numbers,
 * whatever the second one is: one of a single element does, and older versions have no ArgMax of
 * INT64.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/bounds.h"

static const struct ir_value *with_axes(struct hazard_rewrite *rewrite, enum ir_op_id id,
                                        const struct ir_value *value, int64_t axis)
{
    const struct ir_value *const operands[] = {value, hazard_int(rewrite, 1, axis)};
    return hazard_emit(rewrite, id, TSSA_INT64, 2, operands);
}

void hazard_integer_reduced_extreme(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    bool extreme = ir_op_is(op, IR_OP_ReduceMax) || ir_op_is(op, IR_OP_ReduceMin);
    const struct ir_value *value = extreme ? ir_operand(op, 0) : NULL;
    if (!value || value->type->kind != TYPE_TENSOR || value->type->dtype != TSSA_INT64 ||
        value->type->rank != 1)
        return;
    struct range range = hazard_bounds(value);
    if (range.low >= INT32_MIN && range.high <= INT32_MAX)
        return;
    value = with_axes(rewrite, IR_OP_Unsqueeze, value, 1);
    value = with_axes(rewrite, op->info->id, value, 0);
    hazard_set_int(rewrite, "keepdims", 0);
    if (!ir_attr_int(op, "keepdims", 1))
        with_axes(rewrite, IR_OP_Squeeze, value, 0);
}
