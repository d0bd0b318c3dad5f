/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuantizeLinear-25, DequantizeLinear-25 and DynamicQuantizeLinear-11 (ai.onnx): per tensor, per
 * axis and blocked, to and from every quantized type. Elements are handled in chunks of float.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/integers.h"
#include "device/kernel.h"
#include "kernels/cpu/lib/convert.h"

extern const struct kernel cpu_kernel_QuantizeLinear, cpu_kernel_DequantizeLinear,
    cpu_kernel_DynamicQuantizeLinear;

#define GRAIN 8192
#define CHUNK 256
#define LANES 32

struct quantize_state {
    int64_t axis, block_size;
    tssa_dtype to, precision; /* UNDEFINED: the operands tell */
    struct convert_options options;
};

static tssa_status *dtype_attr(const struct ir_op *op, const char *name, dtype_mask legal,
                               tssa_dtype *dtype)
{
    int64_t number = ir_attr_int(op, name, TSSA_UNDEFINED);
    if (number < 0 || number >= TSSA_DTYPE_COUNT ||
        (number != TSSA_UNDEFINED && !dtype_in(legal, (tssa_dtype)number)))
        return ERROR(TSSA_MALFORMED,
                     "attribute \"%s\" is %" PRId64 ", which is no type it may name", name, number);
    *dtype = (tssa_dtype)number;
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct quantize_state *state = ARENA_NEW(setup->arena, struct quantize_state);
    TRY_ALLOC(state);
    bool quantize = ir_op_is(op, IR_OP_QuantizeLinear);
    state->axis = ir_op_axis(op);
    state->block_size = ir_attr_int(op, "block_size", 0);
    if (state->block_size < 0)
        return ERROR(TSSA_MALFORMED, "attribute \"block_size\" is negative");
    TRY(dtype_attr(op, "output_dtype", quantize ? T_QUANTIZED : T_FLOAT, &state->to));
    TRY(dtype_attr(op, "precision", T_FLOAT, &state->precision));
    state->options = convert_default;
    state->options.saturate = ir_attr_int(op, "saturate", 1) != 0;
    *result = state;
    return NULL;
}

/* ---- Which scale belongs to which element ---------------------------------------------------- */

/*
 * x is [outer, axis, inner]; the scales are [1], [axis] or, one per block, [outer, blocks, inner].
 * Scales and zero points are here as floats; zeros is NULL where there are none.
 */
struct granularity {
    int64_t axis, inner;
    int64_t block, blocks;         /* blocked: elements per block and blocks along the axis */
    int64_t axis_step, inner_step; /* per tensor: 0, 0; per axis: 1, 0; blocked: inner, 1 */
    const float *scales, *zeros;
    struct buffer *memory; /* of both */
};

static tssa_status *bad_scale(const struct tensor *x, const struct tensor *scale)
{
    char a[200], b[200];
    tensor_describe(x, a, sizeof a);
    tensor_describe(scale, b, sizeof b);
    return ERROR(TSSA_RUNTIME,
                 "scales %s do not fit %s: neither one, nor one per element of the axis, nor "
                 "one per block",
                 b, a);
}

static tssa_status *lay_out(const struct quantize_state *state, const struct tensor *x,
                            const struct tensor *scale, struct granularity *g)
{
    *g = (struct granularity){.axis = 1, .inner = 1, .block = 1, .blocks = 1};
    bool blocked = state->block_size > 0 && scale->rank == x->rank && x->rank > 0;
    if (!blocked && tensor_count(scale) == 1 && scale->rank <= 1) {
        g->inner = (int64_t)tensor_count(x);
        return NULL;
    }
    int axis;
    TRY(kernel_axis(state->axis, x->rank, &axis));
    g->axis = x->dims[axis];
    for (int i = axis + 1; i < x->rank; i++)
        g->inner *= x->dims[i];
    g->axis_step = 1;
    if (!blocked)
        return scale->rank == 1 && scale->dims[0] == g->axis ? NULL : bad_scale(x, scale);
    g->block = state->block_size;
    g->blocks = scale->dims[axis];
    g->axis_step = g->inner;
    g->inner_step = 1;
    for (int i = 0; i < x->rank; i++) {
        int64_t wanted = i == axis ? g->axis / g->block + (g->axis % g->block != 0) : x->dims[i];
        if (scale->dims[i] != wanted)
            return bad_scale(x, scale);
    }
    return NULL;
}

