/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime's optimizations remove an Expand whose constant shape makes no size larger: to them
 * a 0 changes nothing, as a 1 does. So the size stays 1 (or is 0 already), and a Slice makes it 0.
 * Axes are counted from the end, where the operand and the shape meet.
 */
#include "onnx/hazard.h"

static const struct tensor *constant_shape(const struct ir_op *op)
{
    const struct tensor *shape = ir_value_constant(ir_operand(op, 1));
    return shape && shape->rank == 1 && shape->dims[0] <= TSSA_MAX_RANK ? shape : NULL;
}

void hazard_expand_to_nothing(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct tensor *shape = ir_op_is(op, IR_OP_Expand) ? constant_shape(op) : NULL;
    if (!shape)
        return;
    int64_t sizes[TSSA_MAX_RANK], axes[TSSA_MAX_RANK], zeros[TSSA_MAX_RANK] = {0};
    const size_t rank = (size_t)shape->dims[0];
    size_t n = 0;
    for (size_t i = 0; i < rank; i++) {
        sizes[i] = ((const int64_t *)shape->data)[i];
        if (sizes[i] == 0) {
            sizes[i] = 1;
            axes[n++] = (int64_t)i - (int64_t)rank;
        }
    }
    if (n == 0)
        return;
    const tssa_dtype dtype = op->results[0].type->dtype;
    const struct ir_value *const expanded[] = {ir_operand(op, 0),
                                               hazard_ints(rewrite, 1, rank, sizes)};
    const struct ir_value *all = hazard_emit(rewrite, IR_OP_Expand, dtype, 2, expanded);
    const struct ir_value *none = hazard_ints(rewrite, 1, n, zeros);
    const struct ir_value *const sliced[] = {all, none, none, hazard_ints(rewrite, 1, n, axes)};
    hazard_emit(rewrite, IR_OP_Slice, dtype, 4, sliced);
}
