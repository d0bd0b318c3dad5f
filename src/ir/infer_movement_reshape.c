/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of what only gives elements another shape: Reshape, Flatten, Squeeze, Unsqueeze. */
#include "ir/infer_movement.h"

/* The target of a Reshape: each dim is copied from the operand, given, or the rest (-1). */
struct target {
    int rank, rest;                        /* rest: the dim that is -1; -1: none */
    const struct dim *dims[TSSA_MAX_RANK]; /* NULL: unknown, may be anything */
    bool copied[TSSA_MAX_RANK];
    bool exact; /* nothing is unknown */
};

static tssa_status *reshape_target(const struct ir_op *op, const struct ir_known *known, int x_rank,
                                   struct target *target)
{
    bool allow_zero = ir_attr_int(op, "allowzero", 0) != 0;
    target->rest = -1;
    target->exact = true;
    if (known->count > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the target has rank %zu, at most %d is supported",
                     known->count, TSSA_MAX_RANK);
    target->rank = (int)known->count;
    for (int i = 0; i < target->rank; i++) {
        const struct dim *element = known->elements[i];
        int64_t value = 1;
        target->copied[i] = false;
        target->dims[i] = element;
        if (!element || (!dim_is_const(element, &value) && element->low < 0)) {
            target->dims[i] = NULL;
            target->exact = false;
        } else if (value == 0 && !allow_zero) {
            if (x_rank >= 0 && i >= x_rank)
                return ERROR(TSSA_MALFORMED,
                             "target dim %d copies a dim that an operand of rank %d "
                             "does not have",
                             i, x_rank);
            target->dims[i] = x_rank >= 0 ? infer_dim(op, 0, i) : NULL;
            target->copied[i] = true;
            target->exact = target->exact && x_rank >= 0;
        } else if (value == -1) {
            if (target->rest >= 0)
                return ERROR(TSSA_MALFORMED, "the target shape has more than one -1");
            target->rest = i;
            target->dims[i] = NULL;
        } else if (value < 0) {
            return ERROR(TSSA_MALFORMED, "the target shape has the dim %lld", (long long)value);
        }
    }
    return NULL;
}

/* Products of dims; false when one is not a constant, or they overflow. */
static bool const_product(int rank, const struct dim *const *dims, int64_t *product)
{
    *product = 1;
    for (int i = 0; i < rank; i++) {
        int64_t value;
        if (!dim_is_const(dims[i], &value) || !i64_mul(*product, value, product))
            return false;
    }
    return true;
}

/* A dim of the operand that is `dim` and not cancelled yet; -1: none. */
static int equal_dim(const struct ir_op *op, int x_rank, const bool *cancelled,
                     const struct dim *dim)
{
    for (int i = 0; i < x_rank; i++)
        if (!cancelled[i] && infer_dim(op, 0, i) == dim)
            return i;
    return -1;
}

/*
 * The dim that is -1: what the other dims leave of the operand's elements. Copied dims cancel out
 * first, as in the kernel, because they may be 0; then equal ones, because dims do not divide by H
 * + 1.
 */
static tssa_status *reshape_rest(struct ir_graph *graph, const struct ir_op *op, int x_rank,
                                 struct target *target)
{
    const struct dim *have = dim_const(&graph->dims, 1), *taken = have;
    bool cancelled[TSSA_MAX_RANK];
    int64_t h, t;
    for (int i = 0; i < x_rank; i++)
        cancelled[i] = i < target->rank && target->copied[i];
    for (int i = 0; i < target->rank; i++) {
        if (i == target->rest || target->copied[i])
            continue;
        int equal =
            dim_is(target->dims[i], 0) ? -1 : equal_dim(op, x_rank, cancelled, target->dims[i]);
        if (equal >= 0)
            cancelled[equal] = true;
        else
            taken = dim_mul(&graph->dims, taken, target->dims[i]);
    }
    for (int i = 0; i < x_rank; i++)
        if (!cancelled[i])
            have = dim_mul(&graph->dims, have, infer_dim(op, 0, i));
    if (dim_is_const(taken, &t) && (t == 0 || (dim_is_const(have, &h) && h % t != 0)))
        return ERROR(TSSA_MALFORMED, "no size fits the -1 of the target shape");
    target->dims[target->rest] = infer_not_negative(graph, dim_floordiv(&graph->dims, have, taken));
    TRY_ALLOC(target->dims[target->rest]);
    return NULL;
}

