/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv (ai.onnx 1 to 22): any number of spatial axes, groups, dilations. The reference sums in double
 * and rounds once; float32 with up to three spatial axes goes to the provider where there is one.
 */
#include <inttypes.h>
#include <string.h>

#include "device/cpu/provider.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/window.h"

struct conv_attrs {
    const struct cpu_provider *provider;
    struct window_attrs window;
    int64_t groups;
};

static tssa_status *conv_prepare(const struct ir_op *op, struct arena *arena, const void **state)
{
    struct conv_attrs *attrs = ARENA_NEW(arena, struct conv_attrs);
    TRY_ALLOC(attrs);
    attrs->provider = cpu_provider_open();
    attrs->groups = ir_attr_int(op, "group", 1);
    if (attrs->groups < 1)
        return ERROR(TSSA_MALFORMED, "group is %" PRId64, attrs->groups);
    *state = attrs;
    return window_decode(op, &attrs->window);
}

struct conv_job {
    struct window window;
    int64_t batch, groups, in_channels, out_channels; /* per group: in_channels / groups, ... */
    const struct tensor *x, *w, *bias;
    struct tensor *y;
};

/* Adds one input channel's contribution at one kernel position to a row of outputs along the last axis. */
static void add_row(double *sums, const struct conv_job *job, const char *x_row, double weight,
                    int64_t offset)
{
    int last = job->window.rank - 1;
    int64_t begin, end, stride = job->window.stride[last];
    window_valid_range(offset, stride, job->window.in[last], job->window.out[last], &begin, &end);
    if (job->x->dtype == TSSA_FLOAT) {
        const float *x = (const float *)(const void *)x_row + offset;
        for (int64_t o = begin; o < end; o++)
            sums[o] += weight * (double)x[o * stride];
        return;
    }
    size_t width = tssa_dtype_size(job->x->dtype);
    for (int64_t o = begin; o < end; o++)
        sums[o] += weight *
                   dtype_load_double(job->x->dtype, x_row + (size_t)(offset + o * stride) * width);
}

/* The row of input (all axes but the last) that a window position reads, or -1 in the padding. */
static int64_t input_row(const struct window *w, int64_t out_row, int64_t kernel_row)
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

/* One row of outputs: all channels of the group, all kernel positions. */
static void compute_row(const struct conv_job *job, int64_t n, int64_t channel, int64_t out_row,
                        double *sums)
{
    const struct window *w = &job->window;
    int last = w->rank - 1;
    int64_t per_group = job->in_channels / job->groups,
            group = channel / (job->out_channels / job->groups);
    int64_t kernel_rows = w->kernel_count / w->kernel[last];
    size_t width = tssa_dtype_size(job->x->dtype);
    double start = job->bias ? dtype_load_double(job->bias->dtype, (const char *)job->bias->data +
                                                                       (size_t)channel * width)
                             : 0;
    for (int64_t o = 0; o < w->out[last]; o++)
        sums[o] = start;
    for (int64_t c = 0; c < per_group; c++) {
        const char *plane =
            (const char *)job->x->data +
            (size_t)((n * job->in_channels + group * per_group + c) * w->in_count) * width;
        const char *weights = (const char *)job->w->data +
                              (size_t)((channel * per_group + c) * w->kernel_count) * width;
        for (int64_t k = 0; k < kernel_rows; k++) {
            int64_t row = input_row(w, out_row, k);
            for (int64_t kx = 0; row >= 0 && kx < w->kernel[last]; kx++) {
                double weight = dtype_load_double(
                    job->w->dtype, weights + (size_t)(k * w->kernel[last] + kx) * width);
                add_row(sums, job, plane + (size_t)(row * w->in[last]) * width, weight,
                        kx * w->dilation[last] - w->pad_begin[last]);
            }
        }
    }
}

struct conv_rows {
    const struct conv_job *job;
    struct pool *pool;
    double *sums; /* one row per (batch, channel) part; see conv_reference */
};

