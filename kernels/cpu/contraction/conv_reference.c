/* SPDX-License-Identifier: Apache-2.0 */
/* The reference convolution: rows of outputs along the last axis, summed in double. */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/lib/convert.h"

tssa_status *conv_decode(const struct ir_op *op, struct conv_attrs *attrs)
{
    attrs->groups = ir_attr_int(op, "group", 1);
    if (attrs->groups < 1)
        return ERROR(TSSA_MALFORMED, "group is %" PRId64, attrs->groups);
    return window_decode(op, &attrs->window);
}

tssa_status *conv_resolve(const struct conv_attrs *attrs, struct conv_job *job, int64_t *dims)
{
    const struct tensor *x = job->x, *w = job->w, *bias = job->bias;
    if (x->rank < 3 || w->rank != x->rank)
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
    job->groups = attrs->groups;
    job->batch = dims[0] = x->dims[0];
    job->in_channels = x->dims[1];
    job->out_channels = dims[1] = w->dims[0];
    TRY(window_resolve(&attrs->window, x->rank - 2, x->dims + 2, w->dims + 2, &job->window));
    memcpy(dims + 2, job->window.out, (size_t)job->window.rank * sizeof *dims);
    return NULL;
}

/* ---- Operands in double --------------------------------------------------------------------------- */

/* `tensor` - zeros[i] for its i-th of `parts` equal parts. */
static tssa_status *widen(struct kernel_args *args, const struct tensor *tensor, int64_t parts,
                          const double *zeros, struct buffer **out)
{
    int64_t count = (int64_t)tensor_count(tensor), size = parts ? count / parts : 0;
    size_t elements, bytes, width = tssa_dtype_size(tensor->dtype);
    TRY(tensor_layout(TSSA_DOUBLE, tensor->rank, tensor->dims, &elements, &bytes));
    TRY(kernel_scratch(args, bytes, out));
    for (int64_t p = 0; p < parts; p++) {
        double *to = (double *)(*out)->data + p * size;
        convert_elements(size, tensor->dtype,
                         (const char *)tensor->data + (size_t)(p * size) * width, 1, TSSA_DOUBLE,
                         to, 1, &convert_default);
        for (int64_t i = 0; zeros && i < size; i++)
            to[i] -= zeros[p];
    }
    return NULL;
}

/* ---- Rows ----------------------------------------------------------------------------------------- */

struct conv_rows {
    const struct conv_job *job;
    const double *x, *w; /* x NULL: float32 as it is */
    double *sums;        /* a row per (batch, channel) */
    struct tensor *y;
    conv_finish finish;
    const void *context;
};

/* One kernel position's contribution to a row of outputs; `at` is where the row starts in x. */
static void add_row(const struct conv_rows *rows, double *sums, int64_t at, double weight,
                    int64_t offset)
{
    const struct window *w = &rows->job->window;
    int last = w->rank - 1;
    int64_t begin, end, stride = w->stride[last];
    window_valid_range(offset, stride, w->in[last], w->out[last], &begin, &end);
    if (rows->x) {
        const double *x = rows->x + at + offset;
        for (int64_t o = begin; o < end; o++)
            sums[o] += weight * x[o * stride];
    } else {
        const float *x = (const float *)rows->job->x->data + at + offset;
        for (int64_t o = begin; o < end; o++)
            sums[o] += weight * (double)x[o * stride];
    }
}

/* All channels of the group, all kernel positions. */
static void compute_row(const struct conv_rows *rows, int64_t n, int64_t channel, int64_t out_row,
                        double *sums)
{
    const struct conv_job *job = rows->job;
    const struct window *w = &job->window;
    int last = w->rank - 1;
    int64_t per_group = job->in_channels / job->groups,
            group = channel / (job->out_channels / job->groups);
    int64_t kernel_rows = w->kernel_count / w->kernel[last];
    for (int64_t c = 0; c < per_group; c++) {
        int64_t plane = (n * job->in_channels + group * per_group + c) * w->in_count;
        const double *weights = rows->w + (channel * per_group + c) * w->kernel_count;
        for (int64_t k = 0; k < kernel_rows; k++) {
            int64_t row = window_input_row(w, out_row, k);
            for (int64_t kx = 0; row >= 0 && kx < w->kernel[last]; kx++)
                add_row(rows, sums, plane + row * w->in[last], weights[k * w->kernel[last] + kx],
                        kx * w->dilation[last] - w->pad_begin[last]);
        }
    }
}

/* Indices are (batch, channel) pairs. */
static void compute_channels(void *context, int64_t begin, int64_t end)
{
    const struct conv_rows *rows = context;
    const struct conv_job *job = rows->job;
    const struct window *w = &job->window;
    const struct tensor *bias = job->bias;
    int64_t length = w->out[w->rank - 1], out_rows = w->out_count / length;
    size_t width = tssa_dtype_size(rows->y->dtype),
           bias_width = bias ? tssa_dtype_size(bias->dtype) : 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % job->out_channels;
        double start = 0, *sums = rows->sums + i * length;
        if (bias)
            start = dtype_load_double(bias->dtype,
                                      (const char *)bias->data + (size_t)channel * bias_width);
        for (int64_t r = 0; r < out_rows; r++) {
            for (int64_t o = 0; o < length; o++)
                sums[o] = start;
            compute_row(rows, i / job->out_channels, channel, r, sums);
            rows->finish(rows->context, channel, sums, length,
                         (char *)rows->y->data + (size_t)((i * out_rows + r) * length) * width);
        }
    }
}

static tssa_status *widen_operands(struct kernel_args *args, const struct conv_job *job,
                                   struct buffer **x, struct buffer **w)
{
    if (job->x->dtype != TSSA_FLOAT)
        TRY(widen(args, job->x, 1, &job->x_zero, x));
    return widen(args, job->w, job->w_zeros ? job->out_channels : 1, job->w_zeros, w);
}

tssa_status *conv_reference(struct kernel_args *args, const struct conv_job *job, struct tensor *y,
                            conv_finish finish, const void *context)
{
    struct buffer *x = NULL, *w = NULL, *sums = NULL;
    size_t count, bytes;
    int64_t channels = job->batch * job->out_channels;
    if (tensor_count(y) == 0)
        return NULL;
    tssa_status *status = widen_operands(args, job, &x, &w);
    if (!status)
        status = tensor_layout(TSSA_DOUBLE, 2,
                               (const int64_t[]){channels, job->window.out[job->window.rank - 1]},
                               &count, &bytes);
    if (!status)
        status = kernel_scratch(args, bytes, &sums);
    if (!status) {
        struct conv_rows rows = {.job = job,
                                 .x = x ? x->data : NULL,
                                 .w = w->data,
                                 .sums = sums->data,
                                 .y = y,
                                 .finish = finish,
                                 .context = context};
        team_for(args->env->team, channels, 1, compute_channels, &rows);
    }
    buffer_release(x);
    buffer_release(w);
    buffer_release(sums);
    return status;
}
