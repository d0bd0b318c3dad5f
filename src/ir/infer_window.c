/* SPDX-License-Identifier: Apache-2.0 */
/* Inference for pooling and resampling. */
#include "ir/infer_window.h"

/* MaxPool, AveragePool, LpPool: batches and channels stay; the second result is of indices. */
INFER_RULE(pool)
{
    int rank = infer_rank(op, 0);
    tssa_dtype dtype = infer_dtype(op, 0);
    if (rank < 0) {
        TRY(infer_set_unranked(op, 0, dtype));
        return infer_set_unranked(op, 1, TSSA_INT64);
    }
    if (rank < 3)
        return ERROR(TSSA_MALFORMED, "operand 0 has rank %d, which leaves no spatial axis", rank);
    size_t count;
    const int64_t *kernel = ir_attr_ints(op, "kernel_shape", &count);
    if (!kernel || count != (size_t)rank - 2)
        return ERROR(TSSA_MALFORMED, "kernel_shape does not have %d entries", rank - 2);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        dims[i] = infer_dim(op, 0, i);
        if (i < 2)
            continue;
        dims[i] = infer_window_dim(graph, op, dims[i], rank - 2, i - 2, kernel[i - 2]);
        TRY_ALLOC(dims[i]);
    }
    TRY(infer_set_tensor(op, 0, dtype, rank, dims));
    return infer_set_tensor(op, 1, TSSA_INT64, rank, dims);
}

INFER_RULE(global_pool)
{
    int rank = infer_rank(op, 0);
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    const struct dim *dims[TSSA_MAX_RANK], *one = dim_const(&graph->dims, 1);
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? infer_dim(op, 0, i) : one;
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(max_roi_pool)
{
    size_t count;
    const int64_t *shape = ir_attr_ints(op, "pooled_shape", &count);
    if (!shape || count != 2)
        return ERROR(TSSA_MALFORMED, "pooled_shape is not a height and a width");
    const struct dim *dims[4] = {infer_rank(op, 1) == 2 ? infer_dim(op, 1, 0) : infer_fresh(op),
                                 infer_rank(op, 0) == 4 ? infer_dim(op, 0, 1) : infer_fresh(op),
                                 dim_const(&graph->dims, shape[0]),
                                 dim_const(&graph->dims, shape[1])};
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

/* The size operand is [N, C, (D,) H, W]; the grid is [N, (D,) H, W, 2 or 3]. */
INFER_RULE(affine_grid)
{
    const struct ir_known *size = infer_known(op, 1);
    if (!size || size->count < 4 || size->count > 5)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    int n = (int)size->count - 2;
    const struct dim *dims[5];
    for (int i = 0; i <= n; i++) {
        dims[i] = size->elements[i ? i + 1 : 0];
        if (!dims[i])
            dims[i] = infer_fresh(op);
    }
    dims[n + 1] = dim_const(&graph->dims, n);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), n + 2, dims);
}