/* Indices are (batch, channel) pairs; each has a row of sums of its own. */
static void compute_channels(void *context, int64_t begin, int64_t end)
{
    const struct conv_rows *rows = context;
    const struct conv_job *job = rows->job;
    const struct window *w = &job->window;
    int64_t length = w->out[w->rank - 1], out_rows = w->out_count / length;
    size_t width = tssa_dtype_size(job->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        double *sums = rows->sums + i * length;
        for (int64_t r = 0; r < out_rows; r++) {
            compute_row(job, i / job->out_channels, i % job->out_channels, r, sums);
            convert_elements(length, TSSA_DOUBLE, sums, 1, job->y->dtype,
                             (char *)job->y->data + (size_t)((i * out_rows + r) * length) * width,
                             1, &convert_default);
        }
    }
}

static tssa_status *conv_reference(struct kernel_args *args, const struct conv_job *job)
{
    struct buffer *sums;
    size_t count, bytes;
    int64_t channels = job->batch * job->out_channels,
            length = job->window.out[job->window.rank - 1];
    TRY(tensor_layout(TSSA_DOUBLE, 2, (const int64_t[]){channels, length}, &count, &bytes));
    TRY(kernel_scratch(args, bytes, &sums));
    struct conv_rows rows = {.job = job, .sums = sums->data};
    team_for(args->env->team, channels, 1, compute_channels, &rows);
    buffer_release(sums);
    return NULL;
}

static bool conv_provided(const struct kernel_args *args, const struct cpu_provider *provider,
                          const struct conv_job *job)
{
    const struct window *w = &job->window;
    if (!provider || job->x->dtype != TSSA_FLOAT || w->rank > CONV_MAX_RANK)
        return false;
    struct conv conv = {.rank = w->rank,
                        .batch = job->batch,
                        .groups = job->groups,
                        .in_channels = job->in_channels,
                        .out_channels = job->out_channels,
                        .x = job->x->data,
                        .w = job->w->data,
                        .bias = job->bias ? job->bias->data : NULL,
                        .y = job->y->data};
    for (int i = 0; i < w->rank; i++) {
        conv.in[i] = w->in[i];
        conv.out[i] = w->out[i];
        conv.kernel[i] = w->kernel[i];
        conv.stride[i] = w->stride[i];
        conv.dilation[i] = w->dilation[i];
        conv.pad_begin[i] = w->pad_begin[i];
        conv.pad_end[i] = w->pad_end[i];
    }
    return provider->conv_f32(&conv, args->env->team ? args->env->team->threads : 1);
}

static tssa_status *check_operands(const struct conv_attrs *attrs, const struct conv_job *job)
{
    const struct tensor *x = job->x, *w = job->w, *bias = job->bias;
    if (x->rank < 3 || w->rank != x->rank || x->dtype != w->dtype ||
        (bias && bias->dtype != x->dtype))
        return ERROR(TSSA_RUNTIME, "the input (rank %d) and the weights (rank %d) do not fit",
                     x->rank, w->rank);
    if (x->dims[1] % attrs->groups || w->dims[0] % attrs->groups ||
        w->dims[1] != x->dims[1] / attrs->groups)
        return ERROR(TSSA_RUNTIME,
                     "%" PRId64 " input channels in %" PRId64
                     " groups do not fit weights of %" PRId64 " times %" PRId64,
                     x->dims[1], attrs->groups, w->dims[0], w->dims[1]);
    if (bias && (bias->rank != 1 || bias->dims[0] != w->dims[0]))
        return ERROR(TSSA_RUNTIME, "the bias does not have %" PRId64 " elements", w->dims[0]);
    return NULL;
}

static tssa_status *run_Conv(struct kernel_args *args)
{
    const struct conv_attrs *attrs = args->state;
    struct conv_job job = {.groups = attrs->groups};
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &job.x));
    TRY(kernel_tensor(args, 1, &job.w));
    TRY(kernel_optional_tensor(args, 2, &job.bias));
    TRY(check_operands(attrs, &job));
    job.batch = dims[0] = job.x->dims[0];
    job.in_channels = job.x->dims[1];
    job.out_channels = dims[1] = job.w->dims[0];
    TRY(window_resolve(&attrs->window, job.x->rank - 2, job.x->dims + 2, job.w->dims + 2,
                       &job.window));
    memcpy(dims + 2, job.window.out, (size_t)job.window.rank * sizeof *dims);
    TRY(kernel_output(args, 0, job.x->dtype, job.x->rank, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0 || conv_provided(args, attrs->provider, &job))
        return NULL;
    return conv_reference(args, &job);
}

const struct cpu_kernel cpu_kernel_Conv = {conv_prepare, run_Conv};
