/* SPDX-License-Identifier: Apache-2.0 */
#include "device/window.h"

#include <inttypes.h>
#include <string.h>

/* No size, stride, pad or extent of a window may exceed this; sums and products of two stay in
 * int64. */
#define WINDOW_LIMIT (INT64_C(1) << 31)

static tssa_status *decode_ints(const struct ir_op *op, const char *name, size_t capacity,
                                int64_t minimum, int64_t *values, size_t *count)
{
    const int64_t *given = ir_attr_ints(op, name, count);
    if (*count > capacity)
        return ERROR(TSSA_MALFORMED, "%s has %zu entries", name, *count);
    for (size_t i = 0; given && i < *count; i++) {
        if (given[i] < minimum || given[i] >= WINDOW_LIMIT)
            return ERROR(TSSA_MALFORMED, "%s holds %" PRId64, name, given[i]);
        values[i] = given[i];
    }
    return NULL;
}

static tssa_status *decode_auto_pad(const struct ir_op *op, enum auto_pad *mode)
{
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *given = ir_attr_str(op, "auto_pad", "NOTSET");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(given, names[i]) == 0) {
            *mode = (enum auto_pad)i;
            return NULL;
        }
    return ERROR(TSSA_MALFORMED, "auto_pad is \"%s\"", given);
}

tssa_status *window_decode(const struct ir_op *op, struct window_attrs *attrs)
{
    memset(attrs, 0, sizeof *attrs);
    attrs->ceil_mode = ir_attr_int(op, "ceil_mode", 0) != 0;
    TRY(decode_auto_pad(op, &attrs->auto_pad));
    TRY(decode_ints(op, "kernel_shape", WINDOW_MAX_RANK, 1, attrs->kernel, &attrs->n_kernel));
    TRY(decode_ints(op, "strides", WINDOW_MAX_RANK, 1, attrs->strides, &attrs->n_strides));
    TRY(decode_ints(op, "dilations", WINDOW_MAX_RANK, 1, attrs->dilations, &attrs->n_dilations));
    return decode_ints(op, "pads", sizeof attrs->pads / sizeof *attrs->pads, 0, attrs->pads,
                       &attrs->n_pads);
}

static tssa_status *check_counts(const struct window_attrs *a, int rank, bool kernel_given)
{
    size_t n = (size_t)rank;
    if (rank < 0 || rank > WINDOW_MAX_RANK)
        return ERROR(TSSA_RUNTIME, "%d spatial axes", rank);
    if ((!kernel_given && a->n_kernel != n) || (a->n_strides && a->n_strides != n) ||
        (a->n_dilations && a->n_dilations != n) || (a->n_pads && a->n_pads != 2 * n))
        return ERROR(TSSA_RUNTIME, "the attributes do not fit %d spatial axes", rank);
    return NULL;
}

/* Pads and output size of axis i, whose window covers `extent` elements. */
static void resolve_axis(const struct window_attrs *a, struct window *w, int i, int64_t extent)
{
    int64_t stride = w->stride[i], in = w->in[i];
    if (a->auto_pad == AUTO_PAD_SAME_UPPER || a->auto_pad == AUTO_PAD_SAME_LOWER) {
        w->out[i] = (in + stride - 1) / stride;
        int64_t total = (w->out[i] - 1) * stride + extent - in;
        total = total < 0 ? 0 : total;
        w->pad_begin[i] = a->auto_pad == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->pad_end[i] = total - w->pad_begin[i];
        return;
    }
    /* VALID has a formula of its own, which ceil_mode does not change. */
    bool explicit = a->auto_pad == AUTO_PAD_NOTSET, padded = explicit && a->n_pads,
         ceil = explicit && a->ceil_mode;
    w->pad_begin[i] = padded ? a->pads[i] : 0;
    w->pad_end[i] = padded ? a->pads[w->rank + i] : 0;
    int64_t room = in + w->pad_begin[i] + w->pad_end[i] - extent;
    if (ceil) /* of windows that do not fit, be it the first one, there is one more */
        room += stride - 1;
    w->out[i] = room < 0 ? 0 : room / stride + 1;
    /* A window that would start in the padding at the end does not count. */
    if (ceil && w->out[i] > 0 && (w->out[i] - 1) * stride >= in + w->pad_begin[i])
        w->out[i]--;
}

tssa_status *window_resolve(const struct window_attrs *a, int rank, const int64_t *in,
                            const int64_t *kernel, struct window *w)
{
    TRY(check_counts(a, rank, kernel != NULL));
    memset(w, 0, sizeof *w);
    w->rank = rank;
    w->in_count = w->out_count = w->kernel_count = 1;
    for (int i = 0; i < rank; i++) {
        int64_t extent;
        w->in[i] = in[i];
        w->kernel[i] = kernel ? kernel[i] : a->kernel[i];
        w->stride[i] = a->n_strides ? a->strides[i] : 1;
        w->dilation[i] = a->n_dilations ? a->dilations[i] : 1;
        if (w->in[i] >= WINDOW_LIMIT || w->kernel[i] < 1 || w->kernel[i] >= WINDOW_LIMIT ||
            !i64_mul(w->kernel[i] - 1, w->dilation[i], &extent) || extent >= WINDOW_LIMIT)
            return ERROR(TSSA_RUNTIME,
                         "spatial axis %d: a window of %" PRId64 " over %" PRId64 " elements", i,
                         w->kernel[i], w->in[i]);
        resolve_axis(a, w, i, extent + 1);
        if (!i64_mul(w->in_count, w->in[i], &w->in_count) ||
            !i64_mul(w->out_count, w->out[i], &w->out_count) ||
            !i64_mul(w->kernel_count, w->kernel[i], &w->kernel_count))
            return ERROR(TSSA_RUNTIME, "the windows are larger than memory can be");
    }
    return NULL;
}

void window_valid_range(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *begin,
                        int64_t *end)
{
    *begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    *end = offset >= in ? 0 : (in - offset + stride - 1) / stride;
    if (*end > out)
        *end = out;
    if (*begin > *end)
        *begin = *end;
}

int64_t window_input_row(const struct window *w, int64_t out_row, int64_t kernel_row)
{
    int64_t row = 0, scale = 1;
    for (int d = w->rank - 2; d >= 0; d--) {
        int64_t at = out_row % w->out[d] * w->stride[d] +
                     kernel_row % w->kernel[d] * w->dilation[d] - w->pad_begin[d];
        if (at < 0 || at >= w->in[d])
            return -1;
        row += at * scale;
        scale *= w->in[d];
        out_row /= w->out[d];
        kernel_row /= w->kernel[d];
    }
    return row;
}
