/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QLinearConv (ai.onnx 10). Sums of products of 8-bit integers are exact, by the library in INT32
 * or by the reference in double; they are scaled, rounded to nearest even, and saturate. Where all
 * but x is constant, factors are finite and floats hold every sum, the library does that, too.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "ir/weights_turned.h"
#include "kernels/cpu/quantization/conv_bytes.h"

extern const struct kernel cpu_kernel_QLinearConv;

/* x and its scale and zero point come first. */
enum operand { X_SCALE = 1, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

struct qlinear_state {
    struct conv_bytes_state conv;       /* first: conv_bytes.h */
    struct library_quantizer quantizer; /* factors NULL: it differs from run to run, sums are too
                                           large, or a factor is not finite */
};

#define GRAIN 8192 /* elements */

/* ---- Preparing ------------------------------------------------------------------------------- */

#define MOST_X 255 /* of x, one less another */

static const struct tensor *constant_of(const struct ir_op *op, enum operand operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    return value ? ir_value_constant(value) : NULL;
}

/* Element i of as many as there are channels, or of one. */
static const void *element(const struct tensor *tensor, int64_t i)
{
    const size_t at = tensor_count(tensor) == 1 ? 0 : (size_t)i;
    return (const char *)tensor->data + at * tssa_dtype_size(tensor->dtype);
}

static bool is_scalar_or(const struct tensor *tensor, int64_t channels)
{
    return tensor && (tensor_count(tensor) == 1 || tensor_count(tensor) == (size_t)channels);
}

/* Sums of weights, and of their magnitudes. */
struct weight {
    int64_t sum, size;
};

/* x times them, whose pixels are from 0 or less to 255 or less, 255 apart, is no larger than 255
 * times those above 0, or those below. */
static int64_t largest(struct weight w)
{
    return (w.size + llabs(w.sum)) / 2 * MOST_X;
}

#define STRETCH 4096 /* of which 32 bits hold the sums */

VECTOR_PROCEDURE(add_weights,
                 (const uint8_t *w, int64_t n, int32_t flip, int32_t zero, struct weight *to),
                 (w, n, flip, zero, to))
{
    for (int64_t i = 0; i < n; i += STRETCH) {
        const int64_t end = i + STRETCH < n ? i + STRETCH : n;
        int32_t sum = 0, size = 0;
        for (int64_t j = i; j < end; j++) {
            const int32_t weight = ((int32_t)w[j] ^ flip) - zero;
            sum += weight;
            size += weight < 0 ? -weight : weight;
        }
        to->sum += sum;
        to->size += size;
    }
}

/* Weights as they lie: [out][rest], or turned [in][out]. */
struct lying {
    const struct tensor *w;
    bool turned;
    int64_t out, rest;
};

static int64_t zero_of(const struct ir_op *op, int64_t channel)
{
    const struct tensor *zeros = constant_of(op, W_ZERO);
    return dtype_load_int64(zeros->dtype, element(zeros, channel));
}

#define COLUMNS 64 /* that are turned together */
#define ROWS 256

/* Of INT8 from -128 on, 0 is the lowest: they are taken as UINT8 that are 128 larger, as is their
 * zero point. */
static void weigh_columns(const struct ir_op *op, const struct lying *l, int64_t first, int64_t n,
                          struct weight *weights)
{
    const int32_t more = l->w->dtype == TSSA_INT8 ? 128 : 0;
    uint8_t columns[COLUMNS * ROWS];
    for (int64_t i = 0, rows; i < l->rest; i += rows) {
        rows = l->rest - i < ROWS ? l->rest - i : ROWS;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < n; c++)
                columns[c * ROWS + r] = ((const uint8_t *)l->w->data)[(i + r) * l->out + first + c];
        for (int64_t c = 0; c < n; c++)
            add_weights(columns + c * ROWS, rows, more, (int32_t)zero_of(op, first + c) + more,
                        &weights[c]);
    }
}

/* The weights of n channels, at most COLUMNS. */
static void weigh(const struct ir_op *op, const struct lying *l, int64_t first, int64_t n,
                  struct weight *weights)
{
    const int32_t more = l->w->dtype == TSSA_INT8 ? 128 : 0;
    memset(weights, 0, (size_t)n * sizeof *weights);
    if (l->turned) {
        weigh_columns(op, l, first, n, weights);
        return;
    }
    for (int64_t c = 0; c < n; c++)
        add_weights((const uint8_t *)l->w->data + (first + c) * l->rest, l->rest, more,
                    (int32_t)zero_of(op, first + c) + more, &weights[c]);
}

