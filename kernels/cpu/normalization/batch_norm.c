/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization-15 of ai.onnx and its older forms. With training_mode, mean and (population)
 * variance are those of the batch, and the running ones are updated. Before 9, `spatial = 0` gave every
 * element behind the batch a mean and a variance of its own.
 */
#include <math.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct batch_norm {
    double epsilon, momentum;
    bool training, per_element;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct batch_norm *state = ARENA_NEW(setup->arena, struct batch_norm);
    TRY_ALLOC(state);
    state->epsilon = (double)ir_attr_float(op, "epsilon", 1e-5f);
    state->momentum = (double)ir_attr_float(op, "momentum", 0.9f);
    state->training = ir_attr_int(op, "training_mode", 0) != 0;
    state->per_element = ir_attr_int(op, "spatial", 1) == 0;
    *result = state;
    return NULL;
}

struct work {
    const struct batch_norm *state;
    const struct tensor *in, *out;
    int64_t batches, channels, size;        /* X is [batches, channels, size] */
    double *scale, *bias, *mean, *variance; /* per channel */
};

/* Mean and variance of some channels over the batch. */
static void measure(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    double *x = scratch, count = (double)w->batches * (double)w->size;
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, squares = 0;
        for (int64_t b = 0; b < w->batches; b++) {
            load_doubles(w->in, (b * w->channels + c) * w->size, 1, w->size, x);
            for (int64_t i = 0; i < w->size; i++)
                sum += x[i];
        }
        double mean = sum / count;
        for (int64_t b = 0; b < w->batches; b++) {
            load_doubles(w->in, (b * w->channels + c) * w->size, 1, w->size, x);
            for (int64_t i = 0; i < w->size; i++)
                squares += (x[i] - mean) * (x[i] - mean);
        }
        w->mean[c] = mean;
        w->variance[c] = squares / count;
    }
}

/* The same operations as in `apply`, without copies in double. */
VECTOR_PROCEDURE(normalize_floats,
                 (const float *restrict x, float *restrict y, int64_t n, double mean, double factor,
                  double bias),
                 (x, y, n, mean, factor, bias))
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * factor + bias);
}

static void apply(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    double *x = scratch;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t c = plane % w->channels;
        double factor = w->scale[c] / sqrt(w->variance[c] + w->state->epsilon);
        double mean = w->mean[c], bias = w->bias[c];
        if (w->in->dtype == TSSA_FLOAT) {
            normalize_floats((const float *)w->in->data + plane * w->size,
                             (float *)w->out->data + plane * w->size, w->size, mean, factor, bias);
            continue;
        }
        load_doubles(w->in, plane * w->size, 1, w->size, x);
        for (int64_t i = 0; i < w->size; i++)
            x[i] = (x[i] - mean) * factor + bias;
        store_doubles(w->out, plane * w->size, 1, w->size, x);
    }
}

/* running = running * momentum + batch * (1 - momentum) */
static tssa_status *update(struct kernel_args *args, uint32_t index, const struct tensor *running,
                           const double *batch, double momentum, int64_t channels)
{
    struct tensor *out;
    TRY(kernel_output(args, index, running->dtype, running->rank, running->dims, &out));
    for (int64_t c = 0; out && c < channels; c++) {
        double old;
        load_doubles(running, c, 1, 1, &old);
        double value = old * momentum + batch[c] * (1 - momentum);
        store_doubles(out, c, 1, 1, &value);
    }
    return NULL;
}

/* Operand `index` has one element per channel, in whatever shape. */
static tssa_status *channel_operand(struct kernel_args *args, uint32_t index, int64_t channels,
                                    const struct tensor **tensor, double *values)
{
    TRY(typed_tensor(args, index, tensor));
    if (tensor_count(*tensor) != (size_t)channels)
        return operand_error(index, *tensor, "one element per channel");
    load_doubles(*tensor, 0, 1, channels, values);
    return NULL;
}

static tssa_status *normalize(struct kernel_args *args, struct work *w)
{
    const struct tensor *scale, *bias, *mean, *variance;
    TRY(channel_operand(args, 1, w->channels, &scale, w->scale));
    TRY(channel_operand(args, 2, w->channels, &bias, w->bias));
    TRY(channel_operand(args, 3, w->channels, &mean, w->mean));
    TRY(channel_operand(args, 4, w->channels, &variance, w->variance));
    size_t line = (size_t)w->size * sizeof(double);
    if (w->state->training) {
        TRY(parts_for(args, w->channels, w->batches * w->size * 4, line, measure, w));
        TRY(update(args, 1, mean, w->mean, w->state->momentum, w->channels));
        TRY(update(args, 2, variance, w->variance, w->state->momentum, w->channels));
    } else {
        /* Models of before opset 14 may name these outputs without meaning to train. */
        TRY(update(args, 1, mean, w->mean, 1, w->channels));
        TRY(update(args, 2, variance, w->variance, 1, w->channels));
    }
    struct tensor *out;
    TRY(kernel_output(args, 0, w->in->dtype, w->in->rank, w->in->dims, &out));
    w->out = out;
    if (!out)
        return NULL;
    return parts_for(args, w->batches * w->channels, w->size * 2, line, apply, w);
}

static tssa_status *run(struct kernel_args *args)
{
    struct work work = {.state = args->state};
    const struct tensor *in;
    TRY(typed_tensor(args, 0, &in));
    if (in->rank < 1)
        return operand_error(0, in, "a batch");
    int first = work.state->per_element ? in->rank : in->rank < 2 ? in->rank : 2;
    work.in = in;
    work.batches = in->dims[0];
    work.channels = dims_product(in->dims, 1, first); /* 1 when there is no such axis */
    work.size = dims_product(in->dims, first, in->rank);
    size_t bytes;
    if (!size_mul((size_t)work.channels, 4 * sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "too many channels");
    struct buffer *buffer;
    TRY(kernel_scratch(args, bytes, &buffer));
    work.scale = buffer->data;
    work.bias = work.scale + work.channels;
    work.mean = work.bias + work.channels;
    work.variance = work.mean + work.channels;
    tssa_status *status = normalize(args, &work);
    buffer_release(buffer);
    return status;
}

extern const struct kernel cpu_kernel_batch_normalization;
const struct kernel cpu_kernel_batch_normalization = {.prepare = prepare, .run = run};
