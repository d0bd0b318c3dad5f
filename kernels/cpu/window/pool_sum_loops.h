/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of pool_sums.h for one element type. A file pool_sums_TYPE.c defines T, the C type of
 * an element; T_DTYPE, its number; T_ABS, T_SQRT and T_POW; and T_LOOPS, the table to fill; and
 * includes this file.
 */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "ir/scalar/f64_pow.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/pool_sums.h"

VECTOR_PROCEDURE(raise, (void *elements, int64_t n, double p), (elements, n, p))
{
    T *x = elements;
    if (p == 2)
        for (int64_t i = 0; i < n; i++)
            x[i] *= x[i];
    else if (p == 1)
        for (int64_t i = 0; i < n; i++)
            x[i] = T_ABS(x[i]);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = T_POW(T_ABS(x[i]), (T)p);
}

/* In double, because the exponent 1 / p may be no float32. */
VECTOR_PROCEDURE(root, (void *elements, int64_t n, double p), (elements, n, p))
{
    T *x = elements;
    if (p == 2)
        for (int64_t i = 0; i < n; i++)
            x[i] = T_SQRT(x[i]);
    else if (p != 1)
        for (int64_t i = 0; i < n; i++)
            x[i] = (T)f64_pow((double)x[i], 1 / p);
}

struct plane {
    const T *in;
    T *out, *line; /* line: sums of the rows of windows that are being read */
    int64_t n;     /* results */
};

VECTOR_PROCEDURE(add_tap, (const T *restrict x, int64_t step, T *restrict y, int64_t n),
                 (x, step, y, n))
{
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] += x[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] += x[i * step];
}

VECTOR_PROCEDURE(add_line, (T *restrict line, T *restrict y, int64_t n), (line, y, n))
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += line[i];
        line[i] = 0;
    }
}

static void tap(const void *context, int64_t in, int64_t step, int64_t out, int64_t n)
{
    const struct plane *plane = context;
    add_tap(plane->in + in, step, plane->line + out, n);
}

static void row_end(const void *context)
{
    const struct plane *plane = context;
    add_line(plane->line, plane->out, plane->n);
}

static void sums(const struct window *window, const void *in, void *out, void *line)
{
    const struct plane plane = {in, out, line, window->out_count};
    memset(line, 0, (size_t)plane.n * sizeof(T));
    memset(out, 0, (size_t)plane.n * sizeof(T));
    pool_apply_taps(window, tap, row_end, &plane);
}

static void make_divisors(const double *counts, int64_t n, void *divisors)
{
    for (int64_t i = 0; i < n; i++)
        ((T *)divisors)[i] = counts[i] > 0 ? (T)counts[i] : (T)INFINITY;
}

VECTOR_PROCEDURE(divide, (void *elements, const void *divisors, int64_t n), (elements, divisors, n))
{
    T *restrict x = elements;
    const T *restrict by = divisors;
    for (int64_t i = 0; i < n; i++)
        x[i] /= by[i];
}

const struct pool_sum_loops T_LOOPS = {T_DTYPE, sizeof(T),     raise, root,
                                       sums,    make_divisors, divide};
