/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of movement.def: rearrangements of elements, and shape queries. */
#include <string.h>

#include "ir/infer.h"

/* ---- Common --------------------------------------------------------------------------------------- */

/* Rank and dims of an operand; -1 when unknown. */
static int read_dims(const struct ir_op *op, uint32_t index, const struct dim **dims)
{
    int rank = infer_rank(op, index);
    for (int i = 0; i < rank; i++)
        dims[i] = infer_dim(op, index, i);
    return rank;
}

/* How many elements operand `index`, a list of integers, has: -1 when unknown. */
static int64_t list_length(const struct ir_op *op, uint32_t index)
{
    int64_t length;
    const struct ir_known *known = infer_known(op, index);
    if (known)
        return (int64_t)known->count;
    int rank = infer_rank(op, index);
    if (rank == 0)
        return 1;
    return rank == 1 && dim_is_const(infer_dim(op, index, 0), &length) ? length : -1;
}

/* Result 0 has operand 0's dtype, and `rank` dims of which nothing is known (-1: not even the rank). */
static tssa_status *set_fresh(struct ir_op *op, int64_t rank)
{
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %lld, at most %d is supported",
                     (long long)rank, TSSA_MAX_RANK);
    for (int i = 0; i < rank; i++)
        dims[i] = infer_fresh(op);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), (int)rank, dims);
}

static tssa_status *set_same(struct ir_op *op)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = read_dims(op, 0, dims);
    return rank < 0 ? set_fresh(op, -1) : infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* A result of rank 0 or 1 whose elements are operand 0's, in order. */
static tssa_status *pass_known(struct ir_op *op, int rank)
{
    const struct ir_known *known = infer_known(op, 0);
    return known && rank <= 1 ? infer_set_known(op, 0, known->count, known->elements) : NULL;
}

/* max(dim, 0), for a size that a formula may make negative. */
static const struct dim *not_negative(struct ir_graph *graph, const struct dim *dim)
{
    return dim && dim->low >= 0 ? dim : dim_max(&graph->dims, dim, dim_const(&graph->dims, 0));
}

/* ---- Reshape -------------------------------------------------------------------------------------- */

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
 * The dim that is -1: what the other dims leave of the operand's elements. Copied dims cancel out first,
 * as in the kernel, because they may be 0; then equal ones, because dims do not divide by H + 1.
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
    target->dims[target->rest] = not_negative(graph, dim_floordiv(&graph->dims, have, taken));
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
    read_dims(op, 0, x_dims);
    if (const_product(x_rank, x_dims, &have) && x_rank >= 0 &&
        const_product(target->rank, target->dims, &wanted) && have != wanted)
        return ERROR(TSSA_MALFORMED, "%lld elements cannot be reshaped to %lld", (long long)have,
                     (long long)wanted);
    for (int i = 0; i < target->rank; i++)
        if (!target->dims[i])
            target->dims[i] = infer_fresh(op);
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), target->rank, target->dims));
    return pass_known(op, target->rank);
}

INFER_RULE(reshape)
{
    const struct ir_known *known = infer_known(op, 1);
    int x_rank = infer_rank(op, 0);
    struct target target;
    if (!known)
        return set_fresh(op, list_length(op, 1));
    TRY(reshape_target(op, known, x_rank, &target));
    return reshape_ranked(graph, op, x_rank, &target);
}

INFER_RULE(flatten)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[2];
    int rank = read_dims(op, 0, dims);
    int64_t axis = ir_attr_int(op, "axis", 1);
    if (rank < 0)
        return set_fresh(op, 2);
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
    int rank = read_dims(op, 0, dims), left = 0;
    int64_t size;
    (void)graph;
    if (rank < 0)
        return set_fresh(op, -1);
    if (ir_operand(op, 1)) {
        TRY(marked_axes(op, rank, marked, &known));
        int64_t count = list_length(op, 1);
        if (!known)
            return set_fresh(op, count >= 0 && count <= rank ? rank - count : -1);
    } else {
        for (int i = 0; i < rank; i++) {
            marked[i] = dim_is(dims[i], 1);
            if (!marked[i] && dims[i]->low <= 1 && dims[i]->high >= 1)
                return set_fresh(op, -1);
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
    return pass_known(op, left);
}

INFER_RULE(unsqueeze)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[TSSA_MAX_RANK];
    bool marked[TSSA_MAX_RANK], known;
    int rank = read_dims(op, 0, dims);
    int64_t count = list_length(op, 1);
    if (rank < 0 || count < 0)
        return set_fresh(op, -1);
    if (count > TSSA_MAX_RANK - rank)
        return set_fresh(op, rank + count);
    TRY(marked_axes(op, rank + (int)count, marked, &known));
    if (!known)
        return set_fresh(op, rank + count);
    for (int i = 0, from = 0; i < rank + (int)count; i++)
        result[i] = marked[i] ? dim_const(&graph->dims, 1) : dims[from++];
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank + (int)count, result));
    return pass_known(op, rank + (int)count);
}

