/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax-13, LogSoftmax-13 and Hardmax-13 of ai.onnx, and their older forms, which flatten the tensor
 * to two dims at the axis. DOUBLE is computed in double, narrower types in float32: from x - max(x), with
 * sums of 16 running sums, which begin anew every 4096 elements and are added up in double.
 */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/wide.h"
#include "kernels/cpu/lib/lines.h"

struct softmax {
    int64_t axis;
    bool flatten;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct softmax *softmax = ARENA_NEW(setup->arena, struct softmax);
    TRY_ALLOC(softmax);
    softmax->flatten = op->version != 0 && op->version < 13;
    softmax->axis = ir_attr_int(op, "axis", softmax->flatten ? 1 : -1);
    *state = softmax;
    return NULL;
}

/* ---- float32: many short lines at a time, each padded to whole vectors ----------------------------- */

#define LANES 16
#define CHUNK 4096
#define BLOCK 2048 /* elements of lines that are computed together */

/* Half of the lanes: gcc 12 keeps vectors that are longer than the machine's in memory. */
typedef float lanes __attribute__((vector_size(LANES / 2 * sizeof(float))));
typedef int32_t int_lanes __attribute__((vector_size(LANES / 2 * sizeof(float))));

/* Lines of `padded` elements, a multiple of LANES, of which those that are no elements are -infinity. */
struct block {
    float *x, *exps; /* exps: for LogSoftmax, as much memory; for Softmax x itself */
    int64_t lines, padded;
};

#define INLINE static inline __attribute__((always_inline))

INLINE void take_larger(lanes *a, const float *x)
{
    lanes v;
    memcpy(&v, x, sizeof v);
    int_lanes take = v > *a;
    *a = (lanes)(((int_lanes)v & take) | ((int_lanes)*a & ~take));
}

/* Not always a NaN where there is one; either way it makes the sum one. */
INLINE float largest_of(const float *x, int64_t padded)
{
    lanes low, high;
    memcpy(&low, x, sizeof low);
    memcpy(&high, x + LANES / 2, sizeof high);
    for (int64_t i = LANES; i < padded; i += LANES) {
        take_larger(&low, x + i);
        take_larger(&high, x + i + LANES / 2);
    }
    float parts[LANES / 2];
    memcpy(parts, &high, sizeof parts);
    take_larger(&low, parts);
    memcpy(parts, &low, sizeof parts);
    for (int half = LANES / 4; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            parts[k] = parts[k + half] > parts[k] ? parts[k + half] : parts[k];
    return parts[0];
}

INLINE double sum_of_line(const float *x, int64_t padded)
{
    double total = 0;
    for (int64_t begin = 0; begin < padded; begin += CHUNK) {
        int64_t end = padded - begin < CHUNK ? padded : begin + CHUNK;
        lanes low = {0}, high = {0}, v;
        for (int64_t i = begin; i < end; i += LANES) {
            memcpy(&v, x + i, sizeof v);
            low += v;
            memcpy(&v, x + i + LANES / 2, sizeof v);
            high += v;
        }
        float parts[LANES / 2];
        low += high;
        memcpy(parts, &low, sizeof parts);
        for (int half = LANES / 4; half > 0; half /= 2)
            for (int k = 0; k < half; k++)
                parts[k] += parts[k + half];
        total += (double)parts[0];
    }
    return total;
}

/* exps = exp(x - max(x)), with x - max(x) left in x; may be the same memory. */
INLINE void exps_of_lines(const struct block *block)
{
    for (int64_t line = 0; line < block->lines; line++) {
        float *x = block->x + line * block->padded, most = largest_of(x, block->padded);
        for (int64_t i = 0; i < block->padded; i++)
            x[i] -= most;
    }
    const float *x = block->x;
    float *exps = block->exps;
    for (int64_t i = 0; i < block->lines * block->padded; i++)
        exps[i] = f32_exp(x[i]);
}

VECTOR_PROCEDURE(softmax_block, (const struct block *block), (block))
{
    exps_of_lines(block);
    for (int64_t line = 0; line < block->lines; line++) {
        float *y = block->exps + line * block->padded;
        float factor = (float)(1 / sum_of_line(y, block->padded));
        for (int64_t i = 0; i < block->padded; i++)
            y[i] *= factor;
    }
}

VECTOR_PROCEDURE(log_softmax_block, (const struct block *block), (block))
{
    exps_of_lines(block);
    for (int64_t line = 0; line < block->lines; line++) {
        float *x = block->x + line * block->padded;
        float log_sum =
            (float)wide_log(sum_of_line(block->exps + line * block->padded, block->padded));
        for (int64_t i = 0; i < block->padded; i++)
            x[i] -= log_sum;
    }
}

/* ---- double: in place on one line of n > 0 elements ------------------------------------------------ */

#define DOUBLE_LANES 8

VECTOR_FUNCTION(double, largest, (const double *x, int64_t n), (x, n))
{
    double parts[DOUBLE_LANES], most = x[0];
    for (int k = 0; k < DOUBLE_LANES; k++)
        parts[k] = x[0];
    int64_t i = 0;
    for (; i + DOUBLE_LANES <= n; i += DOUBLE_LANES)
        for (int k = 0; k < DOUBLE_LANES; k++)
            parts[k] = x[i + k] > parts[k] ? x[i + k] : parts[k];
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int k = 0; k < DOUBLE_LANES; k++)
        most = parts[k] > most ? parts[k] : most;
    return most;
}

