/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose (ai.onnx 1 to 22): what a convolution's gradient is. Its geometry is that of the
 * convolution which leads from the output back to the input. An element is the sum over input channels, and of each
 * over the kernel's positions in row-major order, of products, as of an axis that is not the innermost one
 * (ir/reduction.def), and then the bias. DOUBLE is computed in double, narrower types in float32.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

struct transpose_attrs {
    struct window_attrs window;
    int64_t groups;
    size_t n_padding, n_shape;
    int64_t padding[WINDOW_MAX_RANK]; /* output_padding */
    int64_t shape[TSSA_MAX_RANK];     /* output_shape */
};

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

static tssa_status *conv_transpose_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                           const void **state)
{
    struct transpose_attrs *attrs = ARENA_NEW(setup->arena, struct transpose_attrs);
    TRY_ALLOC(attrs);
    attrs->groups = ir_attr_int(op, "group", 1);
    if (attrs->groups < 1)
        return ERROR(TSSA_MALFORMED, "group is %" PRId64, attrs->groups);
    TRY(decode(op, "output_padding", WINDOW_MAX_RANK, attrs->padding, &attrs->n_padding));
    TRY(decode(op, "output_shape", TSSA_MAX_RANK, attrs->shape, &attrs->n_shape));
    *state = attrs;
    return window_decode(op, &attrs->window);
}

/* ---- Geometry ------------------------------------------------------------------------------------- */

/* The wanted size of spatial axis i, or -1. */
static int64_t wanted_size(const struct transpose_attrs *a, const struct window *w, int i)
{
    bool same =
        a->window.auto_pad == AUTO_PAD_SAME_UPPER || a->window.auto_pad == AUTO_PAD_SAME_LOWER;
    if (a->n_shape) /* batch and channels may be listed too */
        return a->shape[(size_t)i + a->n_shape - (size_t)w->rank];
    return same ? w->out[i] * w->stride[i] : -1;
}

/* Here `out` is the operator's input and `in` its output. */
static tssa_status *resolve_axis(const struct transpose_attrs *a, struct window *w, int i)
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

static tssa_status *check_counts(const struct transpose_attrs *a, int rank)
{
    size_t n = (size_t)rank;
    const struct window_attrs *w = &a->window;
    if ((w->n_strides && w->n_strides != n) || (w->n_dilations && w->n_dilations != n) ||
        (w->n_pads && w->n_pads != 2 * n) || (a->n_padding && a->n_padding != n) ||
        (a->n_shape && a->n_shape != n && a->n_shape != n + 2))
        return ERROR(TSSA_RUNTIME, "the attributes do not fit %d spatial axes", rank);
    return NULL;
}

static tssa_status *resolve(const struct transpose_attrs *a, const struct tensor *x,
                            const struct tensor *weights, struct window *w)
{
    int rank = x->rank - 2;
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

/* ---- Sums ----------------------------------------------------------------------------------------- */

struct job {
    struct window window;
    int64_t groups, in_channels, out_channels; /* of all groups together */
    tssa_dtype dtype;                          /* that is computed in */
    size_t width;
    const char *x, *w;         /* as such */
    const struct tensor *bias; /* may be NULL */
    struct tensor *y;
};

/* All channels of a group through a plane of weights each, for output channel `channel` of item n. */
static void add_channels(const struct job *job, int64_t n, int64_t channel,
                         struct reduce_levels *levels)
{
    const struct window *w = &job->window;
    const int64_t in_per_group = job->in_channels / job->groups;
    const int64_t out_per_group = job->out_channels / job->groups;
    const int64_t first = channel / out_per_group * in_per_group;
    for (int64_t c = first; c < first + in_per_group; c++) {
        const char *x = job->x + (size_t)((n * job->in_channels + c) * w->out_count) * job->width;
        const char *weights =
            job->w +
            (size_t)((c * out_per_group + channel % out_per_group) * w->kernel_count) * job->width;
        for (int64_t k = 0; k < w->kernel_count; k++, weights += job->width) {
            window_add_back(w, job->dtype, k, dtype_load_double(job->dtype, weights), x,
                            levels->memory);
            reduce_levels_add(levels, 1);
        }
    }
}

/* Indices are (batch, output channel) pairs. */
static void compute_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct job *job = context;
    const int64_t count = job->window.in_count;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % job->out_channels;
        struct reduce_levels levels;
        reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, job->dtype), job->width, count,
                            scratch);
        add_channels(job, i / job->out_channels, channel, &levels);
        void *sums = reduce_levels_end(&levels);
        if (job->bias)
            conv_add_bias(job->bias, channel, job->dtype, sums, count);
        store_elements(job->y, i * count, 1, count, job->dtype, sums);
    }
}

static tssa_status *compute(struct kernel_args *args, struct job *job, int64_t batch,
                            const struct tensor *const operands[3])
{
    struct buffer *wide[2] = {NULL};
    const void *elements[2] = {NULL};
    const int64_t terms = job->in_channels / job->groups * job->window.kernel_count;
    int64_t cost;
    size_t bytes;
    tssa_status *status = NULL;
    job->dtype = computed_in(operands[0]->dtype);
    job->width = tssa_dtype_size(job->dtype);
    job->bias = operands[2];
    if (!size_mul((size_t)job->window.in_count, (size_t)reduce_levels_needed(terms) * job->width,
                  &bytes))
        return ERROR(TSSA_RUNTIME, "a plane of the result is larger than memory can be");
    if (!i64_mul(job->window.out_count, job->window.kernel_count, &cost) ||
        !i64_mul(cost, job->in_channels, &cost))
        cost = INT64_MAX;
    for (int i = 0; i < 2 && !status; i++)
        status = elements_as(args, operands[i], job->dtype, &elements[i], &wide[i]);
    job->x = elements[0];
    job->w = elements[1];
    if (!status)
        status = parts_for(args, batch * job->out_channels, cost, bytes, compute_planes, job);
    for (int i = 0; i < 2; i++)
        buffer_release(wide[i]);
    return status;
}

static tssa_status *run_ConvTranspose(struct kernel_args *args)
{
    const struct transpose_attrs *attrs = args->state;
    const struct tensor *operands[3];
    struct job job = {.groups = attrs->groups};
    int64_t dims[TSSA_MAX_RANK];
    TRY(typed_tensor(args, 0, &operands[0]));
    TRY(typed_tensor(args, 1, &operands[1]));
    const struct tensor *x = operands[0], *w = operands[1];
    if (x->rank < 3 || w->rank != x->rank || x->dtype != w->dtype || x->dims[1] != w->dims[0] ||
        x->dims[1] % attrs->groups)
        return ERROR(TSSA_RUNTIME, "the input (rank %d) and the weights (rank %d) do not fit",
                     x->rank, w->rank);
    if (!i64_mul(w->dims[1], attrs->groups, &job.out_channels))
        return ERROR(TSSA_RUNTIME, "%" PRId64 " groups are too many", attrs->groups);
    job.in_channels = x->dims[1];
    TRY(typed_vector(args, 2, job.out_channels, true, &operands[2]));
    TRY(resolve(attrs, x, w, &job.window));
    dims[0] = x->dims[0];
    dims[1] = job.out_channels;
    memcpy(dims + 2, job.window.in, (size_t)job.window.rank * sizeof *dims);
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    return compute(args, &job, dims[0], operands);
}

const struct kernel cpu_kernel_ConvTranspose = {.prepare = conv_transpose_prepare,
                                                .run = run_ConvTranspose};