/* ---- Shape and Size ------------------------------------------------------------------------------- */

static int shape_clamp(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

INFER_RULE(shape)
{
    const struct dim *dims[TSSA_MAX_RANK], *length;
    int rank = read_dims(op, 0, dims);
    if (rank < 0) {
        length = infer_fresh(op);
        return infer_set_tensor(op, 0, TSSA_INT64, 1, &length);
    }
    int start = shape_clamp(ir_attr_int(op, "start", 0), rank);
    int end = shape_clamp(ir_attr_int(op, "end", INT64_MAX), rank);
    int count = end > start ? end - start : 0;
    length = dim_const(&graph->dims, count);
    TRY(infer_set_tensor(op, 0, TSSA_INT64, 1, &length));
    return infer_set_known(op, 0, (size_t)count, dims + start);
}

INFER_RULE(size)
{
    int rank = infer_rank(op, 0);
    TRY(infer_set(op, 0, type_scalar(&graph->types, TSSA_INT64)));
    if (rank < 0)
        return NULL;
    const struct dim *count = dim_const(&graph->dims, 1);
    for (int i = 0; i < rank; i++)
        count = dim_mul(&graph->dims, count, infer_dim(op, 0, i));
    TRY_ALLOC(count);
    return infer_set_known(op, 0, 1, &count);
}

/* ---- Transpose, DepthToSpace, SpaceToDepth -------------------------------------------------------- */

INFER_RULE(transpose)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    int rank = read_dims(op, 0, dims);
    size_t count;
    const int64_t *perm = ir_attr_ints(op, "perm", &count);
    (void)graph;
    if (rank < 0)
        return set_fresh(op, perm ? (int64_t)count : -1);
    if (perm && count != (size_t)rank)
        return ERROR(TSSA_MALFORMED, "perm has %zu axes, the operand has rank %d", count, rank);
    for (int i = 0; i < rank; i++) {
        int axis = rank - 1 - i;
        if (perm)
            TRY(infer_axis(op, perm[i], rank, &axis));
        if (seen[axis])
            return ERROR(TSSA_MALFORMED, "perm has axis %d twice", axis);
        seen[axis] = true;
        result[i] = dims[axis];
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, result));
    return pass_known(op, rank);
}

/* [N, C, H, W] and a blocksize of at least 1. */
static tssa_status *read_image(struct ir_graph *graph, const struct ir_op *op,
                               const struct dim **dims, int *rank, const struct dim **block)
{
    int64_t size = ir_attr_int(op, "blocksize", 0);
    *rank = read_dims(op, 0, dims);
    *block = dim_const(&graph->dims, size);
    if (size < 1)
        return ERROR(TSSA_MALFORMED, "blocksize is %lld", (long long)size);
    if (*rank >= 0 && *rank != 4)
        return ERROR(TSSA_MALFORMED, "the operand has rank %d, not 4", *rank);
    return NULL;
}