/* What no sum is beyond, with or without its bias. */
static int64_t most_of(const struct ir_op *op, const struct lying *l)
{
    const struct tensor *bias = constant_of(op, BIAS);
    struct weight weights[COLUMNS];
    int64_t most = 0;
    for (int64_t first = 0, n; first < l->out; first += n) {
        n = l->out - first < COLUMNS ? l->out - first : COLUMNS;
        weigh(op, l, first, n, weights);
        for (int64_t c = 0; c < n; c++) {
            const int64_t sum =
                largest(weights[c]) +
                (bias ? llabs(dtype_load_int64(bias->dtype, element(bias, first + c))) : 0);
            most = sum > most ? sum : most;
        }
    }
    return most;
}

static struct lying lying_of(const struct ir_op *op)
{
    const struct tensor *w = constant_of(op, W);
    const bool turned = ir_attr_int(op, IR_WEIGHTS_TURNED, 0) != 0;
    const int64_t out = w && w->rank > turned ? w->dims[turned] : 0;
    return (struct lying){w, turned, out, out > 0 ? (int64_t)tensor_count(w) / out : 0};
}

/* Is all but x constant, and of the types and sizes that a run would ask for? */
static bool is_constant(const struct ir_op *op)
{
    const struct tensor *bias = constant_of(op, BIAS), *zero = constant_of(op, Y_ZERO);
    const int64_t channels = lying_of(op).out;
    return channels > 0 && is_scalar_or(constant_of(op, X_SCALE), 1) &&
           is_scalar_or(constant_of(op, Y_SCALE), 1) && is_scalar_or(zero, 1) &&
           dtype_in(T_I8U8, zero->dtype) && is_scalar_or(constant_of(op, W_SCALE), channels) &&
           is_scalar_or(constant_of(op, W_ZERO), channels) &&
           (!ir_operand(op, BIAS) ||
            (bias && bias->dtype == TSSA_INT32 && bias->rank == 1 && bias->dims[0] == channels));
}

static float number(const struct tensor *tensor, int64_t i)
{
    return (float)dtype_load_double(tensor->dtype, element(tensor, i));
}

/* False: some factor is no finite number, of which a library makes other bytes than we do. */
static bool find_factors(const struct ir_op *op, int64_t channels, float *factors)
{
    bool finite = true;
    for (int64_t i = 0; i < channels; i++) {
        factors[i] = requantize_factor(number(constant_of(op, X_SCALE), 0),
                                       number(constant_of(op, W_SCALE), i),
                                       number(constant_of(op, Y_SCALE), 0));
        finite &= isfinite(factors[i]) != 0;
    }
    return finite;
}

static tssa_status *find_quantizer(const struct ir_op *op, const struct kernel_setup *setup,
                                   struct library_quantizer *quantizer)
{
    if (!is_constant(op))
        return NULL;
    const struct lying w = lying_of(op);
    const struct tensor *zero = constant_of(op, Y_ZERO);
    const int64_t most = most_of(op, &w);
    ir_graph_forget(setup->graph, w.w->data, tensor_bytes(w.w));
    if (most > INT32_MAX)
        return NULL;
    float *factors = arena_alloc(setup->arena, (size_t)w.out * sizeof *factors);
    TRY_ALLOC(factors);
    if (find_factors(op, w.out, factors))
        *quantizer = (struct library_quantizer){factors, zero->dtype,
                                                dtype_load_int64(zero->dtype, zero->data), most};
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct qlinear_state *state = ARENA_NEW(setup->arena, struct qlinear_state);
    TRY_ALLOC(state);
    state->quantizer = (struct library_quantizer){0};
    *result = state;
    TRY(conv_bytes_prepare(op, setup, W, &state->conv));
    return find_quantizer(op, setup, &state->quantizer);
}

static bool is_turned(const struct kernel_args *args)
{
    return ((const struct qlinear_state *)args->state)->conv.turned;
}

/* ---- Of sums --------------------------------------------------------------------------------- */

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

