/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ir/infer_window.h"

static int64_t entry(const struct ir_op *op, const char *name, size_t i, size_t wanted,
                     int64_t fallback)
{
    size_t count;
    const int64_t *values = ir_attr_ints(op, name, &count);
    return values && count == wanted ? values[i] : fallback;
}

const struct dim *infer_window_dim(struct ir_graph *graph, struct ir_op *op, const struct dim *in,
                                   int rank, int i, int64_t kernel)
{
    struct dim_table *dims = &graph->dims;
    size_t n = (size_t)rank, at = (size_t)i;
    int64_t stride = entry(op, "strides", at, n, 1), dilation = entry(op, "dilations", at, n, 1),
            extent, pads, size;
    const char *auto_pad = ir_attr_str(op, "auto_pad", "NOTSET");
    bool ceil_mode = ir_attr_int(op, "ceil_mode", 0) != 0;
    if (stride < 1 || dilation < 1 || kernel < 1 || !i64_mul(kernel - 1, dilation, &extent))
        return infer_fresh(op);
    const struct dim *step = dim_const(dims, stride);
    if (strncmp(auto_pad, "SAME", 4) == 0)
        return in && step ? dim_ceildiv(dims, in, step) : NULL;
    bool padded = strcmp(auto_pad, "NOTSET") == 0;
    if (!i64_add(padded ? entry(op, "pads", at, 2 * n, 0) : 0,
                 padded ? entry(op, "pads", n + at, 2 * n, 0) : 0, &pads) ||
        !i64_add(pads, -extent - 1, &pads))
        return infer_fresh(op);
    /* With ceil_mode the last window may fall away, and a window larger than the input gives 0. */
    if (ceil_mode && stride > 1)
        return infer_fresh(op);
    const struct dim *shift = dim_const(dims, pads), *one = dim_const(dims, 1);
    const struct dim *room = shift ? dim_add(dims, in, shift) : NULL;
    if (!room || !one || !step)
        return NULL;
    if (dim_is_const(room, &size) && size < 0)
        return dim_const(dims, 0);
    const struct dim *steps = dim_floordiv(dims, room, step);
    return steps ? dim_add(dims, steps, one) : NULL;
}
