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
    if (dim_is_const(room, &size) && size < 0)
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