static tssa_status *reshape_ranked(struct ir_graph *graph, struct ir_op *op, int x_rank,
                                   struct target *target)
{
    const struct dim *x_dims[TSSA_MAX_RANK];
    int64_t have, wanted;
    if (x_rank >= 0 && target->exact && target->rest >= 0)
        TRY(reshape_rest(graph, op, x_rank, target));
    infer_dims(op, 0, x_dims);
    if (const_product(x_rank, x_dims, &have) && x_rank >= 0 &&
        const_product(target->rank, target->dims, &wanted) && have != wanted)
        return ERROR(TSSA_MALFORMED, "%lld elements cannot be reshaped to %lld", (long long)have,
                     (long long)wanted);
    for (int i = 0; i < target->rank; i++)
        if (!target->dims[i])
            target->dims[i] = infer_fresh(op);
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), target->rank, target->dims));
    return infer_pass_known(op, target->rank);
}

INFER_RULE(reshape)
{
    const struct ir_known *known = infer_known(op, 1);
    int x_rank = infer_rank(op, 0);
    struct target target;
    if (!known)
        return infer_set_fresh(op, infer_list_length(op, 1));
    TRY(reshape_target(op, known, x_rank, &target));
    return reshape_ranked(graph, op, x_rank, &target);
}

INFER_RULE(flatten)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[2];
    int rank = infer_dims(op, 0, dims);
    int64_t axis = ir_op_axis(op);
    if (rank < 0)
        return infer_set_fresh(op, 2);
    if (axis < -rank || axis > rank)
        return ERROR(TSSA_MALFORMED, "axis %lld is out of range for rank %d", (long long)axis,
                     rank);
    axis += axis < 0 ? rank : 0;
    result[0] = result[1] = dim_const(&graph->dims, 1);
    for (int i = 0; i < rank; i++)
        result[i >= axis] = dim_mul(&graph->dims, result[i >= axis], dims[i]);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 2, result);
}

/* Marks the axes that operand 1 lists, when they are known. */
static tssa_status *marked_axes(const struct ir_op *op, int rank, bool *marked, bool *known)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count;
    for (int i = 0; i < rank; i++)
        marked[i] = false;
    *known = infer_const_ints(op, 1, axes, &count);
    for (size_t i = 0; *known && i < count; i++) {
        int axis;
        TRY(infer_axis(op, axes[i], rank, &axis));
        if (marked[axis])
            return ERROR(TSSA_MALFORMED, "axis %d is given twice", axis);
        marked[axis] = true;
    }
    return NULL;
}

INFER_RULE(squeeze)
{
    const struct dim *dims[TSSA_MAX_RANK];
    bool marked[TSSA_MAX_RANK], known = true;
    int rank = infer_dims(op, 0, dims), left = 0;
    int64_t size;
    (void)graph;
    if (rank < 0)
        return infer_set_fresh(op, -1);
    if (ir_operand(op, 1)) {
        TRY(marked_axes(op, rank, marked, &known));
        int64_t count = infer_list_length(op, 1);
        if (!known)
            return infer_set_fresh(op, count >= 0 && count <= rank ? rank - count : -1);
    } else {
        for (int i = 0; i < rank; i++) {
            marked[i] = dim_is(dims[i], 1);
            if (!marked[i] && dims[i]->low <= 1 && dims[i]->high >= 1)
                return infer_set_fresh(op, -1);
        }
    }
    for (int i = 0; i < rank; i++) {
        if (!marked[i])
            dims[left++] = dims[i];
        else if (dim_is_const(dims[i], &size) && size != 1)
            return ERROR(TSSA_MALFORMED, "axis %d has the size %lld and cannot be squeezed", i,
                         (long long)size);
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), left, dims));
    return infer_pass_known(op, left);
}

INFER_RULE(unsqueeze)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[TSSA_MAX_RANK];
    bool marked[TSSA_MAX_RANK], known;
    int rank = infer_dims(op, 0, dims);
    int64_t count = infer_list_length(op, 1);
    if (rank < 0 || count < 0)
        return infer_set_fresh(op, -1);
    if (count > TSSA_MAX_RANK - rank)
        return infer_set_fresh(op, rank + count);
    TRY(marked_axes(op, rank + (int)count, marked, &known));
    if (!known)
        return infer_set_fresh(op, rank + count);
    for (int i = 0, from = 0; i < rank + (int)count; i++)
        result[i] = marked[i] ? dim_const(&graph->dims, 1) : dims[from++];
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank + (int)count, result));
    return infer_pass_known(op, rank + (int)count);
}
