/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/hazards/reduction.h"

#include <math.h>

#include "onnx/hazards/bounds.h"

/* Of an axis whose length is not known: a tensor of more elements would take 8 GiB. */
#define MAX_LENGTH ((double)INT32_MAX)

static double magnitude(const struct ir_value *value)
{
    struct range range = hazard_bounds(value);
    return fmax(-(double)range.low, (double)range.high);
}

/* The axes as bits; false when they are not known. */
static bool read_axes(const struct ir_op *op, int rank, uint32_t *axes)
{
    const struct ir_value *operand = ir_operand(op, 1);
    const struct tensor *list = operand ? ir_value_constant(operand) : NULL;
    *axes = 0;
    if (operand && (!list || list->dtype != TSSA_INT64))
        return false;
    for (size_t i = 0; list && i < tensor_count(list); i++) {
        int64_t axis = ((const int64_t *)list->data)[i];
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return false;
        *axes |= UINT32_C(1) << axis;
    }
    if (!*axes && ir_attr_int(op, "noop_with_empty_axes", 0) == 0)
        *axes = (UINT32_C(1) << rank) - 1;
    return *axes != 0;
}

bool reduction_read(const struct ir_op *op, struct reduction *reduction)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    uint32_t axes;
    if (type->kind != TYPE_TENSOR || (type->dtype != TSSA_INT32 && type->dtype != TSSA_INT64) ||
        type->rank < 1 || !read_axes(op, type->rank, &axes))
        return false;
    *reduction = (struct reduction){.dtype = type->dtype,
                                    .keepdims = ir_attr_int(op, "keepdims", 1) != 0,
                                    .length = 1,
                                    .magnitude = magnitude(ir_operand(op, 0)),
                                    .exact = type->dtype == TSSA_INT32 ? INT32_MAX : ldexp(1, 53)};
    for (int i = 0; i < type->rank; i++) {
        int64_t length;
        if (!(axes >> i & 1))
            continue;
        reduction->axes[reduction->n_axes++] = i;
        reduction->length *= dim_is_const(type->dims[i], &length) ? (double)length : MAX_LENGTH;
    }
    return true;
}

void reduction_write_sum(struct hazard_rewrite *rewrite, const struct ir_op *op,
                         const struct reduction *reduction)
{
    const struct ir_value *value = ir_operand(op, 0);
    for (int i = reduction->n_axes;
         i-- > 0;) { /* the last one first: the others stay where they are */
        const struct ir_value *const sums[] = {value, hazard_int(rewrite, 0, reduction->axes[i])};
        value = hazard_emit(rewrite, IR_OP_CumSum, reduction->dtype, 2, sums);
        const struct ir_value *const last[] = {
            value, hazard_int(rewrite, reduction->keepdims ? 1 : 0, -1)};
        value = hazard_emit(rewrite, IR_OP_Gather, reduction->dtype, 2, last);
        hazard_set_int(rewrite, "axis", reduction->axes[i]);
    }
}
