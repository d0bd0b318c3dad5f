/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LayerNormalization-17, RMSNormalization-23, GroupNormalization-21 and InstanceNormalization-22 of
 * ai.onnx: blocks of n neighbouring elements, each brought to mean 0 and variance 1 (RMS: to mean square
 * 1), then scaled and shifted. Statistics in double, in two passes.
 */
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/lib/lines.h"

struct normalize {
    int64_t axis, groups; /* groups 0: one per channel */
    double epsilon;
    bool per_group; /* GroupNormalization before 21: scale and bias per group */
    tssa_dtype stash;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct normalize *normalize = ARENA_NEW(setup->arena, struct normalize);
    TRY_ALLOC(normalize);
    *state = normalize;
    normalize->axis = ir_attr_int(op, "axis", -1);
    normalize->epsilon = (double)ir_attr_float(op, "epsilon", 1e-5f);
    if (ir_op_is(op, IR_OP_GroupNormalization)) {
        normalize->groups = ir_attr_int(op, "num_groups", 0);
        normalize->per_group = op->version != 0 && op->version < 21;
        if (normalize->groups < 1)
            return ERROR(TSSA_MALFORMED, "num_groups is %" PRId64, normalize->groups);
    }
    int64_t stash = ir_attr_int(op, "stash_type", TSSA_FLOAT);
    if (stash < 0 || stash >= TSSA_DTYPE_COUNT || !dtype_in(T_FLOAT, (tssa_dtype)stash))
        return ERROR(TSSA_MALFORMED, "stash_type is %" PRId64, stash);
    normalize->stash = (tssa_dtype)stash;
    return NULL;
}

/* What scales or shifts the elements of a block. */
struct operand {
    const struct tensor *tensor; /* NULL: none */
    /* Steps over the axes of X, 0 where it is broadcast; it may differ between blocks. */
    int64_t strides[TSSA_MAX_RANK];
};

struct work {
    const struct tensor *in, *out, *mean, *inverse; /* results: NULL where not wanted */
    int64_t n;
    double epsilon;
    bool rms;
    int axis; /* blocks are the axes before it; -1: blocks of channels */
    struct operand scale, bias;
    /* Blocks of channels: block b has `channels` of `size` elements, from channel b * channels % all. */
    int64_t channels, all, size;
    const double *channel_scale, *channel_bias;
};

/* ---- One block ------------------------------------------------------------------------------------ */

static void statistics(const double *x, int64_t n, bool rms, double epsilon, double *mean,
                       double *inverse)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n && !rms; i++)
        sum += x[i];
    *mean = rms ? 0 : sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *inverse = 1 / sqrt(squares / (double)n + epsilon);
}

/* The n elements of `operand` that belong to block b, as doubles. */
static void gather(const struct work *w, const struct operand *operand, int64_t block,
                   double *values)
{
    const int64_t *dims = w->in->dims, *strides = operand->strides;
    int rank = w->in->rank;
    int64_t base = 0, at[TSSA_MAX_RANK] = {0};
    for (int i = w->axis - 1; i >= 0; block /= dims[i], i--)
        base += block % dims[i] * strides[i];
    if (rank == w->axis) {
        load_doubles(operand->tensor, base, 1, 1, values);
        return;
    }
    int64_t row = dims[rank - 1];
    for (int64_t done = 0; done < w->n; done += row) {
        int64_t offset = base;
        for (int i = w->axis; i < rank - 1; i++)
            offset += at[i] * strides[i];
        load_doubles(operand->tensor, offset, strides[rank - 1], row, values + done);
        for (int i = rank - 2; i >= w->axis && ++at[i] == dims[i]; i--)
            at[i] = 0;
    }
}

/* An operand that is the same for all blocks is gathered once. */
static bool varies(const struct work *w, const struct operand *operand)
{
    for (int i = 0; i < w->axis; i++)
        if (operand->strides[i])
            return true;
    return false;
}

static void store_statistics(const struct work *w, int64_t block, double mean, double inverse)
{
    if (w->mean)
        store_doubles(w->mean, block, 1, 1, &mean);
    if (w->inverse)
        store_doubles(w->inverse, block, 1, 1, &inverse);
}

static void run_axes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    double *x = scratch, *scale = x + w->n, *bias = scale + w->n;
    for (int64_t block = begin; block < end; block++) {
        double mean, inverse;
        load_doubles(w->in, block * w->n, 1, w->n, x);
        statistics(x, w->n, w->rms, w->epsilon, &mean, &inverse);
        store_statistics(w, block, mean, inverse);
        if (!w->out)
            continue;
        if (w->scale.tensor && (block == begin || varies(w, &w->scale)))
            gather(w, &w->scale, block, scale);
        if (w->bias.tensor && (block == begin || varies(w, &w->bias)))
            gather(w, &w->bias, block, bias);
        for (int64_t i = 0; i < w->n; i++)
            x[i] = (x[i] - mean) * inverse * scale[i];
        for (int64_t i = 0; w->bias.tensor && i < w->n; i++)
            x[i] += bias[i];
        store_doubles(w->out, block * w->n, 1, w->n, x);
    }
}

static void run_channels(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    for (int64_t block = begin; block < end; block++) {
        double mean, inverse, *x = scratch;
        load_doubles(w->in, block * w->n, 1, w->n, x);
        statistics(x, w->n, false, w->epsilon, &mean, &inverse);
        for (int64_t c = 0; c < w->channels; c++) {
            int64_t channel = (block * w->channels + c) % w->all;
            double scale = inverse * w->channel_scale[channel], bias = w->channel_bias[channel];
            double *y = x + c * w->size;
            for (int64_t i = 0; i < w->size; i++)
                y[i] = (y[i] - mean) * scale + bias;
        }
        store_doubles(w->out, block * w->n, 1, w->n, x);
    }
}

