/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/sample.h"

#include <math.h>

#include "base/clones.h"

#define INLINE static inline __attribute__((always_inline))

/* Turns x around at both ends as often as it takes. */
static double reflect(double x, double low, double high)
{
    double range = high - low, beyond = x < low ? low - x : x - high;
    if (x >= low && x <= high)
        return x;
    if (!(range > 0) || !isfinite(beyond))
        return low;
    double rest = fmod(beyond, range);
    bool even = fmod(floor(beyond / range), 2) == 0;
    /* An even number of whole crossings ends at the side where x left the grid. */
    return (x < low) == even ? low + rest : high - rest;
}

struct bounds {
    enum sample_padding padding;
    double low, high; /* where reflection turns */
    int64_t size;
};

INLINE double into_bounds(const struct bounds *b, double x)
{
    if (b->padding == SAMPLE_ZEROS || (x >= b->low && x <= b->high))
        return x;
    if (isnan(x))
        return 0;
    if (b->padding == SAMPLE_REFLECTION)
        return reflect(x, b->low, b->high);
    return x < 0 ? 0 : (double)(b->size - 1);
}

/* The element at position i, -1: none. i is a whole number. */
INLINE int64_t element_of(const struct bounds *b, double i)
{
    double last = (double)(b->size - 1);
    if (b->padding == SAMPLE_REFLECTION)
        i = trunc(reflect(i, b->low, b->high));
    if (b->padding == SAMPLE_ZEROS && !(i >= 0 && i <= last))
        return -1;
    return i > 0 ? (int64_t)(i < last ? i : last) : 0;
}

/* Keys' cubic convolution, a = -0.75. */
INLINE void cubic_weights(double t, double *weights)
{
    const double a = -0.75;
    double s = 1 - t;
    weights[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weights[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    weights[3] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
}

INLINE void init_axis(struct sample_axis *axis, const struct sample_line *line, double x)
{
    double margin = line->align_corners ? 0 : 0.5, first;
    struct bounds bounds = {line->padding, -margin, (double)(line->size - 1) + margin, line->size};
    if (line->mode == SAMPLE_NEAREST)
        x = nearbyint(x); /* to even, as PyTorch does */
    x = into_bounds(&bounds, x);
    first = floor(x);
    if (line->mode == SAMPLE_NEAREST) {
        axis->count = 1;
        axis->weights[0] = axis->narrow[0] = 1;
        first = trunc(x);
    } else if (line->mode == SAMPLE_LINEAR) {
        axis->count = 2;
        axis->weights[1] = x - first;
        axis->weights[0] = 1 - axis->weights[1];
        axis->narrow[0] = (float)axis->weights[0];
        axis->narrow[1] = (float)axis->weights[1];
    } else {
        axis->count = 4;
        cubic_weights(x - first, axis->weights);
        for (int i = 0; i < 4; i++)
            axis->narrow[i] = (float)axis->weights[i];
        first -= 1;
    }
    for (int i = 0; i < axis->count; i++) {
        int64_t element = element_of(&bounds, first + i);
        axis->offsets[i] = element < 0 ? -1 : element * line->stride;
    }
}

VECTOR_PROCEDURE(init_axes,
                 (const struct sample_line *line, const double *x, int64_t n,
                  struct sample_axis *axes, int64_t step),
                 (line, x, n, axes, step))
{
    for (int64_t i = 0; i < n; i++)
        init_axis(&axes[i * step], line, x[i]);
}

void sample_axes_init(const struct sample_line *line, const double *x, int64_t n,
                      struct sample_axis *axes, int64_t step)
{
    init_axes(line, x, n, axes, step);
}

void sample_axis_init(struct sample_axis *axis, enum sample_mode mode, enum sample_padding padding,
                      bool align_corners, double x, int64_t size, int64_t stride)
{
    init_axes(&(struct sample_line){mode, padding, align_corners, size, stride}, &x, 1, axis, 1);
}

/* Planes without recursion. */
#define SAMPLE_AT(name, T, weights)                                                                \
    static T name##_line(const T *grid, const struct sample_axis *axis)                            \
    {                                                                                              \
        T sum = 0;                                                                                 \
        for (int i = 0; i < axis->count; i++)                                                      \
            if (axis->offsets[i] >= 0)                                                             \
                sum += axis->weights[i] * grid[axis->offsets[i]];                                  \
        return sum;                                                                                \
    }                                                                                              \
    T name(const T *grid, const struct sample_axis *axes, int rank)                                \
    {                                                                                              \
        T sum = 0;                                                                                 \
        if (rank == 1)                                                                             \
            return name##_line(grid, axes);                                                        \
        for (int i = 0; i < axes->count; i++)                                                      \
            if (axes->offsets[i] >= 0)                                                             \
                sum += axes->weights[i] *                                                          \
                       (rank == 2 ? name##_line(grid + axes->offsets[i], axes + 1)                 \
                                  : name(grid + axes->offsets[i], axes + 1, rank - 1));            \
        return sum;                                                                                \
    }
SAMPLE_AT(sample_floats_at, float, narrow)
SAMPLE_AT(sample_doubles_at, double, weights)
