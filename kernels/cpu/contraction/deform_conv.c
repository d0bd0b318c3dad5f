/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeformConv (ai.onnx 19, 22), for any number of spatial axes: a convolution whose samples are moved by
 * offsets, read by linear interpolation (0 beyond the input) and scaled by a mask.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/sample.h"

struct deform_attrs {
    struct conv_attrs conv;
    int64_t offset_groups;
};

static tssa_status *deform_conv_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                        const void **state)
{
    struct deform_attrs *attrs = ARENA_NEW(setup->arena, struct deform_attrs);
    TRY_ALLOC(attrs);
    attrs->offset_groups = ir_attr_int(op, "offset_group", 1);
    if (attrs->offset_groups < 1)
        return ERROR(TSSA_MALFORMED, "offset_group is %" PRId64, attrs->offset_groups);
    *state = attrs;
    return conv_decode(op, &attrs->conv);
}

enum { INPUT, WEIGHTS, OFFSETS, BIAS, MASK, OPERANDS };

struct deform_job {
    struct conv_job conv;
    int64_t offset_groups;
    const double *x, *w, *bias;          /* bias may be NULL */
    const struct tensor *offsets, *mask; /* mask may be NULL */
    struct tensor *y;
};

/* Where kernel position k of offset group g reads for output position `at` of item n. */
static void place_sample(const struct deform_job *job, int64_t n, int64_t g, int64_t k, int64_t at,
                         struct sample_axis *axes)
{
    const struct window *w = &job->conv.window;
    int64_t out = at, kernel = k, stride = 1;
    int64_t row = ((n * job->offset_groups + g) * w->kernel_count + k) * w->rank;
    for (int d = w->rank - 1; d >= 0; d--) {
        double offset = dtype_load_double(job->offsets->dtype,
                                          element_at(job->offsets, (row + d) * w->out_count + at));
        int64_t whole = out % w->out[d] * w->stride[d] + kernel % w->kernel[d] * w->dilation[d] -
                        w->pad_begin[d];
        sample_axis_init(&axes[d], SAMPLE_LINEAR, SAMPLE_ZEROS, true, (double)whole + offset,
                         w->in[d], stride);
        stride *= w->in[d];
        out /= w->out[d];
        kernel /= w->kernel[d];
    }
}

static double mask_of(const struct deform_job *job, int64_t n, int64_t g, int64_t k, int64_t at)
{
    const struct window *w = &job->conv.window;
    if (!job->mask)
        return 1;
    int64_t row = (n * job->offset_groups + g) * w->kernel_count + k;
    return dtype_load_double(job->mask->dtype, element_at(job->mask, row * w->out_count + at));
}

/* What one sample adds to all output channels of the input channel's group. */
static void spread_sample(const struct deform_job *job, int64_t c, int64_t k, double value,
                          double *sums)
{
    const struct conv_job *conv = &job->conv;
    int64_t in_per_group = conv->in_channels / conv->groups;
    int64_t out_per_group = conv->out_channels / conv->groups;
    int64_t first = c / in_per_group * out_per_group;
    for (int64_t o = first; o < first + out_per_group; o++)
        sums[o] +=
            value * job->w[(o * in_per_group + c % in_per_group) * conv->window.kernel_count + k];
}

/* Indices are (batch, output position) pairs. */
static void compute_positions(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct deform_job *job = context;
    const struct conv_job *conv = &job->conv;
    const struct window *w = &conv->window;
    int64_t per_group = conv->in_channels / job->offset_groups;
    double *sums = scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / w->out_count, at = i % w->out_count;
        for (int64_t o = 0; o < conv->out_channels; o++)
            sums[o] = job->bias ? job->bias[o] : 0;
        for (int64_t gk = 0; gk < job->offset_groups * w->kernel_count; gk++) {
            int64_t g = gk / w->kernel_count, k = gk % w->kernel_count;
            struct sample_axis axes[WINDOW_MAX_RANK];
            place_sample(job, n, g, k, at, axes);
            double mask = mask_of(job, n, g, k, at);
            for (int64_t c = g * per_group; c < (g + 1) * per_group; c++) {
                const double *plane = job->x + (n * conv->in_channels + c) * w->in_count;
                spread_sample(job, c, k, mask * sample_doubles_at(plane, axes, w->rank), sums);
            }
        }
        for (int64_t o = 0; o < conv->out_channels; o++)
            dtype_store_double(job->y->dtype,
                               element_at(job->y, (n * conv->out_channels + o) * w->out_count + at),
                               sums[o]);
    }
}

