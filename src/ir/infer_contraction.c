/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of contraction.def: matrix products and convolutions. */
#include "ir/infer_contraction.h"

#include <inttypes.h>
#include <string.h>

#include "ir/convolve.h"
#include "ir/einsum.h"
#include "ir/infer_window.h"
#include "ir/weights_turned.h"

/* ---- Matrix products ------------------------------------------------------------------------- */

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

tssa_status *infer_set_matmul(struct ir_op *op, uint32_t a, uint32_t b, tssa_dtype dtype)
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
    return infer_set_matmul(op, 0, 1, infer_dtype(op, 0));
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

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* Of images whose channels are the last axis, or the second. */
static tssa_status *set_image(struct ir_graph *graph, struct ir_op *op, uint32_t w,
                              tssa_dtype dtype, int x_last, int y_last)
{
    int rank = infer_rank(op, 0);
    int64_t kernel;
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 3 || infer_rank(op, w) != rank)
        return infer_set_unranked(op, 0, dtype);
    dims[0] = infer_dim(op, 0, 0);
    dims[y_last ? rank - 1 : 1] = infer_dim(op, w, ir_attr_int(op, IR_WEIGHTS_TURNED, 0) != 0);
    for (int i = 2; i < rank; i++)
        dims[i - y_last] =
            dim_is_const(infer_dim(op, w, i), &kernel)
                ? infer_window_dim(graph, op, infer_dim(op, 0, i - x_last), rank - 2, i - 2, kernel)
                : infer_fresh(op);
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

tssa_status *infer_set_conv(struct ir_graph *graph, struct ir_op *op, uint32_t w, tssa_dtype dtype)
{
    const int last = ir_attr_int(op, IR_CHANNELS_LAST, 0) != 0;
    return set_image(graph, op, w, dtype, last, last);
}

INFER_RULE(conv)
{
    return infer_set_conv(graph, op, 1, infer_dtype(op, 0));
}

INFER_RULE(convolve)
{
    return set_image(graph, op, CONVOLVE_W, infer_dtype(op, 0),
                     ir_attr_int(op, CONVOLVE_X_LAST, 0) != 0,
                     ir_attr_int(op, CONVOLVE_Y_LAST, 0) != 0);
}

/* stride * (in - 1) + `rest`, where rest is what padding and the window add. */
static const struct dim *transposed_dim(struct ir_graph *graph, struct ir_op *op, int i)
{
    struct dim_table *table = &graph->dims;
    size_t n = (size_t)infer_rank(op, 0) - 2, at = (size_t)i, count;
    int64_t stride, rest, extent, kernel;
    const int64_t *strides = ir_attr_ints(op, "strides", &count);
    stride = strides && count == n ? strides[at] : 1;
    const struct dim *in = infer_dim(op, 0, i + 2);
    const char *auto_pad = ir_attr_str(op, "auto_pad", "NOTSET");
    const int64_t *shape = ir_attr_ints(op, "output_shape", &count);
    if (shape && (count == n || count == n + 2))
        return dim_const(table, shape[count - n + at]);
    if (strncmp(auto_pad, "SAME", 4) == 0)
        return dim_mul(table, in, dim_const(table, stride));
    const int64_t *dilations = ir_attr_ints(op, "dilations", &count);
    if (!dim_is_const(infer_dim(op, 1, i + 2), &kernel) || stride < 1 ||
        !i64_mul(kernel - 1, dilations && count == n ? dilations[at] : 1, &extent))
        return infer_fresh(op);
    const int64_t *padding = ir_attr_ints(op, "output_padding", &count);
    if (!i64_add(extent, padding && count == n ? padding[at] : 0, &rest) ||
        !i64_add(rest, 1, &rest))
        return infer_fresh(op);
    const int64_t *pads = ir_attr_ints(op, "pads", &count);
    if (pads && count == 2 * n && strcmp(auto_pad, "NOTSET") == 0 &&
        (!i64_sub(rest, pads[at], &rest) || !i64_sub(rest, pads[n + at], &rest)))
        return infer_fresh(op);
    if (!i64_sub(rest, stride, &rest))
        return infer_fresh(op);
    const struct dim *steps = dim_mul(table, in, dim_const(table, stride));
    const struct dim *offset = dim_const(table, rest);
    return steps && offset ? dim_add(table, steps, offset) : NULL;
}

INFER_RULE(conv_transpose)
{
    int rank = infer_rank(op, 0);
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 3 || infer_rank(op, 1) != rank)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    const struct dim *groups = dim_const(&graph->dims, ir_attr_int(op, "group", 1));
    TRY_ALLOC(groups);
    dims[0] = infer_dim(op, 0, 0);
    dims[1] = dim_mul(&graph->dims, infer_dim(op, 1, 1), groups);
    for (int i = 0; i < rank - 2; i++) {
        int64_t size;
        dims[i + 2] = transposed_dim(graph, op, i);
        if (dim_is_const(dims[i + 2], &size) && size < 0)
            dims[i + 2] = dim_const(&graph->dims, 0);
    }
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(deform_conv)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0);
    (void)graph;
    if (rank < 3)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? infer_dim_or_fresh(op, 1, 0) : infer_dim_or_fresh(op, i == 0 ? 0 : 2, i);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* ---- Einsum ---------------------------------------------------------------------------------- */

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

/* ---- Det ------------------------------------------------------------------------------------- */

INFER_RULE(det)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0);
    (void)graph;
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (rank < 2)
        return ERROR(TSSA_MALFORMED, "operand 0 must be of rank 2 or more, not %d", rank);
    for (int i = 0; i < rank - 2; i++)
        dims[i] = infer_dim(op, 0, i);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank - 2, dims);
}
