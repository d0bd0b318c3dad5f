/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of movement.def: rearrangements of elements, and shape queries. */
#include <string.h>

#include "ir/infer_movement.h"

/* ---- Common ---------------------------------------------------------------------------------- */

int infer_dims(const struct ir_op *op, uint32_t index, const struct dim **dims)
{
    int rank = infer_rank(op, index);
    for (int i = 0; i < rank; i++)
        dims[i] = infer_dim(op, index, i);
    return rank;
}

int64_t infer_list_length(const struct ir_op *op, uint32_t index)
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

tssa_status *infer_set_fresh(struct ir_op *op, int64_t rank)
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

tssa_status *infer_set_same(struct ir_op *op)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_dims(op, 0, dims);
    return rank < 0 ? infer_set_fresh(op, -1)
                    : infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

tssa_status *infer_pass_known(struct ir_op *op, int rank)
{
    const struct ir_known *known = infer_known(op, 0);
    return known && rank <= 1 ? infer_set_known(op, 0, known->count, known->elements) : NULL;
}

const struct dim *infer_not_negative(struct ir_graph *graph, const struct dim *dim)
{
    return dim && dim->low >= 0 ? dim : dim_max(&graph->dims, dim, dim_const(&graph->dims, 0));
}

/* ---- Shape and Size -------------------------------------------------------------------------- */

static int shape_clamp(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

INFER_RULE(shape)
{
    const struct dim *dims[TSSA_MAX_RANK], *length;
    int rank = infer_dims(op, 0, dims);
    if (rank < 0) {
        length = infer_fresh_below(op, dim_const(&graph->dims, TSSA_MAX_RANK));
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

/* ---- Transpose, DepthToSpace, SpaceToDepth --------------------------------------------------- */

INFER_RULE(transpose)
{
    const struct dim *dims[TSSA_MAX_RANK], *result[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    int rank = infer_dims(op, 0, dims);
    size_t count;
    const int64_t *perm = ir_attr_ints(op, "perm", &count);
    (void)graph;
    if (rank < 0)
        return infer_set_fresh(op, perm ? (int64_t)count : -1);
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
    return infer_pass_known(op, rank);
}

/* [N, C, H, W] and a blocksize of at least 1. */
static tssa_status *read_image(struct ir_graph *graph, const struct ir_op *op,
                               const struct dim **dims, int *rank, const struct dim **block)
{
    int64_t size = ir_attr_int(op, "blocksize", 0);
    *rank = infer_dims(op, 0, dims);
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
        return infer_set_fresh(op, 4);
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
        return infer_set_fresh(op, 4);
    dims[1] = dim_mul(&graph->dims, dims[1], dim_mul(&graph->dims, b, b));
    dims[2] = dim_floordiv(&graph->dims, dims[2], b);
    dims[3] = dim_floordiv(&graph->dims, dims[3], b);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

/* ---- Concat ---------------------------------------------------------------------------------- */

/* A [0] beside operands of another rank adds nothing (see the kernel). */
static bool is_legacy_empty(const struct ir_op *op, uint32_t index)
{
    return infer_rank(op, index) == 1 && dim_is(infer_dim(op, index, 0), 0);
}

/* The elements of all operands, one after the other; nothing where none of them is known. */
static tssa_status *concat_known(struct ir_op *op)
{
    const struct dim *elements[IR_KNOWN_MAX];
    size_t count = 0;
    bool any = false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_known *known = infer_known(op, i);
        int64_t length = known ? (int64_t)known->count : infer_list_length(op, i);
        if (length < 0 || length > (int64_t)(IR_KNOWN_MAX - count))
            return NULL;
        for (int64_t j = 0; j < length; j++) {
            elements[count++] = known ? known->elements[j] : NULL;
            any |= elements[count - 1] != NULL;
        }
    }
    return any || count == 0 ? infer_set_known(op, 0, count, elements) : NULL;
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
            rank = infer_rank(op, i) >= 0 ? infer_dims(op, i, dims) : rank;
    }
    /* Of one that may turn out to be a [0], the rank says nothing. */
    if (rank < 0 || (rank == 1 && !complete && dim_is(dims[0], 0)))
        return infer_set_unranked(op, 0, dtype);
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
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

/* ---- Split ----------------------------------------------------------------------------------- */

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
    return dim_min(table, even, infer_not_negative(graph, dim_sub(table, dim, before)));
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
    int rank = infer_dims(op, 0, dims), axis;
    if (rank < 0) {
        for (uint32_t i = 0; i < op->n_results; i++)
            TRY(infer_set_unranked(op, i, infer_dtype(op, 0)));
        return NULL;
    }
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
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

/* ---- Expand and Tile ------------------------------------------------------------------------- */

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
    int x_rank = infer_dims(op, 0, dims);
    int64_t count = infer_list_length(op, 1);
    if (x_rank < 0 || count < 0)
        return infer_set_fresh(op, -1);
    int64_t rank = x_rank > count ? x_rank : count;
    if (!shape || rank > TSSA_MAX_RANK)
        return infer_set_fresh(op, rank);
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
        return infer_pass_known(op, 0);
    return rank == 1 ? repeat_known(op, result[0]) : NULL;
}

INFER_RULE(tile)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *repeats = infer_known(op, 1);
    int rank = infer_dims(op, 0, dims);
    if (rank < 0)
        return infer_set_fresh(op, infer_list_length(op, 1));
    if (!repeats)
        return infer_set_fresh(op, rank);
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
        return infer_pass_known(op, 0);
    return rank == 1 ? repeat_known(op, dims[0]) : NULL;
}

/* ---- Pad and CenterCropPad ------------------------------------------------------------------- */

INFER_RULE(pad)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *pads = infer_known(op, 1);
    int rank = infer_dims(op, 0, dims);
    int64_t axes[IR_KNOWN_MAX];
    size_t count = rank > 0 ? (size_t)rank : 0;
    if (rank < 0)
        return infer_set_fresh(op, -1);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (!pads || (ir_operand(op, 3) && !infer_const_ints(op, 3, axes, &count)))
        return infer_set_fresh(op, rank);
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
    int rank = infer_dims(op, 0, dims);
    size_t count;
    const int64_t *axes = ir_attr_ints(op, "axes", &count);
    (void)graph;
    if (rank < 0)
        return infer_set_fresh(op, -1);
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

/* ---- The rest -------------------------------------------------------------------------------- */

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
    return infer_set_same(op);
}

INFER_RULE(trilu)
{
    int rank = infer_rank(op, 0);
    (void)graph;
    if (rank == 0 || rank == 1)
        return ERROR(TSSA_MALFORMED, "the operand has rank %d, at least 2 is needed", rank);
    return infer_set_same(op);
}
