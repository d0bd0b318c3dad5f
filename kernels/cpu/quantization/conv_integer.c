/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QLinearConv and ConvInteger (ai.onnx 10). Sums of products of 8-bit integers are exact, by the
 * library in INT32 or by the reference in double; QLinearConv scales them, rounds to nearest even
 * and saturates.
 */
#include <inttypes.h>

#include "kernels/cpu/quantization/byte_sums.h"
#include "kernels/cpu/quantization/requantize.h"

extern const struct kernel cpu_kernel_QLinearConv, cpu_kernel_ConvInteger;

#define GRAIN 8192 /* elements */

struct integer_state {
    struct conv_attrs attrs;
    struct library_cache library;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct integer_state *state = ARENA_NEW(setup->arena, struct integer_state);
    const uint32_t w = ir_op_is(op, IR_OP_QLinearConv) ? 3 : 1;
    TRY_ALLOC(state);
    TRY(conv_decode(op, &state->attrs));
    library_cache_open(&state->library, setup, byte_sums_constant(op, w));
    *result = state;
    return NULL;
}

static void release(const void *state)
{
    library_cache_close(&((struct integer_state *)(void *)state)->library);
}

static struct library_cache *library_of(const struct kernel_args *args)
{
    return &((struct integer_state *)(void *)args->state)->library;
}

static tssa_status *check_8_bits(const struct tensor *tensor, const char *what)
{
    if (tensor->dtype != TSSA_UINT8 && tensor->dtype != TSSA_INT8)
        return ERROR(TSSA_RUNTIME, "%s must be INT8 or UINT8, not %s", what,
                     tssa_dtype_name(tensor->dtype));
    return NULL;
}

/* x, w and their zero points, the latter at operands `x_zero` and `w_zero` (may be absent). */
static tssa_status *open_job(struct kernel_args *args, uint32_t w, uint32_t x_zero, uint32_t w_zero,
                             struct conv_job *job, struct conv_zeros *zeros,
                             struct buffer **w_zeros, int64_t *dims)
{
    TRY(kernel_tensor(args, 0, &job->x));
    TRY(kernel_tensor(args, w, &job->w));
    TRY(check_8_bits(job->x, "the input"));
    TRY(check_8_bits(job->w, "the weights"));
    TRY(conv_resolve(&((const struct integer_state *)args->state)->attrs, job, dims));
    TRY(requantize_scalar(args, x_zero, 0, &zeros->x));
    TRY(requantize_vector(args, w_zero, job->out_channels, 0, w_zeros));
    zeros->w = (*w_zeros)->data;
    return NULL;
}

/* ---- ConvInteger ----------------------------------------------------------------------------- */

static void store_int32(const void *context, int64_t channel, const void *doubles, int64_t count,
                        void *out)
{
    const double *sums = doubles;
    int32_t *to = out;
    (void)context;
    (void)channel;
    for (int64_t i = 0; i < count; i++) /* wraps, as the accumulator of the standard does */
        to[i] = (int32_t)(uint32_t)(uint64_t)(int64_t)sums[i];
}

static tssa_status *sum(struct kernel_args *args, const struct conv_job *job,
                        const struct conv_zeros *zeros, struct tensor *y)
{
    bool done;
    TRY(byte_sums_conv(args, library_of(args), job, zeros, y->data, &done));
    return done ? NULL : conv_reference(args, job, zeros, y, store_int32, NULL);
}

static tssa_status *run_ConvInteger(struct kernel_args *args)
{
    struct conv_job job = {0};
    struct conv_zeros zeros;
    struct buffer *w_zeros = NULL;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    tssa_status *status = open_job(args, 1, 2, 3, &job, &zeros, &w_zeros, dims);
    if (!status)
        status = kernel_output(args, 0, TSSA_INT32, job.x->rank, dims, &y);
    if (!status && y)
        status = sum(args, &job, &zeros, y);
    buffer_release(w_zeros);
    return status;
}

const struct kernel cpu_kernel_ConvInteger = {
    .prepare = prepare, .run = run_ConvInteger, .release = release};

/* ---- QLinearConv ----------------------------------------------------------------------------- */

static void store_quantized(const void *context, int64_t channel, const void *sums, int64_t count,
                            void *out)
{
    requantize_row(context, channel, sums, count, out);
}

struct rows {
    const struct conv_job *job;
    const struct requantize *r;
    const int32_t *sums;
    uint8_t *y;
};

static void requantize_rows(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    const int64_t size = rows->job->window.out_count;
    const int32_t *bias = rows->job->bias ? rows->job->bias->data : NULL;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % rows->job->out_channels;
        requantize_row_i32(rows->r, channel, bias ? bias[channel] : 0, rows->sums + i * size, size,
                           rows->y + i * size);
    }
}

/* By the library; *done as there. */
static tssa_status *quantize_sums(struct kernel_args *args, const struct conv_job *job,
                                  const struct conv_zeros *zeros, const struct requantize *r,
                                  struct tensor *y, bool *done)
{
    const int64_t rows = job->batch * job->out_channels;
    struct buffer *sums = NULL;
    TRY(kernel_scratch(args, tensor_count(y) * sizeof(int32_t), &sums));
    tssa_status *status = byte_sums_conv(args, library_of(args), job, zeros, sums->data, done);
    struct rows work = {job, r, sums->data, y->data};
    if (!status && *done)
        team_for(args->env->team, rows, GRAIN / (job->window.out_count + 1) + 1, requantize_rows,
                 &work);
    buffer_release(sums);
    return status;
}

static tssa_status *quantize(struct kernel_args *args, const struct conv_job *job,
                             const struct conv_zeros *zeros, const struct requantize *r,
                             struct tensor *y)
{
    bool done = false;
    if (tensor_count(y) > 0)
        TRY(quantize_sums(args, job, zeros, r, y, &done));
    return done ? NULL : conv_reference(args, job, zeros, y, store_quantized, r);
}

/* Operands: x, scale, zero, w, scale, zero, y scale, zero, bias (INT32 in units of x scale * w
 * scale). */
static tssa_status *run_quantized(struct kernel_args *args, struct conv_job *job,
                                  struct requantize *r, struct buffer **w_zeros)
{
    struct conv_zeros zeros;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    TRY(open_job(args, 3, 2, 5, job, &zeros, w_zeros, dims));
    TRY(kernel_optional_tensor(args, 8, &job->bias));
    if (job->bias && (job->bias->dtype != TSSA_INT32 || job->bias->rank != 1 ||
                      job->bias->dims[0] != job->out_channels))
        return ERROR(TSSA_RUNTIME, "the bias must be %" PRId64 " INT32 values", job->out_channels);
    TRY(requantize_open(args, 1, 4, 6, 7, job->out_channels, r));
    TRY(kernel_output(args, 0, r->dtype, job->x->rank, dims, &y));
    return y ? quantize(args, job, &zeros, r, y) : NULL;
}

static tssa_status *run_QLinearConv(struct kernel_args *args)
{
    struct conv_job job = {0};
    struct requantize r = {0};
    struct buffer *w_zeros = NULL;
    tssa_status *status = run_quantized(args, &job, &r, &w_zeros);
    requantize_close(&r);
    buffer_release(w_zeros);
    return status;
}

const struct kernel cpu_kernel_QLinearConv = {
    .prepare = prepare, .run = run_QLinearConv, .release = release};
