/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of gather.def. */
#include "ir/infer.h"

static tssa_status *set_like_data(struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
    if (!type || type->kind != TYPE_TENSOR)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    return infer_set(op, 0, type);
}

/* ---- Gather ---------------------------------------------------------------------------------- */

/* The chosen elements of a known list. */
static tssa_status *gather_known(struct ir_op *op)
{
    const struct ir_known *data = infer_known(op, 0), *indices = infer_known(op, 1);
    const struct dim *elements[IR_KNOWN_MAX];
    if (!data || !indices || infer_rank(op, 1) > 1)
        return NULL;
    for (size_t i = 0; i < indices->count; i++) {
        int64_t at, count = (int64_t)data->count;
        elements[i] = NULL;
        if (!dim_is_const(indices->elements[i], &at))
            continue;
        if (at < -count || at >= count)
            return ERROR(TSSA_MALFORMED, "index %lld is outside a dim of %lld", (long long)at,
                         (long long)count);
        elements[i] = data->elements[at < 0 ? at + count : at];
    }
    return infer_set_known(op, 0, indices->count, elements);
}

INFER_RULE(gather)
{
    const struct dim *dims[2 * TSSA_MAX_RANK];
    int data = infer_rank(op, 0), indices = infer_rank(op, 1), axis, rank = 0;
    (void)graph;
    if (data < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    TRY(infer_axis(op, ir_op_axis(op), data, &axis));
    if (indices < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < axis; i++)
        dims[rank++] = infer_dim(op, 0, i);
    for (int i = 0; i < indices; i++)
        dims[rank++] = infer_dim(op, 1, i);
    for (int i = axis + 1; i < data; i++)
        dims[rank++] = infer_dim(op, 0, i);
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %d, at most %d is supported",
                     rank, TSSA_MAX_RANK);
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims));
    return data == 1 ? gather_known(op) : NULL;
}

