/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization-15 of ai.onnx and its older forms. With training_mode, mean and (population)
 * variance are those of the batch, and the running ones are updated. Before 9, `spatial = 0` gave
 * every element behind the batch a mean and a variance of its own. DOUBLE is computed in double,
 * narrower types in float32, operation by operation as ir/composition.def has it.
 */
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/normalize.h"

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
    const struct normalize_loops *loops;  /* of the type that is computed in */
    int first;                            /* axis behind the channels' */
    int64_t batches, channels, size;      /* X is [batches, channels, size] */
    char *scale, *bias, *mean, *variance; /* per channel, of that type */
};

/* Mean and variance of the channels over the batch. */
static void measure(const struct kernel_args *args, const struct work *w)
{
    bool marked[TSSA_MAX_RANK];
    struct axis_nest kept, reduced;
    struct tensor mean = {.dtype = w->loops->dtype, .data = w->mean};
    struct tensor variance = {.dtype = w->loops->dtype, .data = w->variance};
    for (int i = 0; i < w->in->rank; i++)
        marked[i] = i == 0 || i >= w->first;
    axis_nest_init(&kept, w->in, marked, false);
    axis_nest_init(&reduced, w->in, marked, true);
    reduce_tensor(args->env->team, REDUCTION_Mean, w->in, &kept, &reduced, NULL, &mean);
    reduce_tensor(args->env->team, REDUCTION_Variance, w->in, &kept, &reduced, w->mean, &variance);
}

static void apply(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    bool converts = w->in->dtype != w->loops->dtype;
    for (int64_t plane = begin; plane < end; plane++) {
        size_t c = (size_t)(plane % w->channels) * w->loops->width;
        const void *x = element_at(w->in, plane * w->size);
        void *y = element_at(w->out, plane * w->size);
        if (converts) {
            load_elements(w->in, plane * w->size, 1, w->size, w->loops->dtype, scratch);
            x = y = scratch;
        }
        w->loops->channel(x, y, w->size, w->mean + c, w->variance + c, w->scale + c, w->bias + c);
        if (converts)
            store_elements(w->out, plane * w->size, 1, w->size, w->loops->dtype, scratch);
    }
}

/* running = running * momentum + batch * (1 - momentum) */
static tssa_status *update(struct kernel_args *args, const struct work *w, uint32_t index,
                           const struct tensor *running, const char *batch, double momentum)
{
    struct tensor *out;
    const tssa_dtype dtype = w->loops->dtype;
    double rest = rounded_to(dtype, 1 - momentum);
    TRY(kernel_output(args, index, running->dtype, running->rank, running->dims, &out));
    for (int64_t c = 0; out && c < w->channels; c++) {
        double old = rounded_to(dtype, dtype_load_double(running->dtype, element_at(running, c)));
        double value = dtype_load_double(dtype, batch + (size_t)c * w->loops->width);
        value = rounded_to(dtype, old * momentum) + rounded_to(dtype, value * rest);
        dtype_store_double(out->dtype, element_at(out, c), rounded_to(dtype, value));
    }
    return NULL;
}

/* Operand `index` has one element per channel, in whatever shape. */
static tssa_status *channel_operand(struct kernel_args *args, const struct work *w, uint32_t index,
                                    const struct tensor **tensor, char *values)
{
    TRY(typed_tensor(args, index, tensor));
    if (tensor_count(*tensor) != (size_t)w->channels)
        return operand_error(index, *tensor, "one element per channel");
    load_elements(*tensor, 0, 1, w->channels, w->loops->dtype, values);
    return NULL;
}

static tssa_status *normalize(struct kernel_args *args, struct work *w)
{
    const struct tensor *scale, *bias, *mean, *variance;
    TRY(channel_operand(args, w, 1, &scale, w->scale));
    TRY(channel_operand(args, w, 2, &bias, w->bias));
    TRY(channel_operand(args, w, 3, &mean, w->mean));
    TRY(channel_operand(args, w, 4, &variance, w->variance));
    if (w->state->training)
        measure(args, w);
    /* Models of before opset 14 may name these outputs without meaning to train. */
    double momentum = w->state->training ? w->state->momentum : 1;
    TRY(update(args, w, 1, mean, w->mean, momentum));
    TRY(update(args, w, 2, variance, w->variance, momentum));
    struct tensor *out;
    TRY(kernel_output(args, 0, w->in->dtype, w->in->rank, w->in->dims, &out));
    w->out = out;
    if (!out)
        return NULL;
    w->loops->invert(w->variance, w->channels, w->state->epsilon);
    size_t line = w->in->dtype == w->loops->dtype ? 0 : (size_t)w->size * w->loops->width;
    return parts_for(args, w->batches * w->channels, w->size * 2, line, apply, w);
}

static tssa_status *run(struct kernel_args *args)
{
    struct work work = {.state = args->state};
    const struct tensor *in;
    TRY(typed_tensor(args, 0, &in));
    if (in->rank < 1)
        return operand_error(0, in, "a batch");
    work.first = work.state->per_element ? in->rank : in->rank < 2 ? in->rank : 2;
    work.in = in;
    work.loops = in->dtype == TSSA_DOUBLE ? &normalize_loops_f64 : &normalize_loops_f32;
    work.batches = in->dims[0];
    work.channels = dims_product(in->dims, 1, work.first); /* 1 when there is no such axis */
    work.size = dims_product(in->dims, work.first, in->rank);
    size_t bytes, vector;
    if (!size_mul((size_t)work.channels, 4 * work.loops->width, &bytes))
        return ERROR(TSSA_LIMIT, "too many channels");
    struct buffer *buffer;
    TRY(kernel_scratch(args, bytes, &buffer));
    vector = bytes / 4;
    work.scale = buffer->data;
    work.bias = work.scale + vector;
    work.mean = work.bias + vector;
    work.variance = work.mean + vector;
    tssa_status *status = normalize(args, &work);
    buffer_release(buffer);
    return status;
}

extern const struct kernel cpu_kernel_batch_normalization;
const struct kernel cpu_kernel_batch_normalization = {.prepare = prepare, .run = run};
