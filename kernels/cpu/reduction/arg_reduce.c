/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin (ai.onnx 1 to 13): where along an axis the extremum is. A NaN is beyond all. */
#include <math.h>

#include "device/kernel.h"
#include "kernels/cpu/lib/axes.h"
#include "kernels/cpu/lib/convert.h"

#define CHUNK 512

struct arg_attrs {
    int64_t axis;
    bool keepdims, last;
};

static tssa_status *arg_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **state)
{
    struct arg_attrs *attrs = ARENA_NEW(setup->arena, struct arg_attrs);
    TRY_ALLOC(attrs);
    attrs->axis = ir_attr_int(op, "axis", 0);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->last = ir_attr_int(op, "select_last_index", 0) != 0;
    *state = attrs;
    return NULL;
}

/* One row of elements, its extremum so far; a chunk is negated where the smallest is wanted. */
struct arg_row {
    double best;
    int64_t best_int, at;
};

/* NaN is beyond all. */
static void arg_doubles(struct arg_row *row, const double *x, int64_t first, int64_t n, bool last)
{
    for (int64_t i = 0; i < n; i++) {
        bool nan = x[i] != x[i], best_nan = row->best != row->best;
        if (x[i] > row->best || (nan && !best_nan) ||
            (last && (x[i] == row->best || (nan && best_nan)))) {
            row->best = x[i];
            row->at = first + i;
        }
    }
}

static void arg_ints(struct arg_row *row, const int64_t *x, int64_t first, int64_t n, bool last)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] > row->best_int || (last && x[i] == row->best_int)) {
            row->best_int = x[i];
            row->at = first + i;
        }
}

/* The index along the axis of the extremum of one row; ties go to the first, or the last. */
static int64_t arg_find(const struct tensor *in, const char *from, const struct axis_split *split,
                        bool largest, bool last)
{
    struct arg_row row = {-INFINITY, INT64_MIN, 0};
    size_t stride = (size_t)split->inner * tssa_dtype_size(in->dtype);
    double doubles[CHUNK];
    int64_t ints[CHUNK];
    bool is_float = dtype_is_float(in->dtype);
    /* The complement reverses the order of integers; the top bit that of signed and unsigned. */
    int64_t flip = (largest ? 0 : -1) ^ (in->dtype == TSSA_UINT64 ? INT64_MIN : 0);
    for (int64_t i = 0; i < split->size; i += CHUNK) {
        int64_t n = split->size - i < CHUNK ? split->size - i : CHUNK;
        convert_elements(n, in->dtype, from + (size_t)i * stride, split->inner,
                         is_float ? TSSA_DOUBLE : TSSA_INT64,
                         is_float ? (void *)doubles : (void *)ints, 1, &convert_default);
        for (int64_t k = 0; k < n && is_float && !largest; k++)
            doubles[k] = -doubles[k];
        for (int64_t k = 0; k < n && !is_float; k++)
            ints[k] ^= flip;
        if (is_float)
            arg_doubles(&row, doubles, i, n, last);
        else
            arg_ints(&row, ints, i, n, last);
    }
    return row.at;
}

static tssa_status *arg_run(struct kernel_args *args, bool largest)
{
    const struct arg_attrs *attrs = args->state;
    const struct tensor *in;
    struct tensor *out;
    int axis, rank = 0;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &in));
    if (!dtype_in(args->op->info->types, in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s have no order", tssa_dtype_name(in->dtype));
    TRY(kernel_axis(attrs->axis, in->rank, &axis));
    for (int i = 0; i < in->rank; i++)
        if (i != axis || attrs->keepdims)
            dims[rank++] = i == axis ? 1 : in->dims[i];
    struct axis_split split = axis_split(in, axis);
    if (split.size == 0 && split.outer * split.inner > 0)
        return ERROR(TSSA_RUNTIME, "axis %d has no elements", axis);
    TRY(kernel_output(args, 0, TSSA_INT64, rank, dims, &out));
    size_t width = tssa_dtype_size(in->dtype);
    int64_t *result = out ? out->data : NULL;
    for (int64_t o = 0; result && o < split.outer; o++)
        for (int64_t i = 0; i < split.inner; i++) {
            const char *row =
                (const char *)in->data + (size_t)(o * split.size * split.inner + i) * width;
            *result++ = arg_find(in, row, &split, largest, attrs->last);
        }
    return NULL;
}

static tssa_status *run_ArgMax(struct kernel_args *args)
{
    return arg_run(args, true);
}
static tssa_status *run_ArgMin(struct kernel_args *args)
{
    return arg_run(args, false);
}
const struct kernel cpu_kernel_ArgMax = {.prepare = arg_prepare, .run = run_ArgMax};
const struct kernel cpu_kernel_ArgMin = {.prepare = arg_prepare, .run = run_ArgMin};