INFER_RULE(depth_to_space)
{
    const struct dim *dims[TSSA_MAX_RANK], *b;
    int rank;
    TRY(read_image(graph, op, dims, &rank, &b));
    if (rank < 0)
        return set_fresh(op, 4);
    dims[1] = dim_floordiv(&graph->dims, dims[1], dim_mul(&graph->dims, b, b));
    dims[2] = dim_mul(&graph->dims, dims[2], b);
    dims[3] = dim_mul(&graph->dims, dims[3], b);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

INFER_RULE(space_to_depth)
{
    const struct dim *dims[TSSA_MAX_RANK], *b;
    int rank;
    TRY(read_image(graph, op, dims, &rank, &b));
    if (rank < 0)
        return set_fresh(op, 4);
    dims[1] = dim_mul(&graph->dims, dims[1], dim_mul(&graph->dims, b, b));
    dims[2] = dim_floordiv(&graph->dims, dims[2], b);
    dims[3] = dim_floordiv(&graph->dims, dims[3], b);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

/* ---- Concat --------------------------------------------------------------------------------------- */

/* A [0] beside operands of another rank adds nothing (see the kernel). */
static bool is_legacy_empty(const struct ir_op *op, uint32_t index)
{
    return infer_rank(op, index) == 1 && dim_is(infer_dim(op, index, 0), 0);
}

/* The elements of all operands, one after the other. */
static tssa_status *concat_known(struct ir_op *op)
{
    const struct dim *elements[IR_KNOWN_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_known *known = infer_known(op, i);
        int64_t length = known ? (int64_t)known->count : list_length(op, i);
        if (length < 0 || length > (int64_t)(IR_KNOWN_MAX - count))
            return NULL;
        for (int64_t j = 0; j < length; j++)
            elements[count++] = known ? known->elements[j] : NULL;
    }
    return infer_set_known(op, 0, count, elements);
}

/* A dim that the operands must share. */
static tssa_status *concat_shared(int d, const struct dim *a, const struct dim **result)
{
    int64_t x, y;
    bool ca = dim_is_const(a, &x), cr = dim_is_const(*result, &y);
    if (ca && cr && x != y)
        return ERROR(TSSA_MALFORMED, "the operands' dims %d are %lld and %lld", d, (long long)y,
                     (long long)x);
    if (ca)
        *result = a;
    return NULL;
}

INFER_RULE(concat)
{
    const struct dim *dims[TSSA_MAX_RANK], *total = dim_const(&graph->dims, 0);
    tssa_dtype dtype = TSSA_UNDEFINED;
    int rank = -1, axis;
    bool complete = true; /* every operand's rank is known */
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (dtype == TSSA_UNDEFINED)
            dtype = infer_dtype(op, i);
        complete = complete && infer_rank(op, i) >= 0;
        if (rank < 0 || (rank == 1 && dim_is(dims[0], 0)))
            rank = infer_rank(op, i) >= 0 ? read_dims(op, i, dims) : rank;
    }
    /* Of one that may turn out to be a [0], the rank says nothing. */
    if (rank < 0 || (rank == 1 && !complete && dim_is(dims[0], 0)))
        return infer_set_unranked(op, 0, dtype);
    TRY(infer_axis(op, ir_attr_int(op, "axis", 1), rank, &axis));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        int own = infer_rank(op, i);
        if (own < 0 || (own != rank && is_legacy_empty(op, i)))
            continue;
        int64_t length;
        if (own == 1 && rank != 1 && !dim_is_const(infer_dim(op, i, 0), &length))
            continue; /* may be a [0] in a run */
        if (own != rank)
            return ERROR(TSSA_MALFORMED, "operand %u has rank %d, another has rank %d", i, own,
                         rank);
        for (int d = 0; d < rank; d++)
            if (d != axis)
                TRY(concat_shared(d, infer_dim(op, i, d), &dims[d]));
        total = dim_add(&graph->dims, total, infer_dim(op, i, axis));
    }
    dims[axis] = complete ? total : infer_fresh(op);
    TRY(infer_set_tensor(op, 0, dtype, rank, dims));
    return rank == 1 ? concat_known(op) : NULL;
}

/* ---- Split ---------------------------------------------------------------------------------------- */

/* Part `index` of `parts` equal ones, of which the last may be smaller. */
static const struct dim *even_part(struct ir_graph *graph, const struct dim *dim, uint32_t index,
                                   uint32_t parts)
{
    struct dim_table *table = &graph->dims;
    const struct dim *even = dim_ceildiv(table, dim, dim_const(table, parts));
    if (index == 0 || dim_mul(table, even, dim_const(table, parts)) == dim)
        return even;
    if (parts == 2)
        return dim_sub(table, dim, even);
    const struct dim *before = dim_mul(table, even, dim_const(table, index));
    return dim_min(table, even, not_negative(graph, dim_sub(table, dim, before)));
}

/* Elements [offset, offset + size of the result) of operand 0. */
static tssa_status *split_known(struct ir_op *op, uint32_t index, const struct dim *size,
                                int64_t *offset)
{
    const struct ir_known *known = infer_known(op, 0);
    int64_t length;
    if (!known || *offset < 0 || !dim_is_const(size, &length) || length < 0 ||
        length > (int64_t)known->count - *offset) {
        *offset = -1;
        return NULL;
    }
    const struct dim *const *first = known->elements ? known->elements + *offset : NULL;
    *offset += length;
    return infer_set_known(op, index, (size_t)length, first);
}

