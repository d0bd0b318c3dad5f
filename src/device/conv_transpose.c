/* SPDX-License-Identifier: Apache-2.0 */
#include "device/conv_transpose.h"

#include <inttypes.h>
#include <string.h>

/* No extent may exceed this; products of two fit in int64. */
#define EXTENT_LIMIT (INT64_C(1) << 31)

static tssa_status *decode(const struct ir_op *op, const char *name, size_t capacity,
                           int64_t *values, size_t *count)
{
    const int64_t *given = ir_attr_ints(op, name, count);
    if (*count > capacity)
        return ERROR(TSSA_MALFORMED, "%s has %zu entries", name, *count);
    for (size_t i = 0; given && i < *count; i++) {
        if (given[i] < 0 || given[i] >= EXTENT_LIMIT)
            return ERROR(TSSA_MALFORMED, "%s holds %" PRId64, name, given[i]);
        values[i] = given[i];
    }
    return NULL;
}

tssa_status *conv_transpose_decode(const struct ir_op *op, struct conv_transpose_attrs *attrs)
{
    attrs->groups = ir_attr_int(op, "group", 1);
    if (attrs->groups < 1)
        return ERROR(TSSA_MALFORMED, "group is %" PRId64, attrs->groups);
    TRY(decode(op, "output_padding", WINDOW_MAX_RANK, attrs->padding, &attrs->n_padding));
    TRY(decode(op, "output_shape", TSSA_MAX_RANK, attrs->shape, &attrs->n_shape));
    return window_decode(op, &attrs->window);
}

/* The wanted size of spatial axis i, or -1. */
static int64_t wanted_size(const struct conv_transpose_attrs *a, const struct window *w, int i)
{
    bool same =
        a->window.auto_pad == AUTO_PAD_SAME_UPPER || a->window.auto_pad == AUTO_PAD_SAME_LOWER;
    if (a->n_shape) /* batch and channels may be listed too */
        return a->shape[(size_t)i + a->n_shape - (size_t)w->rank];
    return same ? w->out[i] * w->stride[i] : -1;
}

/* Here `out` is the operator's input and `in` its output. */
static tssa_status *resolve_axis(const struct conv_transpose_attrs *a, struct window *w, int i)
{
    int64_t extent, full, total;
    if (!i64_mul(w->kernel[i] - 1, w->dilation[i], &extent) || extent >= EXTENT_LIMIT)
        return ERROR(TSSA_RUNTIME, "the window of spatial axis %d is too large", i);
    full = w->stride[i] * (w->out[i] - 1) + (a->n_padding ? a->padding[i] : 0) + extent + 1;
    int64_t wanted = wanted_size(a, w, i);
    if (wanted >= 0) {
        total = full > wanted ? full - wanted : 0;
        w->pad_begin[i] = a->window.auto_pad == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->pad_end[i] = total - w->pad_begin[i];
        w->in[i] = wanted;
    } else {
        bool padded = a->window.auto_pad == AUTO_PAD_NOTSET && a->window.n_pads;
        w->pad_begin[i] = padded ? a->window.pads[i] : 0;
        w->pad_end[i] = padded ? a->window.pads[w->rank + i] : 0;
        w->in[i] = full - w->pad_begin[i] - w->pad_end[i];
    }
    if (w->in[i] < 0 || w->out[i] == 0)
        w->in[i] = 0;
    return NULL;
}

static tssa_status *check_counts(const struct conv_transpose_attrs *a, int rank)
{
    size_t n = (size_t)rank;
    const struct window_attrs *w = &a->window;
    if ((w->n_strides && w->n_strides != n) || (w->n_dilations && w->n_dilations != n) ||
        (w->n_pads && w->n_pads != 2 * n) || (a->n_padding && a->n_padding != n) ||
        (a->n_shape && a->n_shape != n && a->n_shape != n + 2))
        return ERROR(TSSA_RUNTIME, "the attributes do not fit %d spatial axes", rank);
    return NULL;
}

static tssa_status *resolve(const struct conv_transpose_attrs *a, const struct tensor *x,
                            const struct tensor *weights, struct window *w)
{
    const int rank = x->rank - 2;
    TRY(check_counts(a, rank));
    memset(w, 0, sizeof *w);
    w->rank = rank;
    w->in_count = w->out_count = w->kernel_count = 1;
    for (int i = 0; i < rank; i++) {
        w->out[i] = x->dims[2 + i];
        w->kernel[i] = weights->dims[2 + i];
        w->stride[i] = a->window.n_strides ? a->window.strides[i] : 1;
        w->dilation[i] = a->window.n_dilations ? a->window.dilations[i] : 1;
        if (w->out[i] >= EXTENT_LIMIT || w->kernel[i] < 1 || w->kernel[i] >= EXTENT_LIMIT)
            return ERROR(TSSA_RUNTIME,
                         "spatial axis %d: a window of %" PRId64 " over %" PRId64 " elements", i,
                         w->kernel[i], w->out[i]);
        TRY(resolve_axis(a, w, i));
        if (!i64_mul(w->in_count, w->in[i], &w->in_count) ||
            !i64_mul(w->out_count, w->out[i], &w->out_count) ||
            !i64_mul(w->kernel_count, w->kernel[i], &w->kernel_count))
            return ERROR(TSSA_RUNTIME, "the windows are larger than memory can be");
    }
    return NULL;
}

tssa_status *conv_transpose_resolve(const struct conv_transpose_attrs *attrs, struct conv_job *job,
                                    int64_t *dims)
{
    const struct tensor *x = job->x, *w = job->w;
    if (x->rank < 3 || w->rank != x->rank || x->dtype != w->dtype || x->dims[1] != w->dims[0] ||
        x->dims[1] % attrs->groups)
        return ERROR(TSSA_RUNTIME, "the input (rank %d) and the weights (rank %d) do not fit",
                     x->rank, w->rank);
    if (!i64_mul(w->dims[1], attrs->groups, &job->out_channels))
        return ERROR(TSSA_RUNTIME, "%" PRId64 " groups are too many", attrs->groups);
    if (job->bias && (job->bias->rank != 1 || job->bias->dims[0] != job->out_channels))
        return ERROR(TSSA_RUNTIME, "the bias does not have %" PRId64 " elements",
                     job->out_channels);
    job->groups = attrs->groups;
    job->batch = dims[0] = x->dims[0];
    job->in_channels = x->dims[1];
    dims[1] = job->out_channels;
    TRY(resolve(attrs, x, w, &job->window));
    memcpy(dims + 2, job->window.in, (size_t)job->window.rank * sizeof *dims);
    return NULL;
}

bool conv_transpose_problem(const struct conv_job *job, tssa_dtype dtype,
                            struct library_problem *problem)
{
    struct conv_problem *conv = &problem->conv;
    if (!conv_problem(job, dtype, problem))
        return false;
    conv->turned = 1;
    for (int i = 0; i < conv->rank; i++) {
        conv->in[i] = job->window.out[i];
        conv->out[i] = job->window.in[i];
    }
    return true;
}