/* Of all channels of each pixel. */
static void requantize_pixels(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    const int64_t channels = rows->job->out_channels;
    const int32_t *bias = rows->job->bias ? rows->job->bias->data : NULL;
    for (int64_t i = begin; i < end; i++)
        requantize_channels_i32(rows->r, bias, rows->sums + i * channels, channels,
                                rows->y + i * channels);
}

/* By the library; *done as there. */
static tssa_status *sum_and_quantize(struct kernel_args *args, const struct conv_bytes *bytes,
                                     const struct requantize *r, struct tensor *y, bool *done)
{
    const struct conv_job *job = &bytes->job;
    struct buffer *sums = NULL;
    TRY(kernel_scratch(args, tensor_count(y) * sizeof(int32_t), &sums));
    tssa_status *status = byte_sums_conv(args, conv_bytes_library(args), job, is_turned(args),
                                         &bytes->zeros, sums->data, done);
    struct rows work = {job, r, sums->data, y->data};
    if (!status && *done && job->x_last)
        team_for(args->env->team, job->batch * job->window.out_count,
                 GRAIN / (job->out_channels + 1) + 1, requantize_pixels, &work);
    else if (!status && *done)
        team_for(args->env->team, job->batch * job->out_channels,
                 GRAIN / (job->window.out_count + 1) + 1, requantize_rows, &work);
    buffer_release(sums);
    return status;
}

static tssa_status *quantize(struct kernel_args *args, const struct conv_bytes *bytes,
                             struct tensor *y, struct requantize *r)
{
    bool done = false;
    TRY(requantize_open(args, X_SCALE, W_SCALE, Y_SCALE, Y_ZERO, bytes->job.out_channels, r));
    if (tensor_count(y) > 0)
        TRY(sum_and_quantize(args, bytes, r, y, &done));
    return done ? NULL : conv_bytes_reference(args, bytes, y, store_quantized, r);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* *dtype: of the result. */
static tssa_status *open_operands(struct kernel_args *args, struct conv_bytes *bytes,
                                  tssa_dtype *dtype)
{
    const struct tensor *zero;
    struct conv_job *job = &bytes->job;
    TRY(conv_bytes_open(args, W, X_ZERO, W_ZERO, bytes));
    TRY(kernel_optional_tensor(args, BIAS, &job->bias));
    if (job->bias && (job->bias->dtype != TSSA_INT32 || job->bias->rank != 1 ||
                      job->bias->dims[0] != job->out_channels))
        return ERROR(TSSA_RUNTIME, "the bias must be %" PRId64 " INT32 values", job->out_channels);
    TRY(kernel_tensor(args, Y_ZERO, &zero));
    *dtype = zero->dtype;
    return requantize_check(zero);
}

static tssa_status *convolve(struct kernel_args *args, struct conv_bytes *bytes)
{
    const struct qlinear_state *state = args->state;
    struct requantize r = {0};
    struct tensor *y;
    tssa_dtype dtype;
    bool done = false;
    TRY(open_operands(args, bytes, &dtype));
    TRY(kernel_output(args, 0, dtype, bytes->job.x->rank, bytes->dims, &y));
    if (y && state->quantizer.factors)
        TRY(byte_sums_quantized(args, conv_bytes_library(args), &bytes->job, is_turned(args),
                                &bytes->zeros, &state->quantizer, y->data, &done));
    if (!y || done)
        return NULL;
    tssa_status *status = quantize(args, bytes, y, &r);
    requantize_close(&r);
    return status;
}

static tssa_status *run_QLinearConv(struct kernel_args *args)
{
    struct conv_bytes bytes = {0};
    tssa_status *status = convolve(args, &bytes);
    conv_bytes_close(&bytes);
    return status;
}

static tssa_status *get_ready(struct kernel_args *args)
{
    const struct library_quantizer *quantizer =
        &((const struct qlinear_state *)args->state)->quantizer;
    struct conv_bytes bytes = {0};
    tssa_dtype dtype;
    if (!conv_bytes_is_known(args, W, X_ZERO, W_ZERO))
        return NULL;
    tssa_status *status = open_operands(args, &bytes, &dtype);
    if (!status)
        status = conv_bytes_get_ready(args, &bytes, dtype, quantizer->factors ? quantizer : NULL);
    conv_bytes_close(&bytes);
    return status;
}

const struct kernel cpu_kernel_QLinearConv = {.prepare = prepare,
                                              .run = run_QLinearConv,
                                              .get_ready = get_ready,
                                              .release = conv_bytes_release};