INFER_RULE(split)
{
    const struct dim *dims[TSSA_MAX_RANK], *whole;
    const struct ir_known *sizes = infer_known(op, 1);
    int64_t offset = 0;
    int rank = read_dims(op, 0, dims), axis;
    if (rank < 0) {
        for (uint32_t i = 0; i < op->n_results; i++)
            TRY(infer_set_unranked(op, i, infer_dtype(op, 0)));
        return NULL;
    }
    TRY(infer_axis(op, ir_attr_int(op, "axis", 0), rank, &axis));
    if (sizes && sizes->count != op->n_results)
        return ERROR(TSSA_MALFORMED, "split has %zu sizes for %u outputs", sizes->count,
                     op->n_results);
    whole = dims[axis];
    for (uint32_t i = 0; i < op->n_results; i++) {
        dims[axis] = sizes ? sizes->elements[i] : NULL;
        if (!ir_operand(op, 1))
            dims[axis] = even_part(graph, whole, i, op->n_results);
        else if (!dims[axis])
            dims[axis] = infer_fresh(op);
        if (dims[axis] && dims[axis]->high < 0)
            return ERROR(TSSA_MALFORMED, "size %u to split into is negative", i);
        TRY(infer_set_tensor(op, i, infer_dtype(op, 0), rank, dims));
        if (rank == 1)
            TRY(split_known(op, i, dims[axis], &offset));
    }
    return NULL;
}

/* ---- Slice ---------------------------------------------------------------------------------------- */

/* Ends that mean "to the very end": INT64_MAX, INT32_MAX and what exporters write near them. */
#define FAR ((int64_t)1 << 30)