static double sum_of_exps(const double *x, double *exps, double most, int64_t n)
{
    double parts[DOUBLE_LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = exp(x[i] - most);
        if (exps)
            exps[i] = e;
        parts[i % DOUBLE_LANES] += e;
    }
    for (int k = 0; k < DOUBLE_LANES; k++)
        sum += parts[k];
    return sum;
}

static void softmax_line(double *x, int64_t n)
{
    double sum = sum_of_exps(x, x, largest(x, n), n);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void log_softmax_line(double *x, int64_t n)
{
    double most = largest(x, n), log_sum = log(sum_of_exps(x, NULL, most, n));
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] - most - log_sum;
}

/* The first of the largest elements; the first NaN, as numpy's argmax. */
static void hardmax_line(double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n && !isnan(x[best]); i++)
        if (x[i] > x[best] || isnan(x[i]))
            best = i;
    for (int64_t i = 0; i < n; i++)
        x[i] = i == best;
}

/* ---- Running --------------------------------------------------------------------------------------- */

/* `block` is NULL where every type is computed in double. */
struct method {
    void (*line)(double *x, int64_t n);
    void (*block)(const struct block *block);
    bool in_place; /* the block's exps are its x */
};

struct work {
    struct lines lines;
    const struct tensor *in, *out;
    const struct method *method;
};

static int64_t offset_of(const struct lines *lines, int64_t line)
{
    return line / lines->inner * lines->n * lines->inner + line % lines->inner;
}

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = offset_of(&w->lines, line);
        load_doubles(w->in, offset, inner, n, scratch);
        w->method->line(scratch, n);
        store_doubles(w->out, offset, inner, n, scratch);
    }
}

static int64_t padded_of(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static int64_t block_lines(int64_t n)
{
    return padded_of(n) < BLOCK ? BLOCK / padded_of(n) : 1;
}

/* n elements `step` apart to or from float32: bytes where they are just that. */
static void load_line(const struct tensor *in, int64_t offset, int64_t step, int64_t n, float *x)
{
    if (in->dtype == TSSA_FLOAT && step == 1)
        memcpy(x, element_at(in, offset), (size_t)n * sizeof *x);
    else
        convert_elements(n, in->dtype, element_at(in, offset), step, TSSA_FLOAT, x, 1,
                         &convert_default);
}

static void store_line(const struct tensor *out, int64_t offset, int64_t step, int64_t n,
                       const float *x)
{
    if (out->dtype == TSSA_FLOAT && step == 1)
        memcpy(element_at(out, offset), x, (size_t)n * sizeof *x);
    else
        convert_elements(n, TSSA_FLOAT, x, 1, out->dtype, element_at(out, offset), step,
                         &convert_default);
}

static void run_blocks(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner, most = block_lines(n);
    struct block block = {.x = scratch, .padded = padded_of(n)};
    block.exps = w->method->in_place ? block.x : block.x + most * block.padded;
    for (int64_t first = begin; first < end; first += block.lines) {
        block.lines = end - first < most ? end - first : most;
        for (int64_t i = 0; i < block.lines; i++) {
            float *x = block.x + i * block.padded;
            load_line(w->in, offset_of(&w->lines, first + i), inner, n, x);
            for (int64_t k = n; k < block.padded; k++)
                x[k] = -INFINITY;
        }
        w->method->block(&block);
        for (int64_t i = 0; i < block.lines; i++)
            store_line(w->out, offset_of(&w->lines, first + i), inner, n,
                       block.x + i * block.padded);
    }
}

static tssa_status *find_lines(const struct softmax *softmax, const struct tensor *in,
                               struct lines *lines)
{
    int axis;
    if (!softmax->flatten) {
        TRY(kernel_axis(softmax->axis, in->rank, &axis));
        *lines = lines_along(in, axis);
        return NULL;
    }
    if (softmax->axis == in->rank)
        axis = in->rank;
    else
        TRY(kernel_axis(softmax->axis, in->rank, &axis));
    *lines =
        (struct lines){dims_product(in->dims, 0, axis), dims_product(in->dims, axis, in->rank), 1};
    return NULL;
}

static tssa_status *run_with(struct kernel_args *args, const struct method *method)
{
    struct work work = {.method = method};
    TRY(typed_tensor(args, 0, &work.in));
    TRY(find_lines(args->state, work.in, &work.lines));
    struct tensor *out;
    TRY(kernel_output(args, 0, work.in->dtype, work.in->rank, work.in->dims, &out));
    work.out = out;
    int64_t n = work.lines.n, lines = work.lines.outer * work.lines.inner;
    if (!out || n == 0)
        return NULL;
    if (!method->block || work.in->dtype == TSSA_DOUBLE)
        return parts_for(args, lines, n * 8, (size_t)n * sizeof(double), run_lines, &work);
    size_t block = (size_t)(block_lines(n) * padded_of(n)) * sizeof(float);
    return parts_for(args, lines, n * 2, method->in_place ? block : 2 * block, run_blocks, &work);
}

#define KERNEL(name, ...)                                                                          \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        static const struct method method = {__VA_ARGS__};                                         \
        return run_with(args, &method);                                                            \
    }                                                                                              \
    extern const struct kernel cpu_kernel_##name;                                                  \
    const struct kernel cpu_kernel_##name = {.prepare = prepare, .run = run_##name};

KERNEL(softmax, softmax_line, softmax_block, true)
KERNEL(log_softmax, log_softmax_line, log_softmax_block, false)
KERNEL(hardmax, hardmax_line, NULL, true)
