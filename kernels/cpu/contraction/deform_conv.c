/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeformConv (ai.onnx 19, 22), for any number of spatial axes: a convolution whose samples are
 * moved by offsets, read by linear interpolation (0 beyond the input; lib/sample.h) and scaled by a
 * mask. Samples of some output positions are made together, then summed as the reference
 * convolution sums (conv.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/lib/gemm_rows.h"
#include "kernels/cpu/lib/grid_planes.h"
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
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    const char *x, *w;                   /* as such */
    const struct tensor *offsets, *mask; /* mask may be NULL */
    struct tensor *y;
};

/* Output positions that are computed together. */
#define BLOCK 32
_Static_assert(BLOCK <= GRID_POINTS, "planes are sampled at all of them at once");

/* Some output positions of an item, and where each one's window begins along each axis. */
struct block {
    int64_t item, at, n;
    int64_t begins[WINDOW_MAX_RANK][BLOCK];
};

static void find_windows(const struct window *w, struct block *block)
{
    for (int64_t p = 0; p < block->n; p++) {
        int64_t out = block->at + p;
        for (int d = w->rank - 1; d >= 0; d--) {
            block->begins[d][p] = out % w->out[d] * w->stride[d] - w->pad_begin[d];
            out /= w->out[d];
        }
    }
}

/* Where kernel position k of offset group g reads for the positions of a block: `rank` axes for
 * each. */
static void place_samples(const struct deform_job *job, const struct block *block, int64_t g,
                          int64_t k, struct sample_axis *axes)
{
    const struct window *w = &job->conv.window;
    const int64_t row = ((block->item * job->offset_groups + g) * w->kernel_count + k) * w->rank;
    double x[BLOCK];
    int64_t stride = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        const struct sample_line line = {SAMPLE_LINEAR, SAMPLE_ZEROS, true, w->in[d], stride};
        const int64_t within = k % w->kernel[d] * w->dilation[d];
        load_doubles(job->offsets, (row + d) * w->out_count + block->at, 1, block->n, x);
        for (int64_t p = 0; p < block->n; p++)
            x[p] += (double)(block->begins[d][p] + within);
        sample_axes_init(&line, x, block->n, axes + d, w->rank);
        stride *= w->in[d];
        k /= w->kernel[d];
    }
}

/* Samples of channels [begin, end) of the block's item, a plane of `stride` samples from one
 * channel to the next. */
static void sample_channels(const struct deform_job *job, const struct block *block,
                            const struct sample_axis *axes, int64_t begin, int64_t end,
                            int64_t stride, char *to)
{
    const struct window *w = &job->conv.window;
    const int64_t plane = block->item * job->conv.in_channels + begin;
    const char *x = job->x + (size_t)(plane * w->in_count) * job->width;
    if (job->dtype == TSSA_FLOAT && w->rank == 2) {
        const struct grid_planes planes = {(const float *)(const void *)x, (float *)(void *)to,
                                           end - begin, w->in_count, stride};
        grid_planes_sample(&planes, axes, block->n);
        return;
    }
    for (int64_t c = 0; c < end - begin; c++)
        for (int64_t p = 0; p < block->n; p++) {
            const int64_t from = c * w->in_count, at = c * stride + p;
            if (job->dtype == TSSA_FLOAT)
                ((float *)(void *)to)[at] = sample_floats_at((const float *)(const void *)x + from,
                                                             axes + p * w->rank, w->rank);
            else
                ((double *)(void *)to)[at] = sample_doubles_at(
                    (const double *)(const void *)x + from, axes + p * w->rank, w->rank);
        }
}

#define SCALE(name, T)                                                                             \
    static void name(const T *restrict mask, int64_t n, T *restrict samples)                       \
    {                                                                                              \
        for (int64_t p = 0; p < n; p++)                                                            \
            samples[p] *= mask[p];                                                                 \
    }
SCALE(scale_floats, float)
SCALE(scale_doubles, double)

/* Samples of kernel position k, of some channels, times the mask's numbers. */
static void scale_channels(const struct deform_job *job, const struct block *block, int64_t g,
                           int64_t k, int64_t channels, int64_t stride, char *samples)
{
    const struct window *w = &job->conv.window;
    const int64_t row = (block->item * job->offset_groups + g) * w->kernel_count + k;
    _Alignas(8) char mask[BLOCK * sizeof(double)];
    if (!job->mask)
        return;
    load_elements(job->mask, row * w->out_count + block->at, 1, block->n, job->dtype, mask);
    for (int64_t c = 0; c < channels; c++, samples += (size_t)stride * job->width)
        if (job->dtype == TSSA_FLOAT)
            scale_floats((const float *)(const void *)mask, block->n, (float *)(void *)samples);
        else
            scale_doubles((const double *)(const void *)mask, block->n, (double *)(void *)samples);
}