/* One axis of a slice; NULL: unknown. */
struct cut {
    const struct dim *dim, *start, *end;
    int64_t step;
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* numpy's rule, as in the kernel; *first is where the slice starts. */
static int64_t cut_const(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    start = start < 0 ? clamp(start, -dim - 1, -1) + dim : start;
    end = end < 0 ? clamp(end, -dim - 1, -1) + dim : end;
    if (step > 0) {
        *first = start = clamp(start, 0, dim);
        end = clamp(end, 0, dim);
        return end > start ? (end - start - 1) / step + 1 : 0;
    }
    *first = start = clamp(start, -1, dim - 1);
    end = clamp(end, -1, dim - 1);
    return start > end ? (start - end - 1) / -(step < -INT64_MAX ? -INT64_MAX : step) + 1 : 0;
}

/* An end or start, counted from the front and within 0 and dim; NULL when its sign is not known. */
static const struct dim *cut_bound(struct ir_graph *graph, const struct dim *bound,
                                   const struct dim *dim)
{
    int64_t value;
    if (dim_is_const(bound, &value) && value < 0)
        return value <= -FAR ? dim_const(&graph->dims, 0)
                             : not_negative(graph, dim_add(&graph->dims, dim, bound));
    if (!bound || bound->low < 0)
        return NULL;
    return bound->low >= FAR ? dim : dim_min(&graph->dims, bound, dim);
}

/* NULL: unknown. */
static const struct dim *cut_forward(struct ir_graph *graph, const struct cut *cut)
{
    const struct dim *end = cut_bound(graph, cut->end, cut->dim);
    /* With end <= dim, a start that is not negative needs no clamping: max(end - start, 0). */
    const struct dim *start = cut->start;
    if (start && start->low < 0)
        start = cut_bound(graph, start, cut->dim);
    if (!start || !end)
        return NULL;
    if (start->low >= FAR)
        return dim_const(&graph->dims, 0);
    const struct dim *length = not_negative(graph, dim_sub(&graph->dims, end, start));
    return cut->step == 1 ? length
                          : dim_ceildiv(&graph->dims, length, dim_const(&graph->dims, cut->step));
}

static const struct dim *cut_length(struct ir_graph *graph, const struct cut *cut)
{
    int64_t dim = 0, start = 0, end = 0, first;
    bool start_known = dim_is_const(cut->start, &start), end_known = dim_is_const(cut->end, &end);
    if (cut->step == 0 || cut->step <= -FAR)
        return NULL;
    if (dim_is_const(cut->dim, &dim) && start_known && end_known)
        return dim_const(&graph->dims, cut_const(dim, start, end, cut->step, &first));
    if (cut->step > 0)
        return cut_forward(graph, cut);
    /* Backwards, the whole axis is what is asked for in practice. */
    if (start_known && (start == -1 || start >= FAR) && end_known && end <= -FAR)
        return dim_ceildiv(&graph->dims, cut->dim, dim_const(&graph->dims, -cut->step));
    return NULL;
}

const struct dim *infer_slice_length(struct ir_graph *graph, const struct dim *dim,
                                     const struct dim *start, const struct dim *end, int64_t step)
{
    return cut_length(graph,
                      &(const struct cut){.dim = dim, .start = start, .end = end, .step = step});
}

/* Element i of a list operand, or `fallback` for an absent one; NULL: unknown. */
static const struct dim *list_element(const struct ir_op *op, uint32_t index, size_t i,
                                      const struct dim *fallback)
{
    if (!ir_operand(op, index))
        return fallback;
    const struct ir_known *known = infer_known(op, index);
    return known && i < known->count ? known->elements[i] : NULL;
}

/* The elements that a slice of a list takes. */
static tssa_status *slice_known(struct ir_op *op, const struct cut *cut)
{
    const struct ir_known *known = infer_known(op, 0);
    const struct dim *elements[IR_KNOWN_MAX];
    int64_t start = 0, end = 0, first;
    if (!known || !dim_is_const(cut->start, &start) || !dim_is_const(cut->end, &end) ||
        cut->step == 0)
        return NULL;
    int64_t length = cut_const((int64_t)known->count, start, end, cut->step, &first);
    for (int64_t i = 0; i < length; i++)
        elements[i] = known->elements[first + i * cut->step];
    return infer_set_known(op, 0, (size_t)length, elements);
}

INFER_RULE(slice)
{
    const struct dim *dims[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    int rank = read_dims(op, 0, dims);
    int64_t count = list_length(op, 1);
    struct cut cut = {0};
    if (rank < 0)
        return set_fresh(op, -1);
    if (count < 0 || (ir_operand(op, 3) && !infer_known(op, 3)))
        return set_fresh(op, rank);
    for (int64_t i = 0; i < count; i++) {
        int axis;
        int64_t value;
        const struct dim *one = dim_const(&graph->dims, 1), *at = dim_const(&graph->dims, i);
        if (!dim_is_const(list_element(op, 3, (size_t)i, at), &value))
            return set_fresh(op, rank);
        TRY(infer_axis(op, value, rank, &axis));
        if (seen[axis])
            return ERROR(TSSA_MALFORMED, "axis %d is sliced twice", axis);
        seen[axis] = true;
        cut.dim = dims[axis];
        cut.start = list_element(op, 1, (size_t)i, NULL);
        cut.end = list_element(op, 2, (size_t)i, NULL);
        const struct dim *step = list_element(op, 4, (size_t)i, one);
        if (dim_is(step, 0))
            return ERROR(TSSA_MALFORMED, "the step of axis %d is 0", axis);
        if (!dim_is_const(step, &cut.step))
            cut.step = 0;
        dims[axis] = cut_length(graph, &cut);
        if (!dims[axis])
            dims[axis] = infer_fresh_below(op, cut.dim);
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims));
    if (rank == 1 && count == 0)
        return pass_known(op, 1);
    return rank == 1 ? slice_known(op, &cut) : NULL;
}

/* ---- Expand and Tile ------------------------------------------------------------------------------ */

/* A list of `length` times the one known element of operand 0. */
static tssa_status *repeat_known(struct ir_op *op, const struct dim *length)
{
    const struct ir_known *known = infer_known(op, 0);
    const struct dim *elements[IR_KNOWN_MAX];
    int64_t count;
    if (!known || known->count == 0 || !dim_is_const(length, &count) || count > IR_KNOWN_MAX)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        elements[i] = known->elements[(size_t)i % known->count];
    return infer_set_known(op, 0, (size_t)count, elements);
}

INFER_RULE(expand)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[TSSA_MAX_RANK];
    const struct ir_known *shape = infer_known(op, 1);
    int x_rank = read_dims(op, 0, dims);
    int64_t count = list_length(op, 1);
    if (x_rank < 0 || count < 0)
        return set_fresh(op, -1);
    int64_t rank = x_rank > count ? x_rank : count;
    if (!shape || rank > TSSA_MAX_RANK)
        return set_fresh(op, rank);
    for (int64_t i = 0; i < rank; i++) {
        int64_t xi = i - (rank - x_rank), si = i - (rank - count);
        const struct dim *one = dim_const(&graph->dims, 1);
        const struct dim *wanted = si >= 0 ? shape->elements[si] : one;
        if (wanted && wanted->high < 0)
            return ERROR(TSSA_MALFORMED, "dim %lld of the shape to expand to is negative",
                         (long long)si);
        if (wanted)
            TRY(infer_broadcast_dim(op, xi >= 0 ? dims[xi] : one, wanted, &result[i]));
        else
            result[i] = infer_fresh(op);
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), (int)rank, result));
    if (rank == 0)
        return pass_known(op, 0);
    return rank == 1 ? repeat_known(op, result[0]) : NULL;
}

