/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of matrix products and convolutions. */
#include <inttypes.h>
#include <string.h>

#include "ir/einsum.h"
#include "ir/infer_window.h"

static tssa_status *check_inner(const struct dim *a, const struct dim *b)
{
    int64_t x, y;
    if (dim_is_const(a, &x) && dim_is_const(b, &y) && x != y)
        return ERROR(TSSA_MALFORMED, "%" PRId64 " columns times %" PRId64 " rows", x, y);
    return NULL;
}

/* Broadcasts the leading dims of operands a and b, right-aligned. */
static tssa_status *matmul_batch(struct ir_op *op, uint32_t a, uint32_t b, int *rank,
                                 const struct dim **dims)
{
    int rank_a = infer_rank(op, a), rank_b = infer_rank(op, b);
    int batch_a = rank_a > 2 ? rank_a - 2 : 0, batch_b = rank_b > 2 ? rank_b - 2 : 0;
    *rank = batch_a > batch_b ? batch_a : batch_b;
    for (int i = 0; i < *rank; i++) {
        int ai = i - (*rank - batch_a), bi = i - (*rank - batch_b);
        if (ai >= 0 && bi >= 0)
            TRY(infer_broadcast_dim(op, infer_dim(op, a, ai), infer_dim(op, b, bi), &dims[i]));
        else
            dims[i] = ai >= 0 ? infer_dim(op, a, ai) : infer_dim(op, b, bi);
    }
    return NULL;
}

/* numpy's matmul of operands a and b. */
static tssa_status *set_matmul(struct ir_op *op, uint32_t a, uint32_t b, tssa_dtype dtype)
{
    int rank_a = infer_rank(op, a), rank_b = infer_rank(op, b), rank;
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank_a < 0 || rank_b < 0)
        return infer_set_unranked(op, 0, dtype);
    if (rank_a == 0 || rank_b == 0)
        return ERROR(TSSA_MALFORMED, "the operands must be of rank 1 or more");
    TRY(check_inner(infer_dim(op, a, rank_a - 1), infer_dim(op, b, rank_b > 1 ? rank_b - 2 : 0)));
    TRY(matmul_batch(op, a, b, &rank, dims));
    if (rank_a > 1)
        dims[rank++] = infer_dim(op, a, rank_a - 2);
    if (rank_b > 1)
        dims[rank++] = infer_dim(op, b, rank_b - 1);
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

INFER_RULE(matmul)
{
    (void)graph;
    return set_matmul(op, 0, 1, infer_dtype(op, 0));
}

INFER_RULE(matmul_integer)
{
    (void)graph;
    return set_matmul(op, 0, 1, TSSA_INT32);
}

/* The result has the type of its zero point. */
INFER_RULE(qlinear_matmul)
{
    (void)graph;
    return set_matmul(op, 0, 3, infer_dtype(op, 7));
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

/* The convolution of operand 0 with the weights at operand `w`. */
static tssa_status *set_conv(struct ir_graph *graph, struct ir_op *op, uint32_t w, tssa_dtype dtype)
{
    int rank = infer_rank(op, 0);
    int64_t kernel;
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 3 || infer_rank(op, w) != rank)
        return infer_set_unranked(op, 0, dtype);
    dims[0] = infer_dim(op, 0, 0);
    dims[1] = infer_dim(op, w, 0);
    for (int i = 2; i < rank; i++)
        dims[i] = dim_is_const(infer_dim(op, w, i), &kernel)
                      ? infer_window_dim(graph, op, infer_dim(op, 0, i), rank - 2, i - 2, kernel)
                      : infer_fresh(op);
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

INFER_RULE(conv)
{
    return set_conv(graph, op, 1, infer_dtype(op, 0));
}

INFER_RULE(conv_integer)
{
    return set_conv(graph, op, 1, TSSA_INT32);
}

INFER_RULE(qlinear_conv)
{
    return set_conv(graph, op, 3, infer_dtype(op, 7));
}

/* Labels' sizes from the operands that have them. */
static tssa_status *einsum_dims(struct ir_op *op, const struct einsum_axes *axes,
                                const struct dim **sizes)
{
    memset(sizes, 0, EINSUM_MAX_LABELS * sizeof *sizes);
    for (uint32_t i = 0; i < op->n_operands; i++)
        for (int d = 0; d < infer_rank(op, i); d++) {
            const struct dim **size = &sizes[axes->operands[i][d]], *dim = infer_dim(op, i, d);
            if (*size)
                TRY(infer_broadcast_dim(op, *size, dim, size));
            else
                *size = dim;
        }
    return NULL;
}

INFER_RULE(einsum)
{
    struct einsum equation;
    struct einsum_axes axes;
    int ranks[EINSUM_MAX_OPERANDS];
    const struct dim *sizes[EINSUM_MAX_LABELS], *dims[TSSA_MAX_RANK];
    (void)graph;
    TRY(einsum_parse(ir_attr_str(op, "equation", ""), &equation));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (i == EINSUM_MAX_OPERANDS || infer_rank(op, i) < 0)
            return infer_set_unranked(op, 0, infer_dtype(op, 0));
        ranks[i] = infer_rank(op, i);
    }
    TRY(einsum_resolve(&equation, (int)op->n_operands, ranks, &axes));
    TRY(einsum_dims(op, &axes, sizes));
    for (int d = 0; d < axes.out_rank; d++)
        dims[d] = sizes[axes.out[d]];
    return infer_set_tensor(op, 0, infer_dtype(op, 0), axes.out_rank, dims);
}
