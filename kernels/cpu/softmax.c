/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax-13, LogSoftmax-13 and Hardmax-13 of ai.onnx, and their older forms, which flatten the tensor
 * to two dims at the axis. Computed in double from x - max(x), and rounded once; sums are of eight
 * running sums.
 */
#include <math.h>

#include "base/clones.h"
#include "kernels/cpu/exp.h"
#include "kernels/cpu/lines.h"

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

/* In place on one line of n > 0 elements; `wide`: the result keeps all of double. */
typedef void (*line_fn)(double *x, int64_t n, bool wide);

#define LANES 8

/* Not a NaN unless x[0] is one; either way a NaN makes the sum one. */
VECTOR_CLONES
static double largest(const double *x, int64_t n)
{
    double lanes[LANES], most = x[0];
    for (int k = 0; k < LANES; k++)
        lanes[k] = x[0];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int k = 0; k < LANES; k++)
        most = lanes[k] > most ? lanes[k] : most;
    return most;
}

VECTOR_CLONES
static double sum_of(const double *x, int64_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += x[i + k];
    for (; i < n; i++)
        sum += x[i];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

/* y = exp(x - most); may be in place. */
VECTOR_CLONES
static void exp_of(const double *x, double *y, double most, int64_t n, bool wide)
{
    if (wide)
        for (int64_t i = 0; i < n; i++)
            y[i] = exp(x[i] - most);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = exp_for_float(x[i] - most);
}

VECTOR_CLONES
static void softmax_line(double *x, int64_t n, bool wide)
{
    exp_of(x, x, largest(x, n), n, wide);
    double sum = sum_of(x, n);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void log_softmax_line(double *x, int64_t n, bool wide)
{
    double most = largest(x, n), sum = 0, chunk[64];
    for (int64_t i = 0; i < n; i += 64) {
        int64_t count = n - i < 64 ? n - i : 64;
        exp_of(x + i, chunk, most, count, wide);
        sum += sum_of(chunk, count);
    }
    double log_sum = log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] - most - log_sum;
}

/* The first of the largest elements; the first NaN, as numpy's argmax. */
static void hardmax_line(double *x, int64_t n, bool wide)
{
    (void)wide;
    int64_t best = 0;
    for (int64_t i = 1; i < n && !isnan(x[best]); i++)
        if (x[i] > x[best] || isnan(x[i]))
            best = i;
    for (int64_t i = 0; i < n; i++)
        x[i] = i == best;
}

struct work {
    struct lines lines;
    const struct tensor *in, *out;
    line_fn fn;
};

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = line / inner * n * inner + line % inner;
        load_doubles(w->in, offset, inner, n, scratch);
        w->fn(scratch, n, w->in->dtype == TSSA_DOUBLE);
        store_doubles(w->out, offset, inner, n, scratch);
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

static tssa_status *run_with(struct kernel_args *args, line_fn fn)
{
    struct work work = {.fn = fn};
    TRY(typed_tensor(args, 0, &work.in));
    TRY(find_lines(args->state, work.in, &work.lines));
    struct tensor *out;
    TRY(kernel_output(args, 0, work.in->dtype, work.in->rank, work.in->dims, &out));
    work.out = out;
    if (!out || work.lines.n == 0)
        return NULL;
    return parts_for(args, work.lines.outer * work.lines.inner, work.lines.n * 8,
                     (size_t)work.lines.n * sizeof(double), run_lines, &work);
}

#define KERNEL(name)                                                                               \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        return run_with(args, name##_line);                                                        \
    }                                                                                              \
    extern const struct kernel cpu_kernel_##name;                                                  \
    const struct kernel cpu_kernel_##name = {.prepare = prepare, .run = run_##name};

KERNEL(softmax)
KERNEL(log_softmax)
KERNEL(hardmax)