INFER_RULE(tile)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *repeats = infer_known(op, 1);
    int rank = read_dims(op, 0, dims);
    if (rank < 0)
        return set_fresh(op, list_length(op, 1));
    if (!repeats)
        return set_fresh(op, rank);
    if (repeats->count != (size_t)rank)
        return ERROR(TSSA_MALFORMED, "repeats has %zu elements, the operand has rank %d",
                     repeats->count, rank);
    for (int i = 0; i < rank; i++) {
        const struct dim *times = repeats->elements[i];
        if (times && times->high < 0)
            return ERROR(TSSA_MALFORMED, "a dim cannot be repeated a negative number of times");
        dims[i] = times ? dim_mul(&graph->dims, dims[i], times) : infer_fresh(op);
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims));
    if (rank == 0)
        return pass_known(op, 0);
    return rank == 1 ? repeat_known(op, dims[0]) : NULL;
}

/* ---- Pad and CenterCropPad ------------------------------------------------------------------------ */

INFER_RULE(pad)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *pads = infer_known(op, 1);
    int rank = read_dims(op, 0, dims);
    int64_t axes[IR_KNOWN_MAX];
    size_t count = rank > 0 ? (size_t)rank : 0;
    if (rank < 0)
        return set_fresh(op, -1);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (!pads || (ir_operand(op, 3) && !infer_const_ints(op, 3, axes, &count)))
        return set_fresh(op, rank);
    if (pads->count != 2 * count)
        return ERROR(TSSA_MALFORMED, "pads has %zu elements for %zu axes", pads->count, count);
    for (size_t i = 0; i < count; i++) {
        const struct dim *before = pads->elements[i], *after = pads->elements[count + i];
        int axis;
        TRY(infer_axis(op, axes[i], rank, &axis));
        const struct dim *sum = before && after ? dim_add(&graph->dims, before, after) : NULL;
        dims[axis] = sum ? dim_add(&graph->dims, dims[axis], sum) : infer_fresh(op);
        if (dims[axis] && dims[axis]->high < 0)
            return ERROR(TSSA_MALFORMED, "axis %d would get a negative size", axis);
    }
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(center_crop_pad)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *shape = infer_known(op, 1);
    int rank = read_dims(op, 0, dims);
    size_t count;
    const int64_t *axes = ir_attr_ints(op, "axes", &count);
    (void)graph;
    if (rank < 0)
        return set_fresh(op, -1);
    if (!axes)
        count = (size_t)rank;
    if (shape && shape->count != count)
        return ERROR(TSSA_MALFORMED, "shape has %zu elements for %zu axes", shape->count, count);
    for (size_t i = 0; i < count; i++) {
        int axis = (int)i;
        if (axes)
            TRY(infer_axis(op, axes[i], rank, &axis));
        const struct dim *size = shape ? shape->elements[i] : NULL;
        if (size && size->high < 0)
            return ERROR(TSSA_MALFORMED, "the target size of axis %d is negative", axis);
        dims[axis] = size ? size : infer_fresh(op);
    }
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* ---- The rest ------------------------------------------------------------------------------------- */

INFER_RULE(reverse_sequence)
{
    int rank = infer_rank(op, 0), batch, time;
    (void)graph;
    if (rank >= 0) {
        TRY(infer_axis(op, ir_attr_int(op, "batch_axis", 1), rank, &batch));
        TRY(infer_axis(op, ir_attr_int(op, "time_axis", 0), rank, &time));
        if (batch == time)
            return ERROR(TSSA_MALFORMED, "batch_axis and time_axis are both %d", batch);
    }
    return set_same(op);
}

INFER_RULE(trilu)
{
    int rank = infer_rank(op, 0);
    (void)graph;
    if (rank == 0 || rank == 1)
        return ERROR(TSSA_MALFORMED, "the operand has rank %d, at least 2 is needed", rank);
    return set_same(op);
}