/* Scales and zero points as floats in scratch memory. */
static tssa_status *load_scales(struct kernel_args *args, const struct tensor *x,
                                const struct tensor *scale, const struct tensor *zero,
                                struct granularity *g)
{
    TRY(lay_out(args->state, x, scale, g));
    if (zero && !tensor_same_shape(zero, scale) && tensor_count(zero) != tensor_count(scale))
        return ERROR(TSSA_RUNTIME, "scales and zero points differ in shape");
    size_t count = tensor_count(scale), bytes;
    if (!size_mul(count, 2 * sizeof(float), &bytes))
        return ERROR(TSSA_LIMIT, "too many scales");
    TRY(kernel_scratch(args, bytes, &g->memory));
    float *values = g->memory->data;
    convert_elements((int64_t)count, scale->dtype, scale->data, 1, TSSA_FLOAT, values, 1,
                     &convert_default);
    g->scales = values;
    if (zero) {
        convert_elements((int64_t)count, zero->dtype, zero->data, 1, TSSA_FLOAT, values + count, 1,
                         &convert_default);
        g->zeros = values + count;
    }
    return NULL;
}

/* A walk over the elements in order. */
struct scale_walk {
    const struct granularity *g;
    int64_t outer, axis, inner;
};

static struct scale_walk walk_from(const struct granularity *g, int64_t element)
{
    int64_t row = element / g->inner;
    return (struct scale_walk){g, row / g->axis, row % g->axis, element % g->inner};
}

/* The next n elements are within what the walk is at: the innermost axes, or, where these are
 * single elements with a scale each, the axis. */
static void walk_on(struct scale_walk *walk, int64_t n)
{
    const struct granularity *g = walk->g;
    if (g->inner == 1)
        walk->axis += n;
    else if ((walk->inner += n) == g->inner) {
        walk->inner = 0;
        walk->axis++;
    }
    if (walk->axis == g->axis) {
        walk->axis = 0;
        walk->outer++;
    }
}

/* How many of the next n elements lie in a row, where the first of their scales is, and how far the
 * next ones are apart. */
static int64_t walk_row(const struct scale_walk *walk, int64_t n, int64_t *index, int64_t *step)
{
    const struct granularity *g = walk->g;
    const int64_t block = walk->axis / g->block;
    *index = walk->inner * g->inner_step + block * g->axis_step;
    if (g->inner_step)
        *index += walk->outer * g->blocks * g->inner;
    *step = g->inner_step;
    if (g->inner > 1)
        return least(n, g->inner - walk->inner);
    if (g->block == 1) {
        *step = g->axis_step;
        return least(n, g->axis - walk->axis);
    }
    *step = 0;
    return least(n, least(g->axis, (block + 1) * g->block) - walk->axis);
}

static void spread(const float *values, int64_t index, int64_t step, int64_t n, float *to)
{
    const float *from = values + index, first = *from;
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            to[i] = first;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * step];
}

/* Of each element of a chunk. */
struct chunk_scales {
    bool same; /* of all elements of all chunks */
    float scales[CHUNK], zeros[CHUNK];
};

static void open_chunks(const struct granularity *g, struct chunk_scales *chunk)
{
    chunk->same = g->axis_step == 0;
    for (int64_t i = 0; i < CHUNK; i++) {
        chunk->scales[i] = chunk->same ? g->scales[0] : 0;
        chunk->zeros[i] = chunk->same && g->zeros ? g->zeros[0] : 0;
    }
}

/* The scales and zero points of the next n elements. */
static void walk_chunk(struct scale_walk *walk, int64_t n, struct chunk_scales *chunk)
{
    const struct granularity *g = walk->g;
    for (int64_t i = 0, row; i < n && !chunk->same; i += row) {
        int64_t index, step;
        row = walk_row(walk, n - i, &index, &step);
        spread(g->scales, index, step, row, chunk->scales + i);
        if (g->zeros)
            spread(g->zeros, index, step, row, chunk->zeros + i);
        walk_on(walk, row);
    }
}

/* ---- QuantizeLinear -------------------------------------------------------------------------- */

struct quantize_work {
    const struct tensor *x, *y;
    const struct granularity *g;
    tssa_dtype precision; /* the quotient is rounded to it */
    bool rounds;          /* which is narrower than float32 */
    const struct convert_options *options;
    float lowest, highest; /* of an integer y */
};

static bool is_half(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16;
}

