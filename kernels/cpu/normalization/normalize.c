/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LayerNormalization-17, RMSNormalization-23, GroupNormalization-21 and InstanceNormalization-22 of
 * ai.onnx: blocks of n neighbouring elements, each brought to mean 0 and variance 1 (RMS: to mean
 * square 1), then scaled and shifted, operation by operation as ir/composition.def has it.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/normalize.h"

#define GROUP 16        /* blocks whose statistics are found together, at most */
#define GROUP_SIZE 4096 /* elements of such */

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
    normalize->axis = ir_op_axis(op);
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
    const struct normalize_loops *loops;
    int64_t n;
    double epsilon;
    bool rms;
    int axis; /* blocks are the axes before it; -1: blocks of channels */
    struct operand scale, bias;
    /* Blocks of channels: block b has `channels` of `size` elements, from channel b * channels %
     * all. */
    int64_t channels, all, size;
    const char *channel_scale, *channel_bias;
};

/* ---- Elements of the type that is computed in ------------------------------------------------ */

static void load(const struct work *w, const struct tensor *tensor, int64_t offset, int64_t step,
                 int64_t n, void *values)
{
    convert_elements(n, tensor->dtype, element_at(tensor, offset), step, w->loops->dtype, values, 1,
                     &convert_default);
}

static void store(const struct work *w, const struct tensor *tensor, int64_t offset, int64_t n,
                  const void *values)
{
    convert_elements(n, w->loops->dtype, values, 1, tensor->dtype, element_at(tensor, offset), 1,
                     &convert_default);
}

/* The tensor's own elements where they are of that type, else values in scratch memory. */
static const void *load_blocks(const struct work *w, int64_t first, int64_t blocks, void *scratch)
{
    if (w->in->dtype == w->loops->dtype)
        return element_at(w->in, first * w->n);
    load(w, w->in, first * w->n, 1, blocks * w->n, scratch);
    return scratch;
}

static void *place_of_blocks(const struct work *w, int64_t first, void *scratch)
{
    return w->out->dtype == w->loops->dtype ? element_at(w->out, first * w->n) : scratch;
}