/* ---- LayerNormalization, RMSNormalization ---------------------------------------------------------- */

/* Operand `index` broadcasts to X and to nothing larger. */
static tssa_status *broadcast_operand(const struct kernel_args *args, uint32_t index,
                                      const struct tensor *in, bool optional,
                                      struct operand *operand)
{
    TRY((optional ? kernel_optional_tensor : kernel_tensor)(args, index, &operand->tensor));
    const struct tensor *tensor = operand->tensor;
    if (!tensor)
        return NULL;
    TRY(typed_tensor(args, index, &tensor));
    int missing = in->rank - tensor->rank;
    int64_t strides[TSSA_MAX_RANK];
    tensor_strides(tensor->rank, tensor->dims, strides);
    bool fits = missing >= 0;
    for (int i = 0; fits && i < tensor->rank; i++) {
        fits = tensor->dims[i] == 1 || tensor->dims[i] == in->dims[missing + i];
        operand->strides[missing + i] = tensor->dims[i] == 1 ? 0 : strides[i];
    }
    return fits ? NULL : operand_error(index, tensor, "of a shape that broadcasts to operand 0");
}

static tssa_status *run_trailing(struct kernel_args *args, bool rms)
{
    const struct normalize *normalize = args->state;
    struct work work = {.epsilon = normalize->epsilon, .rms = rms};
    TRY(typed_tensor(args, 0, &work.in));
    const struct tensor *in = work.in;
    TRY(kernel_axis(normalize->axis, in->rank, &work.axis));
    TRY(broadcast_operand(args, 1, in, false, &work.scale));
    if (!rms)
        TRY(broadcast_operand(args, 2, in, true, &work.bias));
    struct tensor *out, *mean = NULL, *inverse = NULL;
    int64_t reduced[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        reduced[i] = i < work.axis ? in->dims[i] : 1;
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    TRY(kernel_output(args, 1, normalize->stash, in->rank, reduced, &mean));
    TRY(kernel_output(args, 2, normalize->stash, in->rank, reduced, &inverse));
    work.out = out;
    work.mean = mean;
    work.inverse = inverse;
    work.n = dims_product(in->dims, work.axis, in->rank);
    size_t bytes;
    if (!size_mul((size_t)work.n, 3 * sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "a block of %" PRId64 " elements is too large", work.n);
    return parts_for(args, dims_product(in->dims, 0, work.axis), work.n * 4, bytes, run_axes,
                     &work);
}

static tssa_status *run_layer(struct kernel_args *args)
{
    return run_trailing(args, false);
}

static tssa_status *run_rms(struct kernel_args *args)
{
    return run_trailing(args, true);
}

/* ---- GroupNormalization, InstanceNormalization ---------------------------------------------------- */

/* Element i of `per_group` operands goes to all channels of group i. */
static void spread(double *values, int64_t channels, int64_t groups)
{
    for (int64_t c = channels - 1; c >= 0; c--)
        values[c] = values[c / (channels / groups)];
}

static tssa_status *channel_operands(struct kernel_args *args, struct work *work, int64_t groups,
                                     double *scale, double *bias)
{
    const struct normalize *normalize = args->state;
    const struct tensor *tensors[2];
    int64_t n = normalize->per_group ? groups : work->all;
    TRY(typed_vector(args, 1, n, false, &tensors[0]));
    TRY(typed_vector(args, 2, n, false, &tensors[1]));
    load_doubles(tensors[0], 0, 1, n, scale);
    load_doubles(tensors[1], 0, 1, n, bias);
    if (normalize->per_group) {
        spread(scale, work->all, groups);
        spread(bias, work->all, groups);
    }
    work->channel_scale = scale;
    work->channel_bias = bias;
    return NULL;
}

static tssa_status *run_groups(struct kernel_args *args)
{
    const struct normalize *normalize = args->state;
    struct work work = {.epsilon = normalize->epsilon, .axis = -1};
    TRY(typed_tensor(args, 0, &work.in));
    const struct tensor *in = work.in;
    if (in->rank < 2)
        return operand_error(0, in, "a tensor of batches and channels");
    int64_t groups = normalize->groups ? normalize->groups : in->dims[1];
    if (groups > 0 && in->dims[1] % groups)
        return ERROR(TSSA_RUNTIME, "%" PRId64 " channels do not make %" PRId64 " groups",
                     in->dims[1], groups);
    struct tensor *out;
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    work.out = out;
    work.all = in->dims[1];
    work.channels = work.all / groups;
    work.size = dims_product(in->dims, 2, in->rank);
    work.n = work.channels * work.size;
    struct buffer *buffer;
    TRY(kernel_scratch(args, (size_t)work.all * 2 * sizeof(double), &buffer));
    double *scale = buffer->data;
    tssa_status *status = channel_operands(args, &work, groups, scale, scale + work.all);
    if (!status)
        status = parts_for(args, in->dims[0] * groups, work.n * 4, (size_t)work.n * sizeof(double),
                           run_channels, &work);
    buffer_release(buffer);
    return status;
}

extern const struct kernel cpu_kernel_layer_normalization, cpu_kernel_rms_normalization;
extern const struct kernel cpu_kernel_group_normalization, cpu_kernel_instance_normalization;
const struct kernel cpu_kernel_layer_normalization = {.prepare = prepare, .run = run_layer};
const struct kernel cpu_kernel_rms_normalization = {.prepare = prepare, .run = run_rms};
const struct kernel cpu_kernel_group_normalization = {.prepare = prepare, .run = run_groups};
const struct kernel cpu_kernel_instance_normalization = {.prepare = prepare, .run = run_groups};