static void round_to(tssa_dtype precision, int64_t n, float *values)
{
    uint16_t narrow[CHUNK];
    if (!is_half(precision))
        return;
    convert_elements(n, TSSA_FLOAT, values, 1, precision, narrow, 1, &convert_default);
    convert_elements(n, precision, narrow, 1, TSSA_FLOAT, values, 1, &convert_default);
}

/* round(value) + zero, held in the type's range; NaN becomes the lowest. */
static inline float saturate(float value, float zero, float lowest, float highest)
{
    float q = rintf(value) + zero;
    q = q > lowest ? q : lowest;
    return q < highest ? q : highest;
}

/* Of float32 to bytes: the low bits of a signed one are the same. */
VECTOR_PROCEDURE(quantize_bytes,
                 (const struct quantize_work *work, const struct chunk_scales *chunk, int64_t n,
                  const float *x, uint8_t *y),
                 (work, chunk, n, x, y))
{
    const float lowest = work->lowest, highest = work->highest;
    for (int64_t i = 0; i < n; i++)
        y[i] =
            (uint8_t)(int32_t)saturate(x[i] / chunk->scales[i], chunk->zeros[i], lowest, highest);
}

/* Of any types. */
static void quantize_chunk(const struct quantize_work *work, const struct chunk_scales *chunk,
                           int64_t n, const void *x, void *y)
{
    float values[CHUNK];
    const bool integer = dtype_is_integer(work->y->dtype);
    convert_elements(n, work->x->dtype, x, 1, TSSA_FLOAT, values, 1, &convert_default);
    round_to(work->precision, n, values);
    for (int64_t i = 0; i < n; i++)
        values[i] /= chunk->scales[i];
    round_to(work->precision, n, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = integer ? saturate(values[i], chunk->zeros[i], work->lowest, work->highest)
                            : values[i] + chunk->zeros[i];
    convert_elements(n, TSSA_FLOAT, values, 1, work->y->dtype, y, 1, work->options);
}

static void quantize_range(void *context, int64_t begin, int64_t end)
{
    const struct quantize_work *work = context;
    const struct tensor *x = work->x, *y = work->y;
    size_t x_size = dtype_info(x->dtype)->size, y_size = dtype_info(y->dtype)->size;
    const bool bytes = x->dtype == TSSA_FLOAT && dtype_in(T_I8U8, y->dtype) && !work->rounds;
    struct scale_walk walk = walk_from(work->g, begin);
    struct chunk_scales chunk;
    open_chunks(work->g, &chunk);
    for (int64_t n; begin < end; begin += n) {
        const void *from = (const char *)x->data + (size_t)begin * x_size;
        void *to = (char *)y->data + (size_t)begin * y_size;
        n = least(end - begin, CHUNK);
        walk_chunk(&walk, n, &chunk);
        if (bytes)
            quantize_bytes(work, &chunk, n, from, to);
        else
            quantize_chunk(work, &chunk, n, from, to);
    }
}

static void integer_range(tssa_dtype dtype, float *lowest, float *highest)
{
    unsigned bits = dtype_info(dtype)->file_bits;
    bool negative = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED;
    *lowest = negative ? -(float)(1u << (bits - 1)) : 0;
    *highest = (float)((1u << (bits - negative)) - 1);
}

static tssa_status *run_quantize(struct kernel_args *args)
{
    const struct quantize_state *state = args->state;
    const struct tensor *x, *scale, *zero;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &scale));
    TRY(kernel_optional_tensor(args, 2, &zero));
    tssa_dtype to = state->to != TSSA_UNDEFINED ? state->to : zero ? zero->dtype : TSSA_UINT8;
    dtype_mask scales = T_FLOAT | DTYPE_BIT(TSSA_INT32) | DTYPE_BIT(TSSA_FLOAT8E8M0);
    if (!dtype_in(args->op->info->types, x->dtype) || !dtype_in(scales, scale->dtype) ||
        !dtype_in(T_QUANTIZED, to) || (zero && zero->dtype != to))
        return ERROR(TSSA_RUNTIME, "%s cannot be quantized to %s with scales %s and zero points %s",
                     dtype_info(x->dtype)->ir_name, dtype_info(to)->ir_name,
                     dtype_info(scale->dtype)->ir_name,
                     zero ? dtype_info(zero->dtype)->ir_name : "(none)");
    struct tensor *y;
    TRY(kernel_output(args, 0, to, x->rank, x->dims, &y));
    if (!y)
        return NULL;
    struct granularity g;
    TRY(load_scales(args, x, scale, zero, &g));
    struct quantize_work work = {.x = x, .y = y, .g = &g, .options = &state->options};
    work.precision = state->precision != TSSA_UNDEFINED ? state->precision : scale->dtype;
    work.rounds = is_half(work.precision);
    if (dtype_is_integer(to))
        integer_range(to, &work.lowest, &work.highest);
    team_for(args->env->team, (int64_t)tensor_count(x), GRAIN, quantize_range, &work);
    buffer_release(g.memory);
    return NULL;
}