static void store_blocks(const struct work *w, int64_t first, int64_t blocks, const void *values)
{
    if (w->out->dtype != w->loops->dtype)
        store(w, w->out, first * w->n, blocks * w->n, values);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int64_t group_of(int64_t n)
{
    int64_t group = GROUP_SIZE / (n > 0 ? n : 1);
    return group < 1 ? 1 : group < GROUP ? group : GROUP;
}

/* Of each of the blocks. */
struct statistics {
    _Alignas(64) char mean[GROUP * sizeof(double)], inverse[GROUP * sizeof(double)];
};

static void measure(const struct work *w, const void *x, int64_t blocks, struct statistics *s)
{
    tssa_dtype dtype = w->loops->dtype;
    if (w->rms) {
        memset(s->mean, 0, sizeof s->mean);
        reduce_lines(REDUCTION_MeanSquare, dtype, s->inverse, x, w->n, blocks, w->n, NULL);
    } else {
        reduce_lines(REDUCTION_Mean, dtype, s->mean, x, w->n, blocks, w->n, NULL);
        reduce_lines(REDUCTION_Variance, dtype, s->inverse, x, w->n, blocks, w->n, s->mean);
    }
    w->loops->invert(s->inverse, blocks, w->epsilon);
}

/* The n elements of `operand` that belong to block b. */
static void gather(const struct work *w, const struct operand *operand, int64_t block, char *values)
{
    const int64_t *dims = w->in->dims, *strides = operand->strides;
    int rank = w->in->rank;
    int64_t base = 0, at[TSSA_MAX_RANK] = {0};
    for (int i = w->axis - 1; i >= 0; block /= dims[i], i--)
        base += block % dims[i] * strides[i];
    int64_t row = dims[rank - 1];
    for (int64_t done = 0; done < w->n; done += row) {
        int64_t offset = base;
        for (int i = w->axis; i < rank - 1; i++)
            offset += at[i] * strides[i];
        load(w, operand->tensor, offset, strides[rank - 1], row,
             values + (size_t)done * w->loops->width);
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

static void run_axes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    bool each = varies(w, &w->scale) || (w->bias.tensor && varies(w, &w->bias));
    int64_t most = each ? 1 : group_of(w->n);
    char *scale = scratch, *bias = scale + (size_t)w->n * w->loops->width;
    char *blocks = bias + (size_t)w->n * w->loops->width;
    for (int64_t first = begin, count; first < end; first += count) {
        struct statistics s;
        count = end - first < most ? end - first : most;
        const void *x = load_blocks(w, first, count, blocks);
        measure(w, x, count, &s);
        if (w->mean)
            store(w, w->mean, first, count, s.mean);
        if (w->inverse)
            store(w, w->inverse, first, count, s.inverse);
        if (!w->out)
            continue;
        if (each || first == begin) {
            gather(w, &w->scale, first, scale);
            if (w->bias.tensor)
                gather(w, &w->bias, first, bias);
        }
        void *y = place_of_blocks(w, first, blocks);
        w->loops->elements(&(struct normalize_lines){x, y, count, w->n, s.mean, s.inverse}, scale,
                           w->bias.tensor ? bias : NULL);
        store_blocks(w, first, count, y);
    }
}

static void run_channels(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    size_t width = w->loops->width;
    for (int64_t first = begin, most = group_of(w->n), count; first < end; first += count) {
        struct statistics s;
        count = end - first < most ? end - first : most;
        const char *x = load_blocks(w, first, count, scratch);
        char *y = place_of_blocks(w, first, scratch);
        measure(w, x, count, &s);
        for (int64_t i = 0; i < count * w->channels; i++) {
            size_t at = (size_t)(i * w->size) * width, block = (size_t)(i / w->channels) * width;
            size_t c = (size_t)((first * w->channels + i) % w->all) * width;
            w->loops->channel(x + at, y + at, w->size, s.mean + block, s.inverse + block,
                              w->channel_scale + c, w->channel_bias + c);
        }
        store_blocks(w, first, count, y);
    }
}

static const struct normalize_loops *loops_of(tssa_dtype dtype)
{
    return dtype == TSSA_DOUBLE ? &normalize_loops_f64 : &normalize_loops_f32;
}

/* Scratch memory of a part for so many lines of n elements, and a group of blocks. */
static tssa_status *scratch_of(const struct work *w, int64_t lines, size_t *bytes)
{
    if (!size_mul((size_t)w->n, (size_t)(lines + group_of(w->n)) * w->loops->width, bytes))
        return ERROR(TSSA_LIMIT, "a block of %" PRId64 " elements is too large", w->n);
    return NULL;
}

/* ---- LayerNormalization, RMSNormalization ---------------------------------------------------- */

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
    work.loops = loops_of(in->dtype);
    size_t bytes;
    TRY(scratch_of(&work, 2, &bytes));
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

/* ---- GroupNormalization, InstanceNormalization ----------------------------------------------- */

/* One element per channel; `per_group` operands have one for all channels of a group. */
static tssa_status *channel_operand(struct kernel_args *args, const struct work *w, uint32_t index,
                                    int64_t groups, char *values)
{
    const struct normalize *normalize = args->state;
    const struct tensor *tensor;
    size_t width = w->loops->width;
    int64_t n = normalize->per_group ? groups : w->all;
    TRY(typed_vector(args, index, n, false, &tensor));
    load(w, tensor, 0, 1, n, values);
    for (int64_t c = w->all - 1; normalize->per_group && c >= 0; c--)
        memmove(values + (size_t)c * width, values + (size_t)(c / (w->all / groups)) * width,
                width);
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
    work.loops = loops_of(in->dtype);
    size_t bytes, vector = (size_t)work.all * work.loops->width;
    TRY(scratch_of(&work, 0, &bytes));
    struct buffer *buffer;
    TRY(kernel_scratch(args, 2 * vector, &buffer));
    char *scale = buffer->data, *bias = scale + vector;
    work.channel_scale = scale;
    work.channel_bias = bias;
    tssa_status *status = channel_operand(args, &work, 1, groups, scale);
    if (!status)
        status = channel_operand(args, &work, 2, groups, bias);
    if (!status)
        status = parts_for(args, in->dims[0] * groups, work.n * 4, bytes, run_channels, &work);
    buffer_release(buffer);
    return status;
}

extern const struct kernel cpu_kernel_layer_normalization, cpu_kernel_rms_normalization;
extern const struct kernel cpu_kernel_group_normalization, cpu_kernel_instance_normalization;
const struct kernel cpu_kernel_layer_normalization = {.prepare = prepare, .run = run_layer};
const struct kernel cpu_kernel_rms_normalization = {.prepare = prepare, .run = run_rms};
const struct kernel cpu_kernel_group_normalization = {.prepare = prepare, .run = run_groups};
const struct kernel cpu_kernel_instance_normalization = {.prepare = prepare, .run = run_groups};
