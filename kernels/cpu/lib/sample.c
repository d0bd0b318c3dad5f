/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/sample.h"

#include "base/clones.h"

/* Of a mode and a padding that are constants to the compiler. */
static inline __attribute__((always_inline)) void
init_all(enum sample_mode mode, enum sample_padding padding, const struct sample_line *line,
         const double *x, int64_t n, struct sample_axis *axes, int64_t step)
{
    struct sample_line same = *line;
    same.mode = mode;
    same.padding = padding;
    for (int64_t i = 0; i < n; i++)
        sample_axis_make(same, x[i], &axes[i * step]);
}

VECTOR_PROCEDURE(init_axes,
                 (const struct sample_line *line, const double *x, int64_t n,
                  struct sample_axis *axes, int64_t step),
                 (line, x, n, axes, step))
{
    if (line->mode == SAMPLE_LINEAR && line->padding == SAMPLE_ZEROS)
        init_all(SAMPLE_LINEAR, SAMPLE_ZEROS, line, x, n, axes, step);
    else
        init_all(line->mode, line->padding, line, x, n, axes, step);
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