INFER_RULE(gather_elements)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int data = infer_rank(op, 0), rank = infer_rank(op, 1), axis;
    (void)graph;
    if (data >= 0)
        TRY(infer_axis(op, ir_op_axis(op), data, &axis));
    if (data >= 0 && rank >= 0 && data != rank)
        return ERROR(TSSA_MALFORMED, "data has rank %d, indices have rank %d", data, rank);
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < rank; i++)
        dims[i] = infer_dim(op, 1, i);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(gather_nd)
{
    const struct dim *dims[2 * TSSA_MAX_RANK];
    int data = infer_rank(op, 0), indices = infer_rank(op, 1), rank = 0;
    int64_t batch = ir_attr_int(op, "batch_dims", 0), depth;
    (void)graph;
    if (data < 0 || indices < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (indices < 1 || batch < 0 || batch >= indices || batch > data)
        return ERROR(TSSA_MALFORMED,
                     "batch_dims %lld does not fit indices of rank %d and data of rank %d",
                     (long long)batch, indices, data);
    if (!dim_is_const(infer_dim(op, 1, indices - 1), &depth))
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (depth > data - batch)
        return ERROR(TSSA_MALFORMED, "indices of %lld elements do not fit data of rank %d",
                     (long long)depth, data);
    for (int i = 0; i < indices - 1; i++)
        dims[rank++] = infer_dim(op, 1, i);
    for (int i = (int)(batch + depth); i < data; i++)
        dims[rank++] = infer_dim(op, 0, i);
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %d, at most %d is supported",
                     rank, TSSA_MAX_RANK);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* Columns of the last axis; a list is one row. */
INFER_RULE(array_feature_extractor)
{
    const struct dim *dims[TSSA_MAX_RANK], *count = dim_const(&graph->dims, 1);
    int data = infer_rank(op, 0), indices = infer_rank(op, 1), rank = data > 1 ? data : 2;
    if (data == 0)
        return ERROR(TSSA_MALFORMED, "the operand is a scalar");
    if (data < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < indices; i++)
        count = dim_mul(&graph->dims, count, infer_dim(op, 1, i));
    for (int i = 0; i < rank - 1; i++)
        dims[i] = data == 1 ? dim_const(&graph->dims, 1) : infer_dim(op, 0, i);
    dims[rank - 1] = indices < 0 ? infer_fresh(op) : count;
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* ---- Scatter --------------------------------------------------------------------------------- */

/* The integers of operand 1; a constant's also where its rank, [n, 1], is not tracked. */
static bool scatter_indices(const struct ir_op *op, int64_t *indices, size_t *count)
{
    if (infer_const_ints(op, 1, indices, count))
        return true;
    const struct tensor *tensor = infer_const_tensor(op, 1);
    if (!tensor || !dtype_is_integer(tensor->dtype) || tensor_count(tensor) > IR_KNOWN_MAX)
        return false;
    *count = tensor_count(tensor);
    for (size_t i = 0; i < *count; i++)
        indices[i] = dtype_load_int64(tensor->dtype, (const char *)tensor->data +
                                                         i * dtype_info(tensor->dtype)->size);
    return true;
}

/* A known list with some elements replaced: how exporters write `shape[1] = n`. */
static tssa_status *scatter_known(struct ir_op *op)
{
    const struct ir_known *data = infer_known(op, 0), *updates = infer_known(op, 2);
    const struct dim *elements[IR_KNOWN_MAX];
    int64_t indices[IR_KNOWN_MAX];
    size_t count;
    bool plain = ir_attr_str(op, "reduction", "none")[0] == 'n';
    if (!plain || !data || !updates || !scatter_indices(op, indices, &count) ||
        updates->count != count)
        return NULL;
    for (size_t i = 0; i < data->count; i++)
        elements[i] = data->elements[i];
    for (size_t i = 0; i < count; i++) {
        int64_t at = indices[i] < 0 ? indices[i] + (int64_t)data->count : indices[i];
        if (at < 0 || at >= (int64_t)data->count)
            return ERROR(TSSA_MALFORMED, "index %lld is outside a dim of %zu",
                         (long long)indices[i], data->count);
        elements[at] = updates->elements[i];
    }
    return infer_set_known(op, 0, data->count, elements);
}

INFER_RULE(scatter_elements)
{
    int data = infer_rank(op, 0), indices = infer_rank(op, 1), updates = infer_rank(op, 2), axis;
    (void)graph;
    if (data >= 0)
        TRY(infer_axis(op, ir_op_axis(op), data, &axis));
    if (data >= 0 && indices >= 0 && data != indices)
        return ERROR(TSSA_MALFORMED, "data has rank %d, indices have rank %d", data, indices);
    if (indices >= 0 && updates >= 0 && indices != updates)
        return ERROR(TSSA_MALFORMED, "indices have rank %d, updates have rank %d", indices,
                     updates);
    TRY(set_like_data(op));
    return data == 1 ? scatter_known(op) : NULL;
}

INFER_RULE(scatter_nd)
{
    int data = infer_rank(op, 0), indices = infer_rank(op, 1), updates = infer_rank(op, 2);
    int64_t depth;
    (void)graph;
    if (indices == 0)
        return ERROR(TSSA_MALFORMED, "indices must have rank 1 or more");
    if (data >= 0 && indices > 0 && dim_is_const(infer_dim(op, 1, indices - 1), &depth)) {
        if (depth > data)
            return ERROR(TSSA_MALFORMED, "indices of %lld elements do not fit data of rank %d",
                         (long long)depth, data);
        if (updates >= 0 && updates != indices - 1 + data - (int)depth)
            return ERROR(TSSA_MALFORMED, "updates have rank %d, not %d", updates,
                         indices - 1 + data - (int)depth);
    }
    TRY(set_like_data(op));
    return data == 1 ? scatter_known(op) : NULL;
}

INFER_RULE(tensor_scatter)
{
    int data = infer_rank(op, 0), updates = infer_rank(op, 1), axis;
    (void)graph;
    if (data >= 0) {
        TRY(infer_axis(op, ir_op_axis(op), data, &axis));
        if (axis == 0)
            return ERROR(TSSA_MALFORMED, "axis is 0, the batch");
        if (updates >= 0 && updates != data)
            return ERROR(TSSA_MALFORMED, "the cache has rank %d, the update has rank %d", data,
                         updates);
    }
    return set_like_data(op);
}