const struct kernel cpu_kernel_QuantizeLinear = {.prepare = prepare, .run = run_quantize};

/* ---- DequantizeLinear ------------------------------------------------------------------------ */

#define DEQUANTIZE(name, type)                                                                     \
    VECTOR_PROCEDURE(dequantize_##name,                                                            \
                     (const struct chunk_scales *chunk, int64_t n, const type *x, float *y),       \
                     (chunk, n, x, y))                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = ((float)x[i] - chunk->zeros[i]) * chunk->scales[i];                             \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(i8, int8_t)
DEQUANTIZE(i32, int32_t)

/* Of any types. */
static void dequantize_chunk(const struct quantize_work *work, const struct chunk_scales *chunk,
                             int64_t n, const void *x, void *y)
{
    float values[CHUNK];
    convert_elements(n, work->x->dtype, x, 1, TSSA_FLOAT, values, 1, &convert_default);
    for (int64_t i = 0; i < n; i++)
        values[i] = (values[i] - chunk->zeros[i]) * chunk->scales[i];
    convert_elements(n, TSSA_FLOAT, values, 1, work->y->dtype, y, 1, &convert_default);
}

static void dequantize_some(const struct quantize_work *work, const struct chunk_scales *chunk,
                            int64_t n, const void *x, void *y)
{
    const tssa_dtype from = work->y->dtype == TSSA_FLOAT ? work->x->dtype : TSSA_UNDEFINED;
    if (from == TSSA_UINT8)
        dequantize_u8(chunk, n, x, y);
    else if (from == TSSA_INT8)
        dequantize_i8(chunk, n, x, y);
    else if (from == TSSA_INT32)
        dequantize_i32(chunk, n, x, y);
    else
        dequantize_chunk(work, chunk, n, x, y);
}

static void dequantize_range(void *context, int64_t begin, int64_t end)
{
    const struct quantize_work *work = context;
    const struct tensor *x = work->x, *y = work->y;
    size_t x_size = dtype_info(x->dtype)->size, y_size = dtype_info(y->dtype)->size;
    struct scale_walk walk = walk_from(work->g, begin);
    struct chunk_scales chunk;
    open_chunks(work->g, &chunk);
    for (int64_t n; begin < end; begin += n) {
        n = least(end - begin, CHUNK);
        walk_chunk(&walk, n, &chunk);
        dequantize_some(work, &chunk, n, (const char *)x->data + (size_t)begin * x_size,
                        (char *)y->data + (size_t)begin * y_size);
    }
}

static tssa_status *run_dequantize(struct kernel_args *args)
{
    const struct quantize_state *state = args->state;
    const struct tensor *x, *scale, *zero;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &scale));
    TRY(kernel_optional_tensor(args, 2, &zero));
    tssa_dtype to = state->to != TSSA_UNDEFINED ? state->to : scale->dtype;
    if (!dtype_in(args->op->info->types, x->dtype) || !dtype_in(T_FLOAT, to) ||
        !dtype_in(T_FLOAT | DTYPE_BIT(TSSA_FLOAT8E8M0), scale->dtype) ||
        (zero && zero->dtype != x->dtype))
        return ERROR(
            TSSA_RUNTIME, "%s cannot be dequantized to %s with scales %s and zero points %s",
            dtype_info(x->dtype)->ir_name, dtype_info(to)->ir_name,
            dtype_info(scale->dtype)->ir_name, zero ? dtype_info(zero->dtype)->ir_name : "(none)");
    struct tensor *y;
    TRY(kernel_output(args, 0, to, x->rank, x->dims, &y));
    if (!y)
        return NULL;
    struct granularity g;
    TRY(load_scales(args, x, scale, zero, &g));
    struct quantize_work work = {.x = x, .y = y, .g = &g};
    team_for(args->env->team, (int64_t)tensor_count(x), GRAIN, dequantize_range, &work);
    buffer_release(g.memory);
    return NULL;
}

const struct kernel cpu_kernel_DequantizeLinear = {.prepare = prepare, .run = run_dequantize};

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

