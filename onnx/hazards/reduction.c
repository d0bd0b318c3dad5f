/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/hazards/reduction.h"

#include <math.h>

/* Values that are looked at for one bound, and elements of a constant. */
#define MAX_VALUES 64
#define MAX_ELEMENTS (1 << 16)

/* Of an axis whose length is not known: a tensor of more elements would take 8 GiB. */
#define MAX_LENGTH ((double)INT32_MAX)

/* ---- How large elements are ----------------------------------------------------------------------- */

struct search {
    uint32_t n_seen;
};

static double bound(struct search *search, const struct ir_value *value);

static double type_bound(tssa_dtype dtype)
{
    if (dtype == TSSA_BOOL)
        return 1;
    return dtype_is_integer(dtype) ? ldexp(1, (int)dtype_info(dtype)->size * 8) : INFINITY;
}

static double constant_bound(const struct tensor *tensor)
{
    size_t count = tensor_count(tensor), width = dtype_info(tensor->dtype)->size;
    double largest = 0;
    if (count > MAX_ELEMENTS || width == 0 || !dtype_is_integer(tensor->dtype))
        return type_bound(tensor->dtype);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)dtype_load_int64(
                                    tensor->dtype, (const char *)tensor->data + i * width)));
    return largest;
}

/* The largest of the operands from `first` on. */
static double operands_bound(struct search *search, const struct ir_op *op, uint32_t first)
{
    double largest = 0;
    for (uint32_t i = first; i < op->n_operands; i++)
        largest = fmax(largest, ir_operand(op, i) ? bound(search, ir_operand(op, i)) : INFINITY);
    return largest;
}

static double op_bound(struct search *search, const struct ir_op *op)
{
    switch (op->info->id) {
    case IR_OP_Cast: {
        tssa_dtype from = ir_operand(op, 0)->type->dtype;
        return dtype_is_integer(from) || from == TSSA_BOOL ? bound(search, ir_operand(op, 0))
                                                           : INFINITY;
    }
    case IR_OP_Where:
        return operands_bound(search, op, 1);
    case IR_OP_Concat:
        return operands_bound(search, op, 0);
    case IR_OP_Identity:
    case IR_OP_Reshape:
    case IR_OP_Squeeze:
    case IR_OP_Unsqueeze:
    case IR_OP_Expand:
    case IR_OP_Transpose:
    case IR_OP_Slice:
    case IR_OP_Gather:
        return bound(search, ir_operand(op, 0));
    default:
        return INFINITY;
    }
}

/* What a narrower type holds after it wrapped around is no more than the type can. */
static double bound(struct search *search, const struct ir_value *value)
{
    const struct tensor *constant = ir_value_constant(value);
    if (value->type->kind != TYPE_TENSOR || ++search->n_seen > MAX_VALUES)
        return INFINITY;
    if (constant)
        return constant_bound(constant);
    return fmin(type_bound(value->type->dtype), value->op ? op_bound(search, value->op) : INFINITY);
}

/* ---- What is reduced ------------------------------------------------------------------------------ */

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
    struct search search = {0};
    uint32_t axes;
    if (type->kind != TYPE_TENSOR || (type->dtype != TSSA_INT32 && type->dtype != TSSA_INT64) ||
        type->rank < 1 || !read_axes(op, type->rank, &axes))
        return false;
    *reduction = (struct reduction){.dtype = type->dtype,
                                    .keepdims = ir_attr_int(op, "keepdims", 1) != 0,
                                    .length = 1,
                                    .magnitude = bound(&search, ir_operand(op, 0)),
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