/* Samples of a block's positions: for each input channel and kernel position, BLOCK elements. */
static void make_samples(const struct deform_job *job, const struct block *block, int64_t g,
                         int64_t k, char *samples)
{
    struct sample_axis axes[WINDOW_MAX_RANK * BLOCK];
    const int64_t taps = job->conv.window.kernel_count, stride = taps * BLOCK;
    const int64_t channels = job->conv.in_channels / job->offset_groups, first = g * channels;
    char *to = samples + (size_t)((first * taps + k) * BLOCK) * job->width;
    place_samples(job, block, g, k, axes);
    sample_channels(job, block, axes, first, first + channels, stride, to);
    scale_channels(job, block, g, k, channels, stride, to);
}

/* All output channels of a group at BLOCK positions; `sums` has room for them. */
static void sum_samples(const struct deform_job *job, const struct block *block, int64_t group,
                        const char *samples, char *sums)
{
    const struct conv_job *conv = &job->conv;
    const int64_t terms = conv->in_channels / conv->groups * conv->window.kernel_count;
    const int64_t channels = conv->out_channels / conv->groups, first = group * channels;
    struct gemm gemm = {.m = channels, .n = BLOCK, .k = terms, .c = sums};
    gemm.a = job->w + (size_t)(first * terms) * job->width;
    gemm.b = samples + (size_t)(group * terms * BLOCK) * job->width;
    gemm.a_row = terms;
    gemm.b_row = BLOCK;
    gemm.a_column = gemm.b_column = 1;
    (job->dtype == TSSA_FLOAT ? gemm_rows_f32 : gemm_rows_f64)(&gemm, 0, channels);
    for (int64_t o = first; o < first + channels; o++, sums += BLOCK * job->width) {
        if (conv->bias)
            conv_add_bias(conv->bias, o, job->dtype, sums, BLOCK);
        store_elements(job->y,
                       (block->item * conv->out_channels + o) * conv->window.out_count + block->at,
                       1, block->n, job->dtype, sums);
    }
}

/* Indices are blocks of output positions, `blocks` of an item. Scratch: all samples of one, and the
 * sums of a group. */
static void compute_blocks(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct deform_job *job = context;
    const struct conv_job *conv = &job->conv;
    const struct window *w = &conv->window;
    const int64_t blocks = (w->out_count + BLOCK - 1) / BLOCK;
    const size_t samples = (size_t)(conv->in_channels * w->kernel_count * BLOCK) * job->width;
    memset(scratch, 0, samples);
    for (int64_t i = begin; i < end; i++) {
        struct block block = {.item = i / blocks, .at = i % blocks * BLOCK};
        block.n = w->out_count - block.at < BLOCK ? w->out_count - block.at : BLOCK;
        find_windows(w, &block);
        for (int64_t gk = 0; gk < job->offset_groups * w->kernel_count; gk++)
            make_samples(job, &block, gk / w->kernel_count, gk % w->kernel_count, scratch);
        for (int64_t g = 0; g < conv->groups; g++)
            sum_samples(job, &block, g, scratch, (char *)scratch + samples);
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
    const struct tensor *operands[2] = {conv->x, conv->w};
    const void *operand[2] = {NULL};
    struct buffer *wide[2] = {NULL};
    int64_t samples, elements, cost, blocks = (conv->window.out_count + BLOCK - 1) / BLOCK;
    size_t bytes;
    tssa_status *status = NULL;
    job->dtype = computed_in(conv->x->dtype);
    job->width = tssa_dtype_size(job->dtype);
    if (!i64_mul(conv->in_channels, conv->window.kernel_count, &samples) ||
        !i64_add(samples, conv->out_channels / conv->groups, &elements) ||
        !i64_mul(elements, BLOCK, &elements) || !size_mul((size_t)elements, job->width, &bytes))
        return ERROR(TSSA_LIMIT, "%" PRId64 " channels are too many", conv->in_channels);
    samples *= BLOCK;
    if (!i64_mul(samples, conv->out_channels / conv->groups + 8, &cost))
        cost = INT64_MAX;
    for (int i = 0; i < 2 && !status; i++)
        status = elements_as(args, operands[i], job->dtype, &operand[i], &wide[i]);
    job->x = operand[0];
    job->w = operand[1];
    if (!status)
        status = parts_for(args, conv->batch * blocks, cost, bytes, compute_blocks, job);
    for (int i = 0; i < 2; i++)
        buffer_release(wide[i]);
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
