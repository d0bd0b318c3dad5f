/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/simplify/selections.h"

#include "ir/infer.h"

#define MOST_JOINED SELECTION_MOST_JOINED

static bool is_compress(const struct ir_op *op, int *axis)
{
    return ir_op_is(op, IR_OP_Compress) && ir_attr(op, "axis") &&
           infer_find_axis(ir_attr_int(op, "axis", 0), infer_value_rank(ir_operand(op, 0)), axis);
}

/* Are these never more, and fewer in some runs? */
static bool are_fewer(const struct dim *count, const struct dim *all)
{
    bool least = count->high < all->low || (count->high == all->low && count->low < all->low);
    for (uint32_t i = 0; count->kind == DIM_MIN && i < count->n_terms; i++)
        least |= count->terms[i] == all;
    return least;
}

/* A Gather of a list of rows. */
static bool is_gather(const struct ir_op *op, int *axis)
{
    const struct ir_value *x = ir_operand(op, 0), *rows = ir_operand(op, 1);
    return ir_op_is(op, IR_OP_Gather) && infer_value_rank(rows) == 1 &&
           infer_find_axis(ir_op_axis(op), infer_value_rank(x), axis) &&
           are_fewer(rows->type->dims[0], x->type->dims[*axis]);
}

/* The same, with numbers that are rows of one element each: what NonZero finds, turned around. */
static bool is_gather_nd(const struct ir_op *op, int *axis)
{
    const struct ir_value *x = ir_operand(op, 0), *rows = ir_operand(op, 1);
    *axis = 0;
    return ir_op_is(op, IR_OP_GatherND) && ir_attr_int(op, "batch_dims", 0) == 0 &&
           infer_value_rank(rows) == 2 && dim_is(rows->type->dims[1], 1) &&
           are_fewer(rows->type->dims[0], x->type->dims[0]);
}

bool selection_find(struct ir_op *op, struct selection *found)
{
    found->op = op;
    return !op->opaque && infer_value_rank(ir_operand(op, 0)) > 0 &&
           (is_compress(op, &found->axis) || is_gather(op, &found->axis) ||
            is_gather_nd(op, &found->axis));
}

/* ---- Ways up --------------------------------------------------------------------------------- */

/* The one value of an element-wise op's operands that has the rows of its result, and along which
 * of its axes; NULL: there are several, or nobody knows. */
struct ir_value *selection_rows_operand(const struct ir_op *op, int axis, int *found)
{
    const struct ir_type *result = op->results[0].type;
    struct ir_value *one = NULL;
    if (op->info->cls != IR_CLASS_ELEMENTWISE || !ir_op_broadcasts(op) || result->rank < 0 ||
        dim_is(result->dims[axis], 1))
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *operand = ir_operand(op, i);
        const int at = operand ? axis - result->rank + infer_value_rank(operand) : -1;
        if (!operand || (infer_value_rank(operand) >= 0 && at < 0) || operand == one)
            continue;
        if (infer_value_rank(operand) < 0 || (one && !dim_is(operand->type->dims[at], 1)))
            return NULL;
        if (dim_is(operand->type->dims[at], 1))
            continue;
        if (operand->type->dims[at] != result->dims[axis] ||
            dtype_info(operand->type->dtype)->size > dtype_info(result->dtype)->size)
            return NULL;
        one = operand;
        *found = at;
    }
    return one;
}

/* The same of a view that adds or drops axes of one element; its operand. */
struct ir_value *selection_viewed_operand(const struct ir_op *op, int axis, int *found)
{
    const bool adds = ir_op_is(op, IR_OP_Unsqueeze);
    struct ir_value *x = ir_operand(op, 0);
    int64_t axes[IR_KNOWN_MAX];
    bool one[TSSA_MAX_RANK] = {false};
    size_t count;
    const int rank = adds ? infer_value_rank(&op->results[0]) : infer_value_rank(x);
    if ((!adds && !ir_op_is(op, IR_OP_Squeeze)) || rank < 0 ||
        !infer_const_ints(op, 1, axes, &count))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        int at;
        if (!infer_find_axis(axes[i], rank, &at))
            return NULL;
        one[at] = true;
    }
    int before = 0;
    if (adds) {
        for (int i = 0; i < axis; i++)
            before += one[i];
        *found = axis - before;
        return one[axis] ? NULL : x;
    }
    for (int i = 0; i <= axis + before; i++)
        before += one[i];
    *found = axis + before;
    return x;
}

/* The same of a Slice that leaves most of each row: it copies selected rows alone then. */
struct ir_value *selection_sliced_operand(const struct ir_op *op, int axis, int *found)
{
    const struct ir_type *result = op->results[0].type, *type;
    int64_t axes[IR_KNOWN_MAX], size, left;
    size_t count;
    if (!ir_op_is(op, IR_OP_Slice) || !infer_const_ints(op, 3, axes, &count))
        return NULL;
    type = ir_operand(op, 0)->type;
    for (size_t i = 0; i < count; i++) {
        int at;
        if (!infer_find_axis(axes[i], type->rank, &at) || at <= axis ||
            !dim_is_const(type->dims[at], &size) || !dim_is_const(result->dims[at], &left) ||
            left < size - size / 4)
            return NULL;
    }
    *found = axis;
    return ir_operand(op, 0);
}

/* Is it a join along another axis, of few? */
bool selection_is_join(const struct ir_op *op, int axis, int *along)
{
    return ir_op_is(op, IR_OP_Concat) && op->n_operands <= MOST_JOINED &&
           infer_find_axis(ir_op_axis(op), infer_value_rank(&op->results[0]), along) &&
           *along != axis;
}
