/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of what undoes windows: ConvTranspose, MaxUnpool, Col2Im; and of Det. */
#include <string.h>

#include "ir/infer.h"

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

/* in * stride + kernel - stride - pads */
static const struct dim *unpooled_dim(struct ir_graph *graph, struct ir_op *op, size_t n, size_t i)
{
    struct dim_table *table = &graph->dims;
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = ir_attr_ints(op, "kernel_shape", &n_kernel);
    const int64_t *strides = ir_attr_ints(op, "strides", &n_strides);
    const int64_t *pads = ir_attr_ints(op, "pads", &n_pads);
    int64_t stride = strides && n_strides == n ? strides[i] : 1, rest;
    if (!kernel || n_kernel != n || stride < 1 || !i64_sub(kernel[i], stride, &rest))
        return infer_fresh(op);
    for (size_t k = i; pads && n_pads == 2 * n && k < 2 * n; k += n)
        if (pads[k] < 0 || !i64_sub(rest, pads[k], &rest))
            return infer_fresh(op);
    const struct dim *factor = dim_const(table, stride), *offset = dim_const(table, rest);
    const struct dim *steps =
        factor && offset ? dim_mul(table, infer_dim(op, 0, (int)i + 2), factor) : NULL;
    return steps ? dim_add(table, steps, offset) : NULL;
}

INFER_RULE(max_unpool)
{
    int rank = infer_rank(op, 0);
    int64_t shape[IR_KNOWN_MAX];
    size_t count;
    const struct dim *dims[TSSA_MAX_RANK];
    if (rank < 3)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    bool given = ir_operand(op, 2) != NULL;
    bool known = given && infer_const_ints(op, 2, shape, &count) && count == (size_t)rank;
    for (int i = 0; i < rank; i++) {
        if (known)
            dims[i] = dim_const(&graph->dims, shape[i]);
        else if (given)
            dims[i] = infer_fresh(op);
        else
            dims[i] = i < 2 ? infer_dim(op, 0, i)
                            : unpooled_dim(graph, op, (size_t)rank - 2, (size_t)i - 2);
    }
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(col2im)
{
    int64_t image[IR_KNOWN_MAX], block[IR_KNOWN_MAX], size = 1;
    size_t n_image, n_block;
    const struct dim *dims[TSSA_MAX_RANK];
    tssa_dtype dtype = infer_dtype(op, 0);
    if (infer_rank(op, 0) != 3 || !infer_const_ints(op, 1, image, &n_image) ||
        n_image > TSSA_MAX_RANK - 2)
        return infer_set_unranked(op, 0, dtype);
    dims[0] = infer_dim(op, 0, 0);
    dims[1] = infer_fresh(op);
    if (infer_const_ints(op, 2, block, &n_block)) {
        for (size_t i = 0; i < n_block; i++)
            if (block[i] < 1 || !i64_mul(size, block[i], &size))
                return infer_set_unranked(op, 0, dtype);
        dims[1] = dim_floordiv(&graph->dims, infer_dim(op, 0, 1), dim_const(&graph->dims, size));
    }
    for (size_t i = 0; i < n_image; i++)
        dims[i + 2] = dim_const(&graph->dims, image[i]);
    return infer_set_tensor(op, 0, dtype, (int)n_image + 2, dims);
}

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
