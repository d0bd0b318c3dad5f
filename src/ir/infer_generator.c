/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of generator.def. */
#include <math.h>

#include "ir/infer.h"
#include "ir/wrap.h"

/* ---- ConstantOfShape ------------------------------------------------------------------------- */

/* A list filled with one integer. */
static tssa_status *constant_elements(struct ir_graph *graph, struct ir_op *op,
                                      const struct tensor *value, const struct dim *length)
{
    const struct dim *elements[IR_KNOWN_MAX], *element;
    int64_t count = 1;
    if (!value || !(dtype_is_integer(value->dtype) || value->dtype == TSSA_BOOL) ||
        (length && (!dim_is_const(length, &count) || count > IR_KNOWN_MAX)))
        return NULL;
    TRY(infer_element(graph, value->dtype, value->data, &element));
    for (int64_t i = 0; i < count; i++)
        elements[i] = element;
    return infer_set_known(op, 0, (size_t)count, elements);
}

INFER_RULE(constant_of_shape)
{
    const struct ir_known *shape = infer_known(op, 0);
    const struct tensor *value = ir_attr_tensor(op, "value");
    const struct dim *dims[TSSA_MAX_RANK];
    tssa_dtype dtype = value ? value->dtype : TSSA_FLOAT;
    int64_t rank;
    if (value && tensor_count(value) != 1)
        return ERROR(TSSA_MALFORMED, "value has %zu elements, not 1", tensor_count(value));
    if (shape)
        rank = (int64_t)shape->count;
    else if (infer_rank(op, 0) != 1 || !dim_is_const(infer_dim(op, 0, 0), &rank))
        return infer_set_unranked(op, 0, dtype);
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %lld, at most %d is supported",
                     (long long)rank, TSSA_MAX_RANK);
    for (int64_t i = 0; i < rank; i++) {
        dims[i] = shape ? shape->elements[i] : NULL;
        if (dims[i] && dims[i]->high < 0)
            return ERROR(TSSA_MALFORMED, "dim %lld of the shape is negative", (long long)i);
        if (!dims[i])
            dims[i] = infer_fresh(op);
    }
    TRY(infer_set_tensor(op, 0, dtype, (int)rank, dims));
    return rank <= 1 ? constant_elements(graph, op, value, rank == 1 ? dims[0] : NULL) : NULL;
}

/* ---- EyeLike, OneHot ------------------------------------------------------------------------- */

INFER_RULE(eye_like)
{
    const struct dim *dims[2];
    int rank = infer_rank(op, 0);
    int64_t dtype = ir_attr_int(op, "dtype", TSSA_UNDEFINED);
    (void)graph;
    if (dtype < 0 || dtype >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "dtype %lld does not exist", (long long)dtype);
    if (rank >= 0 && rank != 2)
        return ERROR(TSSA_MALFORMED, "the operand has rank %d, not 2", rank);
    for (int i = 0; i < 2; i++)
        dims[i] = rank == 2 ? infer_dim(op, 0, i) : infer_fresh(op);
    return infer_set_tensor(op, 0, dtype ? (tssa_dtype)dtype : infer_dtype(op, 0), 2, dims);
}

INFER_RULE(one_hot)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_known *depth = infer_known(op, 1);
    int rank = infer_rank(op, 0), axis;
    (void)graph;
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 2));
    if (rank == TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %d, at most %d is supported",
                     rank + 1, TSSA_MAX_RANK);
    TRY(infer_axis(op, ir_op_axis(op), rank + 1, &axis));
    for (int i = 0, from = 0; i <= rank; i++) {
        if (i != axis)
            dims[i] = infer_dim(op, 0, from++);
        else if (depth && depth->count == 1 && depth->elements[0])
            dims[i] = depth->elements[0];
        else
            dims[i] = infer_fresh(op);
    }
    return infer_set_tensor(op, 0, infer_dtype(op, 2), rank + 1, dims);
}

/* ---- Range ----------------------------------------------------------------------------------- */

static const struct dim *known_scalar(const struct ir_op *op, uint32_t index)
{
    const struct ir_known *known = infer_known(op, index);
    return known && known->count == 1 ? known->elements[0] : NULL;
}

static bool constant_float(const struct ir_op *op, uint32_t index, double *value)
{
    const struct tensor *tensor = infer_const_tensor(op, index);
    if (!tensor || !dtype_is_float(tensor->dtype) || tensor_count(tensor) != 1)
        return false;
    *value = dtype_load_double(tensor->dtype, tensor->data);
    return true;
}

/* max(ceil((limit - start) / delta), 0); NULL: unknown. */
static const struct dim *range_length(struct ir_graph *graph, const struct ir_op *op)
{
    struct dim_table *table = &graph->dims;
    const struct dim *start = known_scalar(op, 0), *limit = known_scalar(op, 1);
    int64_t delta;
    double s, l, d;
    if (start && limit && dim_is_const(known_scalar(op, 2), &delta) && delta != 0 &&
        delta != INT64_MIN) {
        const struct dim *span =
            delta > 0 ? dim_sub(table, limit, start) : dim_sub(table, start, limit);
        span = dim_ceildiv(table, span, dim_const(table, delta > 0 ? delta : -delta));
        return span && span->low >= 0 ? span : dim_max(table, span, dim_const(table, 0));
    }
    if (constant_float(op, 0, &s) && constant_float(op, 1, &l) && constant_float(op, 2, &d)) {
        double count = ceil((l - s) / d);
        if (count < 0x1p62)
            return dim_const(table, count > 0 ? (int64_t)count : 0);
    }
    return NULL;
}

static tssa_status *range_elements(struct ir_graph *graph, struct ir_op *op,
                                   const struct dim *length)
{
    const struct dim *start = known_scalar(op, 0), *delta = known_scalar(op, 2);
    const struct dim *elements[IR_KNOWN_MAX];
    int64_t count;
    if (!start || !delta || !dim_is_const(length, &count) || count > IR_KNOWN_MAX)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        elements[i] = i == 0 ? start : dim_add(&graph->dims, elements[i - 1], delta);
        TRY_ALLOC(elements[i]);
        if (!wrap_never(graph, op->results[0].type->dtype, elements[i]))
            return NULL;
    }
    return infer_set_known(op, 0, (size_t)count, elements);
}

INFER_RULE(range)
{
    const struct dim *delta = known_scalar(op, 2), *length;
    tssa_dtype dtype = infer_dtype(op, 0);
    for (uint32_t i = 1; i < 3 && dtype == TSSA_UNDEFINED; i++)
        dtype = infer_dtype(op, i);
    if (dim_is(delta, 0))
        return ERROR(TSSA_MALFORMED, "delta is 0");
    length = range_length(graph, op);
    if (!length)
        length = infer_fresh(op);
    TRY(infer_set_tensor(op, 0, dtype, 1, &length));
    return range_elements(graph, op, length);
}
