/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather copies what each index names as a block of memory, in ONNX Runtime with a call for each.
 * Of a list of numbers that is a number, which GatherElements copies as one: the two are the same
 * on one axis.
 */
#include "onnx/hazard.h"

#define FEW 64 /* indices: too few to take any time */

void hazard_gather_elements(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Gather))
        return;
    const struct ir_type *data = ir_operand(op, 0)->type, *indices = ir_operand(op, 1)->type;
    int64_t length;
    if (data->kind != TYPE_TENSOR || data->rank != 1 || indices->kind != TYPE_TENSOR ||
        indices->rank != 1 || (dim_is_const(indices->dims[0], &length) && length < FEW))
        return;
    const struct ir_value *const operands[] = {ir_operand(op, 0), ir_operand(op, 1)};
    hazard_emit(rewrite, IR_OP_GatherElements, data->dtype, 2, operands);
    hazard_set_int(rewrite, "axis", 0);
}
