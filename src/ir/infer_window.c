/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of window.def, and the sizes of sliding windows. */
#include "ir/infer_window.h"

#include <string.h>

/* ---- Sliding windows ------------------------------------------------------------------------- */

static int64_t entry(const struct ir_op *op, const char *name, size_t i, size_t wanted,
                     int64_t fallback)
{
    size_t count;
    const int64_t *values = ir_attr_ints(op, name, &count);
    return values && count == wanted ? values[i] : fallback;
}

/* room / step, rounded as the mode says, and the first window. */
static const struct dim *window_count(struct dim_table *dims, const struct dim *room,
                                      const struct dim *step, bool ceil_mode)
{
    const struct dim *one = dim_const(dims, 1);
    const struct dim *steps = (ceil_mode ? dim_ceildiv : dim_floordiv)(dims, room, step);
    return one && steps ? dim_add(dims, steps, one) : NULL;
}

const struct dim *infer_window_dim(struct ir_graph *graph, struct ir_op *op, const struct dim *in,
                                   int rank, int i, int64_t kernel)
{
    struct dim_table *dims = &graph->dims;
    size_t n = (size_t)rank, at = (size_t)i;
    int64_t stride = entry(op, "strides", at, n, 1), dilation = entry(op, "dilations", at, n, 1),
            extent, size;
    const char *auto_pad = ir_attr_str(op, "auto_pad", "NOTSET");
    if (stride < 1 || dilation < 1 || kernel < 1 || !i64_mul(kernel - 1, dilation, &extent))
        return infer_fresh(op);
    const struct dim *step = dim_const(dims, stride);
    if (!step)
        return NULL;
    if (strncmp(auto_pad, "SAME", 4) == 0)
        return dim_ceildiv(dims, in, step);
    bool padded = strcmp(auto_pad, "NOTSET") == 0,
         ceil_mode = padded && ir_attr_int(op, "ceil_mode", 0) != 0;
    int64_t begin = padded ? entry(op, "pads", at, 2 * n, 0) : 0;
    int64_t end = padded ? entry(op, "pads", n + at, 2 * n, 0) : 0, pads;
    if (begin < 0 || end < 0 || !i64_add(begin, end, &pads) || !i64_add(pads, -extent - 1, &pads))
        return infer_fresh(op);
    const struct dim *shift = dim_const(dims, pads);
    const struct dim *room = shift ? dim_add(dims, in, shift) : NULL;
    if (dim_is_const(room, &size) && size < (ceil_mode ? 1 - stride : 0))
        return dim_const(dims, 0);
    const struct dim *count = room ? window_count(dims, room, step, ceil_mode) : NULL;
    if (!count || !ceil_mode || end - extent <= 1 - stride)
        return count;
    /* A window that would start in the padding at the end does not count. */
    const struct dim *before = dim_const(dims, begin);
    const struct dim *reach = before ? dim_add(dims, in, before) : NULL;
    const struct dim *starts = reach ? dim_ceildiv(dims, reach, step) : NULL;
    return starts ? dim_min(dims, count, starts) : NULL;
}

/* ---- Pooling --------------------------------------------------------------------------------- */

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
    const int first = ir_attr_int(op, IR_CHANNELS_LAST, 0) ? 1 : 2;
    for (int i = 0; i < rank; i++) {
        const int axis = i - first; /* of the spatial ones */
        dims[i] = infer_dim(op, 0, i);
        if (axis < 0 || axis >= rank - 2)
            continue;
        dims[i] = infer_window_dim(graph, op, dims[i], rank - 2, axis, kernel[axis]);
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

/* ---- Samples --------------------------------------------------------------------------------- */

const struct dim *infer_dim_or_fresh(struct ir_op *op, uint32_t operand, int d)
{
    return d < infer_rank(op, operand) ? infer_dim(op, operand, d) : infer_fresh(op);
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

INFER_RULE(grid_sample)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0) >= 0 ? infer_rank(op, 0) : infer_rank(op, 1);
    (void)graph;
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (rank < 3 || (infer_rank(op, 1) >= 0 && infer_rank(op, 1) != rank))
        return ERROR(TSSA_MALFORMED, "the input has rank %d, the grid %d", rank, infer_rank(op, 1));
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? infer_dim_or_fresh(op, 0, i) : infer_dim_or_fresh(op, 1, i - 1);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(roi_align)
{
    const struct dim *dims[4] = {
        infer_rank(op, 1) < 0 ? infer_dim_or_fresh(op, 2, 0) : infer_dim_or_fresh(op, 1, 0),
        infer_dim_or_fresh(op, 0, 1), dim_const(&graph->dims, ir_attr_int(op, "output_height", 1)),
        dim_const(&graph->dims, ir_attr_int(op, "output_width", 1))};
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}
