/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CausalConvWithState (ai.onnx 27): a depth-wise 1-D convolution of what came before and the input.
 * DOUBLE is computed in double, narrower types in float32: products are rounded each and summed as
 * an axis that is not the innermost one (ir/reduction.def), then the bias is added.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clones.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f64_exp.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

struct causal_attrs {
    bool silu;
};

static tssa_status *causal_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct causal_attrs *attrs = ARENA_NEW(setup->arena, struct causal_attrs);
    TRY_ALLOC(attrs);
    const char *activation = ir_attr_str(op, "activation", "none");
    attrs->silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!attrs->silu && strcmp(activation, "none") != 0)
        return ERROR(TSSA_MALFORMED, "the activation is \"%s\"", activation);
    *state = attrs;
    return NULL;
}

struct causal {
    bool silu;
    const struct tensor *x, *w, *bias, *past; /* bias and past may be NULL */
    struct tensor *y, *present;
    int64_t channels, length, kernel;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
};

#define CAUSAL_LOOPS(T, add_taps, finish, exponential)                                             \
    /* Taps [at, end) of a line's n positions. */                                                  \
    VECTOR_PROCEDURE(add_taps,                                                                     \
                     (const T *restrict weights, const T *restrict line, int64_t at, int64_t end,  \
                      int64_t n, T *restrict sums),                                                \
                     (weights, line, at, end, n, sums))                                            \
    {                                                                                              \
        for (; at < end; at++)                                                                     \
            for (int64_t p = 0; p < n; p++)                                                        \
                sums[p] += weights[at] * line[p + at];                                             \
    }                                                                                              \
    VECTOR_PROCEDURE(finish, (T *restrict sums, int64_t n, T bias, bool silu),                     \
                     (sums, n, bias, silu))                                                        \
    {                                                                                              \
        for (int64_t p = 0; p < n; p++)                                                            \
            sums[p] += bias;                                                                       \
        for (int64_t p = 0; silu && p < n; p++)                                                    \
            sums[p] /= 1 + exponential(-sums[p]);                                                  \
    }
CAUSAL_LOOPS(float, add_float_taps, finish_floats, f32_exp)
CAUSAL_LOOPS(double, add_double_taps, finish_doubles, f64_exp)

/* All positions of a line, in `memory`. */
static void *sum_taps(const struct causal *c, const void *weights, const void *line, void *memory)
{
    struct reduce_levels levels;
    reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, c->dtype), c->width, c->length,
                        memory);
    for (int64_t k = 0, count; k < c->kernel; k += count) {
        count = reduce_levels_room(&levels, c->kernel - k);
        if (c->dtype == TSSA_FLOAT)
            add_float_taps(weights, line, k, k + count, c->length, (float *)(void *)levels.memory);
        else
            add_double_taps(weights, line, k, k + count, c->length,
                            (double *)(void *)levels.memory);
        reduce_levels_add(&levels, count);
    }
    return reduce_levels_end(&levels);
}

/* Indices are (batch, channel) pairs. Scratch: the weights, past and input in a row, and sums. */
static void convolve(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct causal *c = context;
    const int64_t before = c->kernel - 1, after = before + c->length;
    char *weights = scratch, *line = weights + (size_t)c->kernel * c->width;
    char *memory = line + (size_t)after * c->width;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % c->channels;
        double bias = 0;
        memset(line, 0, (size_t)before * c->width);
        load_elements(c->w, channel * c->kernel, 1, c->kernel, c->dtype, weights);
        if (c->past)
            load_elements(c->past, i * before, 1, before, c->dtype, line);
        load_elements(c->x, i * c->length, 1, c->length, c->dtype,
                      line + (size_t)before * c->width);
        if (c->present)
            store_elements(c->present, i * before, 1, before, c->dtype,
                           line + (size_t)c->length * c->width);
        if (!c->y)
            continue;
        if (c->bias)
            load_doubles(c->bias, channel, 1, 1, &bias);
        void *sums = sum_taps(c, weights, line, memory);
        if (c->dtype == TSSA_FLOAT)
            finish_floats(sums, c->length, (float)bias, c->silu);
        else
            finish_doubles(sums, c->length, bias, c->silu);
        store_elements(c->y, i * c->length, 1, c->length, c->dtype, sums);
    }
}

static tssa_status *open_operands(struct kernel_args *args, struct causal *c)
{
    TRY(typed_tensor(args, 0, &c->x));
    TRY(typed_tensor(args, 1, &c->w));
    TRY(kernel_optional_tensor(args, 3, &c->past));
    if (c->x->rank != 3)
        return operand_error(0, c->x, "of rank 3");
    c->channels = c->x->dims[1];
    c->length = c->x->dims[2];
    if (c->w->rank != 3 || c->w->dims[0] != c->channels || c->w->dims[1] != 1 || c->w->dims[2] < 1)
        return operand_error(1, c->w, "a kernel per channel");
    c->kernel = c->w->dims[2];
    TRY(typed_vector(args, 2, c->channels, true, &c->bias));
    if (c->past &&
        (c->past->dtype != c->x->dtype || c->past->rank != 3 || c->past->dims[0] != c->x->dims[0] ||
         c->past->dims[1] != c->channels || c->past->dims[2] != c->kernel - 1))
        return operand_error(3, c->past, "the state before");
    return NULL;
}

static tssa_status *run_CausalConvWithState(struct kernel_args *args)
{
    const struct causal_attrs *attrs = args->state;
    struct causal c = {.silu = attrs->silu};
    int64_t elements, sums, cost;
    size_t bytes;
    TRY(open_operands(args, &c));
    const int64_t state[] = {c.x->dims[0], c.channels, c.kernel - 1};
    TRY(kernel_output(args, 0, c.x->dtype, 3, c.x->dims, &c.y));
    TRY(kernel_output(args, 1, c.x->dtype, 3, state, &c.present));
    c.dtype = computed_in(c.x->dtype);
    c.width = tssa_dtype_size(c.dtype);
    if (!i64_mul(c.kernel, 2, &elements) ||
        !i64_mul(c.length, 1 + reduce_levels_needed(c.kernel), &sums) ||
        !i64_add(elements, sums, &elements) || !size_mul((size_t)elements, c.width, &bytes))
        return ERROR(TSSA_RUNTIME, "the input is too long");
    if (!i64_mul(c.length, c.kernel, &cost))
        cost = INT64_MAX;
    return parts_for(args, c.x->dims[0] * c.channels, cost, bytes, convolve, &c);
}

const struct kernel cpu_kernel_CausalConvWithState = {.prepare = causal_prepare,
                                                      .run = run_CausalConvWithState};