VECTOR_PROCEDURE(find_range, (const float *values, int64_t n, float *lowest, float *highest),
                 (values, n, lowest, highest))
{
    float low[LANES] = {0}, high[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int64_t lane = 0; lane < LANES; lane++) {
            const float value = values[i + lane];
            low[lane] = value < low[lane] ? value : low[lane];
            high[lane] = value > high[lane] ? value : high[lane];
        }
    for (; i < n; i++) {
        low[0] = values[i] < low[0] ? values[i] : low[0];
        high[0] = values[i] > high[0] ? values[i] : high[0];
    }
    for (int64_t lane = 0; lane < LANES; lane++) {
        *lowest = low[lane] < *lowest ? low[lane] : *lowest;
        *highest = high[lane] > *highest ? high[lane] : *highest;
    }
}

VECTOR_PROCEDURE(quantize_all,
                 (const float *values, int64_t n, float scale, float zero, uint8_t *quantized),
                 (values, n, scale, zero, quantized))
{
    for (int64_t i = 0; i < n; i++)
        quantized[i] = (uint8_t)(int32_t)saturate(values[i] / scale, zero, 0, 255);
}

/* Elements whose range one thread finds. */
#define BLOCK 16384

/* Always with 0 in it, so that 0 is exact. A NaN leaves it alone. */
struct range {
    float lowest, highest;
};

struct dynamic_work {
    const float *values;
    int64_t count;
    struct range *ranges; /* of blocks */
    float scale, zero;
    uint8_t *quantized;
};

static void find_ranges(void *context, int64_t begin, int64_t end)
{
    const struct dynamic_work *work = context;
    for (int64_t i = begin; i < end; i++) {
        struct range range = {0};
        find_range(work->values + i * BLOCK, least(work->count - i * BLOCK, BLOCK), &range.lowest,
                   &range.highest);
        work->ranges[i] = range;
    }
}

static tssa_status *find_whole_range(struct kernel_args *args, struct dynamic_work *work,
                                     struct range *whole)
{
    const int64_t blocks = divide_up(work->count, BLOCK);
    struct buffer *memory = NULL;
    TRY(kernel_scratch(args, (size_t)blocks * sizeof *work->ranges, &memory));
    work->ranges = memory->data;
    team_for(args->env->team, blocks, 1, find_ranges, work);
    *whole = (struct range){0};
    for (int64_t i = 0; i < blocks; i++) {
        const struct range *r = &work->ranges[i];
        whole->lowest = r->lowest < whole->lowest ? r->lowest : whole->lowest;
        whole->highest = r->highest > whole->highest ? r->highest : whole->highest;
    }
    buffer_release(memory);
    return NULL;
}

static void quantize_part(void *context, int64_t begin, int64_t end)
{
    const struct dynamic_work *work = context;
    quantize_all(work->values + begin, end - begin, work->scale, work->zero,
                 work->quantized + begin);
}

static void choose_scale(struct dynamic_work *work, const struct range *range)
{
    const float wide = range->lowest == range->highest ? 1 : range->highest - range->lowest;
    work->scale = wide / 255;
    work->zero = rintf(saturate(0, -range->lowest / work->scale, 0, 255));
}

static tssa_status *run_dynamic(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y, *y_scale, *y_zero;
    struct range range;
    TRY(kernel_tensor(args, 0, &x));
    if (x->dtype != TSSA_FLOAT)
        return ERROR(TSSA_RUNTIME, "operand 0 must be f32, not %s", dtype_info(x->dtype)->ir_name);
    struct dynamic_work work = {.values = x->data, .count = (int64_t)tensor_count(x)};
    TRY(find_whole_range(args, &work, &range));
    choose_scale(&work, &range);
    TRY(kernel_output(args, 0, TSSA_UINT8, x->rank, x->dims, &y));
    TRY(kernel_output(args, 1, TSSA_FLOAT, 0, NULL, &y_scale));
    TRY(kernel_output(args, 2, TSSA_UINT8, 0, NULL, &y_zero));
    if (y_scale)
        *(float *)y_scale->data = work.scale;
    if (y_zero)
        *(uint8_t *)y_zero->data = (uint8_t)work.zero;
    if (!y)
        return NULL;
    work.quantized = y->data;
    team_for(args->env->team, work.count, GRAIN, quantize_part, &work);
    return NULL;
}

const struct kernel cpu_kernel_DynamicQuantizeLinear = {.run = run_dynamic};
