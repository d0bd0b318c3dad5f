/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where along one axis the elements lie that a point of a grid is made from, and their weights:
 * one definition for the CPU (kernels/cpu/lib/sample.h, which tells of them) and for texts.
 */
#ifndef TSSA_KERNELS_GRIDS_SAMPLE_AXIS_H
#define TSSA_KERNELS_GRIDS_SAMPLE_AXIS_H

#include "ir/scalar/exact.h"

enum sample_mode { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC };
enum sample_padding { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION };

/* The elements along one axis that a point is made from. Weights are made in double; narrow[] is
 * the same, rounded. */
struct sample_axis {
    int count;
    int64_t offsets[4]; /* of the element, in elements; -1: beyond the grid, 0 */
    double weights[4];
    float narrow[4];
};

/* An axis of `size` elements, `stride` apart. `align_corners` says where reflection turns: at the
 * outer elements' centers, or half an element further out. */
struct sample_line {
    enum sample_mode mode;
    enum sample_padding padding;
    bool align_corners;
    int64_t size, stride;
};

/* Where reflection turns. */
struct sample_bounds {
    enum sample_padding padding;
    double low, high;
    int64_t size;
};

/* Turns x around at both ends as often as it takes. */
SCALAR_FN double sample_reflect(double x, double low, double high)
{
    const double range = high - low, beyond = x < low ? low - x : x - high;
    if (x >= low && x <= high)
        return x;
    if (!(range > 0) || beyond - beyond != 0)
        return low;
    const double rest = fmod(beyond, range);
    const bool even = fmod(floor(beyond / range), 2.0) == 0;
    /* An even number of whole crossings ends at the side where x left the grid. */
    return (x < low) == even ? low + rest : high - rest;
}

SCALAR_FN double sample_into_bounds(struct sample_bounds b, double x)
{
    if (b.padding == SAMPLE_ZEROS || (x >= b.low && x <= b.high))
        return x;
    if (x != x)
        return 0;
    if (b.padding == SAMPLE_REFLECTION)
        return sample_reflect(x, b.low, b.high);
    return x < 0 ? 0 : (double)(b.size - 1);
}

/* The element at position i, -1: none. i is a whole number. */
SCALAR_FN int64_t sample_element(struct sample_bounds b, double i)
{
    const double last = (double)(b.size - 1);
    if (b.padding == SAMPLE_REFLECTION)
        i = trunc(sample_reflect(i, b.low, b.high));
    if (b.padding == SAMPLE_ZEROS && !(i >= 0 && i <= last))
        return -1;
    return i > 0 ? (int64_t)(i < last ? i : last) : 0;
}

/* Keys' cubic convolution, a = -0.75: of the first, or with 1 - t the last, of four elements, and
 * of the second, or the third. */
SCALAR_FN double sample_outer_weight(double t)
{
    const double a = -0.75;
    return ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
}

SCALAR_FN double sample_inner_weight(double t)
{
    const double a = -0.75;
    return ((a + 2) * t - (a + 3)) * t * t + 1;
}

/* Of a point at x, where element i is at i. */
SCALAR_FN void sample_axis_make(struct sample_line line, double x, struct sample_axis *axis)
{
    const double margin = line.align_corners ? 0 : 0.5;
    const int count = line.mode == SAMPLE_NEAREST ? 1 : line.mode == SAMPLE_LINEAR ? 2 : 4;
    struct sample_bounds bounds;
    bounds.padding = line.padding;
    bounds.low = -margin;
    bounds.high = (double)(line.size - 1) + margin;
    bounds.size = line.size;
    if (line.mode == SAMPLE_NEAREST)
        x = rint(x); /* to even, as PyTorch does */
    x = sample_into_bounds(bounds, x);
    double first = floor(x);
    if (line.mode == SAMPLE_NEAREST) {
        axis->weights[0] = 1;
        first = trunc(x);
    } else if (line.mode == SAMPLE_LINEAR) {
        axis->weights[1] = x - first;
        axis->weights[0] = 1 - axis->weights[1];
    } else {
        const double t = x - first;
        axis->weights[0] = sample_outer_weight(t);
        axis->weights[1] = sample_inner_weight(t);
        axis->weights[2] = sample_inner_weight(1 - t);
        axis->weights[3] = sample_outer_weight(1 - t);
        first -= 1;
    }
    axis->count = count;
    for (int i = 0; i < count; i++) {
        const int64_t element = sample_element(bounds, first + i);
        axis->narrow[i] = (float)axis->weights[i];
        axis->offsets[i] = element < 0 ? -1 : element * line.stride;
    }
}

/* GridSample's coordinates, from [-1, 1] to elements, in the type of the grid, as other
 * implementations do. */
SCALAR_FN double sample_place_f32(float n, int64_t size, bool align_corners)
{
    return (double)(align_corners ? (n + 1) / 2 * (float)(size - 1)
                                  : ((n + 1) * (float)size - 1) / 2);
}

SCALAR_FN double sample_place_f64(double n, int64_t size, bool align_corners)
{
    return align_corners ? (n + 1) / 2 * (double)(size - 1) : ((n + 1) * (double)size - 1) / 2;
}

#endif