/* offsets: [batch, offset groups * kernel * rank, out...]; mask the same without rank. */
static tssa_status *check_points(const struct deform_job *job, uint32_t index,
                                 const struct tensor *tensor, int64_t per_position)
{
    const struct window *w = &job->conv.window;
    int64_t rows = 0;
    bool fits = tensor->rank == w->rank + 2 && tensor->dims[0] == job->conv.batch &&
                i64_mul(job->offset_groups, w->kernel_count, &rows) &&
                i64_mul(rows, per_position, &rows) && tensor->dims[1] == rows;
    for (int i = 0; fits && i < w->rank; i++)
        fits = tensor->dims[i + 2] == w->out[i];
    if (fits)
        return NULL;
    char text[256];
    int used = snprintf(text, sizeof text, "[%" PRId64 ", %" PRId64, job->conv.batch, rows);
    for (int i = 0; i < w->rank && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ", %" PRId64, w->out[i]);
    if (used < (int)sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "], a number per offset and position");
    return operand_error(index, tensor, text);
}

static tssa_status *open_job(struct kernel_args *args, struct deform_job *job,
                             const struct tensor **operands, int64_t *dims)
{
    const struct deform_attrs *attrs = args->state;
    job->offset_groups = attrs->offset_groups;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (i == BIAS || i == MASK)
            TRY(kernel_optional_tensor(args, i, &operands[i]));
        else
            TRY(kernel_tensor(args, i, &operands[i]));
        if (operands[i] && !dtype_in(args->op->info->types, operands[i]->dtype))
            return operand_error(i, operands[i], "of a float type");
    }
    job->conv.x = operands[INPUT];
    job->conv.w = operands[WEIGHTS];
    job->conv.bias = operands[BIAS];
    job->offsets = operands[OFFSETS];
    job->mask = operands[MASK];
    TRY(conv_resolve(&attrs->conv, &job->conv, dims));
    if (job->conv.in_channels % job->offset_groups)
        return ERROR(TSSA_RUNTIME, "%" PRId64 " channels in %" PRId64 " offset groups",
                     job->conv.in_channels, job->offset_groups);
    TRY(check_points(job, OFFSETS, job->offsets, job->conv.window.rank));
    return job->mask ? check_points(job, MASK, job->mask, 1) : NULL;
}

static tssa_status *compute(struct kernel_args *args, struct deform_job *job)
{
    const struct conv_job *conv = &job->conv;
    struct buffer *x = NULL, *w = NULL, *bias = NULL;
    int64_t cost;
    tssa_status *status;
    if (!i64_mul(conv->in_channels, conv->window.kernel_count, &cost) ||
        !i64_mul(cost, conv->out_channels / conv->groups + 8, &cost))
        cost = INT64_MAX;
    TRY_GOTO(status, doubles_of(args, conv->x, &x), done);
    TRY_GOTO(status, doubles_of(args, conv->w, &w), done);
    TRY_GOTO(status, doubles_of(args, conv->bias, &bias), done);
    job->x = x->data;
    job->w = w->data;
    job->bias = bias ? bias->data : NULL;
    status = parts_for(args, conv->batch * conv->window.out_count, cost,
                       (size_t)conv->out_channels * sizeof(double), compute_positions, job);
done:
    buffer_release(x);
    buffer_release(w);
    buffer_release(bias);
    return status;
}

static tssa_status *run_DeformConv(struct kernel_args *args)
{
    struct deform_job job = {0};
    const struct tensor *operands[OPERANDS];
    int64_t dims[TSSA_MAX_RANK];
    TRY(open_job(args, &job, operands, dims));
    TRY(kernel_output(args, 0, job.conv.x->dtype, job.conv.x->rank, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    return compute(args, &job);
}

const struct kernel cpu_kernel_DeformConv = {.prepare = deform_conv_prepare, .run = run_DeformConv};
