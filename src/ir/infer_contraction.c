/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of matrix products and convolutions. */
#include <inttypes.h>

#include "ir/infer_window.h"

static tssa_status *check_inner(const struct dim *a, const struct dim *b)
{
    int64_t x, y;
    if (dim_is_const(a, &x) && dim_is_const(b, &y) && x != y)
        return ERROR(TSSA_MALFORMED, "%" PRId64 " columns times %" PRId64 " rows", x, y);
    return NULL;
}

/* Broadcasts the leading dims of the operands, right-aligned. */
static tssa_status *matmul_batch(struct ir_op *op, int a, int b, int *rank, const struct dim **dims)
{
    int batch_a = a > 2 ? a - 2 : 0, batch_b = b > 2 ? b - 2 : 0;
    *rank = batch_a > batch_b ? batch_a : batch_b;
    for (int i = 0; i < *rank; i++) {
        int ai = i - (*rank - batch_a), bi = i - (*rank - batch_b);
        if (ai >= 0 && bi >= 0)
            TRY(infer_broadcast_dim(op, infer_dim(op, 0, ai), infer_dim(op, 1, bi), &dims[i]));
        else
            dims[i] = ai >= 0 ? infer_dim(op, 0, ai) : infer_dim(op, 1, bi);
    }
    return NULL;
}

INFER_RULE(matmul)
{
    (void)graph;
    int a = infer_rank(op, 0), b = infer_rank(op, 1), rank;
    const struct dim *dims[TSSA_MAX_RANK];
    if (a < 0 || b < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (a == 0 || b == 0)
        return ERROR(TSSA_MALFORMED, "the operands must be of rank 1 or more");
    TRY(check_inner(infer_dim(op, 0, a - 1), infer_dim(op, 1, b > 1 ? b - 2 : 0)));
    TRY(matmul_batch(op, a, b, &rank, dims));
    if (a > 1)
        dims[rank++] = infer_dim(op, 0, a - 2);
    if (b > 1)
        dims[rank++] = infer_dim(op, 1, b - 1);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(gemm)
{
    (void)graph;
    int a = ir_attr_int(op, "transA", 0) != 0, b = ir_attr_int(op, "transB", 0) != 0;
    if (infer_rank(op, 0) != 2 || infer_rank(op, 1) != 2)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    TRY(check_inner(infer_dim(op, 0, !a), infer_dim(op, 1, b)));
    const struct dim *dims[] = {infer_dim(op, 0, a), infer_dim(op, 1, !b)};
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 2, dims);
}

INFER_RULE(conv)
{
    int rank = infer_rank(op, 0);
    int64_t kernel;
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 3 || infer_rank(op, 1) != rank)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    dims[0] = infer_dim(op, 0, 0);
    dims[1] = infer_dim(op, 1, 0);
    for (int i = 2; i < rank; i++)
        dims[i] = dim_is_const(infer_dim(op, 1, i), &kernel)
                      ? infer_window_dim(graph, op, infer_dim(op, 0, i), rank - 2, i - 2, kernel)
                      : infer_fresh(op);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}
