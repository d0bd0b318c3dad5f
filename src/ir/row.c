/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/row.h"

#include "ir/infer.h"

/* Are the axes that are marked the last ones, so many? 0: they are others, or none. */
static int count_last(int rank, const bool *marked)
{
    int n = 0, all = 0;
    while (n < rank && marked[rank - 1 - n])
        n++;
    for (int i = 0; i < rank; i++)
        all += marked[i];
    return n == all ? n : 0;
}

/* Marks the axes that are reduced; false: they are not known. */
static bool mark_reduced(const struct ir_op *op, int rank, bool *marked)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count = 0;
    int axis;
    if (ir_operand(op, 1) && !infer_const_ints(op, 1, axes, &count))
        return false;
    const bool all = count == 0 && !ir_attr_int(op, "noop_with_empty_axes", 0);
    for (int i = 0; i < rank; i++)
        marked[i] = all;
    for (size_t i = 0; i < count; i++) {
        if (!infer_find_axis(axes[i], rank, &axis))
            return false;
        marked[axis] = true;
    }
    return true;
}

static int axes_of_reduction(const struct ir_op *op, int rank)
{
    bool marked[TSSA_MAX_RANK];
    return mark_reduced(op, rank, marked) ? count_last(rank, marked) : 0;
}

/* From the axis on, or of the axis alone. */
static int axes_from(int64_t axis, int rank, bool all)
{
    int first;
    if (!infer_find_axis(axis, rank, &first))
        return 0;
    return all || first == rank - 1 ? rank - first : 0;
}

/* The axis of running sums; false: it is not known. */
static bool axis_of_scan(const struct ir_op *op, int rank, int *axis)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count = 0;
    return infer_const_ints(op, 1, axes, &count) && count == 1 &&
           infer_find_axis(axes[0], rank, axis);
}

static int axes_of_scan(const struct ir_op *op, int rank)
{
    int axis;
    return axis_of_scan(op, rank, &axis) ? axes_from(axis, rank, false) : 0;
}

/* Where none are told the batch is among them. */
static int axes_of_list(const struct ir_op *op, int rank)
{
    bool marked[TSSA_MAX_RANK] = {false};
    size_t count;
    const int64_t *axes = ir_attr_ints(op, "axes", &count);
    int axis;
    for (size_t i = 0; axes && i < count; i++) {
        if (!infer_find_axis(axes[i], rank, &axis))
            return 0;
        marked[axis] = true;
    }
    return axes ? count_last(rank, marked) : 0;
}

bool ir_row_flattens(const struct ir_op *op)
{
    int now, then; /* of no other operators did it change */
    ir_op_default_axis(op->info, 0, &now);
    ir_op_default_axis(op->info, op->version, &then);
    return now != then;
}

int ir_row_axes(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 1 || op->opaque)
        return 0;
    switch (op->info->id) {
    case IR_OP_ArgMax:
    case IR_OP_ArgMin:
        return axes_from(ir_op_axis(op), type->rank, false);
    case IR_OP_CumSum:
    case IR_OP_CumProd:
        return axes_of_scan(op, type->rank);
    case IR_OP_Softmax:
    case IR_OP_LogSoftmax:
    case IR_OP_Hardmax:
    case IR_OP_LpNormalization:
        return axes_from(ir_op_axis(op), type->rank, ir_row_flattens(op));
    case IR_OP_MeanVarianceNormalization:
        return axes_of_list(op, type->rank);
    case IR_OP_InstanceNormalization:
        return type->rank > 2 ? type->rank - 2 : 0;
    case IR_OP_LayerNormalization:
    case IR_OP_RMSNormalization:
        return axes_from(ir_op_axis(op), type->rank, true);
    default:
        return op->info->cls == IR_CLASS_REDUCTION ? axes_of_reduction(op, type->rank) : 0;
    }
}

bool ir_row_is_each(const struct ir_op *op, uint32_t operand)
{
    return ir_op_is(op, IR_OP_InstanceNormalization) && operand > 0;
}

bool ir_row_folds(const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_REDUCTION && !ir_op_is(op, IR_OP_CumSum) &&
           !ir_op_is(op, IR_OP_CumProd);
}

static int axis_of_reduction(const struct ir_op *op, int rank)
{
    bool marked[TSSA_MAX_RANK];
    int axis = -1;
    if (!mark_reduced(op, rank, marked))
        return -1;
    for (int i = 0; i < rank; i++) {
        if (marked[i] && axis >= 0)
            return -1;
        axis = marked[i] ? i : axis;
    }
    return axis;
}

static int axis_of_column(const struct ir_op *op, int rank)
{
    int axis;
    switch (op->info->id) {
    case IR_OP_ArgMax:
    case IR_OP_ArgMin:
    case IR_OP_Softmax:
    case IR_OP_LogSoftmax:
    case IR_OP_LpNormalization:
        return !ir_row_flattens(op) && infer_find_axis(ir_op_axis(op), rank, &axis) ? axis : -1;
    default:
        return op->info->reduction ? axis_of_reduction(op, rank) : -1;
    }
}

int ir_column_axis(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 2 || op->opaque)
        return -1;
    const int axis = axis_of_column(op, type->rank);
    for (int i = axis + 1; axis >= 0 && i < type->rank; i++)
        if (dim_at_least(type->dims[i], 2))
            return axis;
    return -1;
}

bool ir_column_folds(const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_REDUCTION;
}

int ir_scan_axis(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
    int axis;
    if ((!ir_op_is(op, IR_OP_CumSum) && !ir_op_is(op, IR_OP_CumProd)) || op->opaque || !type ||
        type->kind != TYPE_TENSOR || type->rank < 2 || !axis_of_scan(op, type->rank, &axis) ||
        dim_is(type->dims[axis], 1))
        return -1;
    for (int i = axis + 1; i < type->rank; i++)
        if (!dim_is(type->dims[i], 1))
            return axis;
    return -1;
}
