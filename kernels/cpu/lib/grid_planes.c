/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/grid_planes.h"

#include <string.h>

#include "base/clones.h"

#define LANES 4
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

#define INLINE static inline __attribute__((always_inline))

/* The points of one call by what they need: those that read nothing are in no list. */
struct points {
    const struct sample_axis *axes;
    int64_t inside[GRID_POINTS], n_inside; /* read elements only */
    int64_t edge[GRID_POINTS], n_edge;     /* some of what they would read is beyond the plane */
};

/* `count`, of elements along each axis, is a constant to the compiler where there are few. */
INLINE void sort_by(int count, struct points *points, int64_t n)
{
    for (int64_t p = 0; p < n; p++) {
        const struct sample_axis *row = &points->axes[2 * p], *column = row + 1;
        int rows = 0, columns = 0;
        for (int i = 0; i < count; i++) {
            rows += row->offsets[i] >= 0;
            columns += column->offsets[i] >= 0;
        }
        if (rows == count && columns == count)
            points->inside[points->n_inside++] = p;
        else if (rows > 0 && columns > 0)
            points->edge[points->n_edge++] = p;
    }
}

static void sort_points(struct points *points, const struct sample_axis *axes, int64_t n)
{
    points->axes = axes;
    points->n_inside = points->n_edge = 0;
    if (axes->count == 2)
        sort_by(2, points, n);
    else
        sort_by(axes->count, points, n);
}

static float at_edge(const float *plane, const struct sample_axis *row)
{
    const struct sample_axis *column = row + 1;
    float sum = 0;
    for (int i = 0; i < row->count; i++) {
        float line = 0;
        for (int k = 0; row->offsets[i] >= 0 && k < column->count; k++)
            if (column->offsets[k] >= 0)
                line += column->narrow[k] * plane[row->offsets[i] + column->offsets[k]];
        if (row->offsets[i] >= 0)
            sum += row->narrow[i] * line;
    }
    return sum;
}

/* LANES planes, the same offset in each. */
#define VALUES(x, at) ((lanes){x[0][at], x[1][at], x[2][at], x[3][at]})

/* Sums begin with their first term, and 0 is added at the end: what that does to -0 is all that
 * beginning with 0 does. `count` is a constant to the compiler. */
INLINE void sample_inside(int count, const float *const *x, const struct points *points,
                          float *const *y)
{
    for (int64_t k = 0; k < points->n_inside; k++) {
        const int64_t p = points->inside[k];
        const struct sample_axis *row = &points->axes[2 * p], *column = row + 1;
        lanes sum = {0};
        for (int i = 0; i < count; i++) {
            int64_t at = row->offsets[i];
            lanes line = column->narrow[0] * VALUES(x, at + column->offsets[0]);
            for (int c = 1; c < count; c++)
                line += column->narrow[c] * VALUES(x, at + column->offsets[c]);
            sum += row->narrow[i] * line;
        }
        for (int l = 0; l < LANES; l++)
            y[l][p] = sum[l];
    }
}

VECTOR_PROCEDURE(sample_planes,
                 (int count, const float *const *x, const struct points *points, float *const *y),
                 (count, x, points, y))
{
    if (count == 1)
        sample_inside(1, x, points, y);
    else if (count == 2)
        sample_inside(2, x, points, y);
    else
        sample_inside(4, x, points, y);
}

void grid_planes_sample(const struct grid_planes *planes, const struct sample_axis *axes, int64_t n)
{
    struct points points;
    sort_points(&points, axes, n);
    for (int64_t channel = 0; channel < planes->channels; channel += LANES) {
        const float *x[LANES];
        float *y[LANES];
        for (int l = 0; l < LANES; l++) { /* the last one several times, where there are no more */
            int64_t c = channel + l < planes->channels ? channel + l : planes->channels - 1;
            x[l] = planes->in + c * planes->in_count;
            y[l] = planes->out + c * planes->out_count;
            if (points.n_inside < n)
                memset(y[l], 0, (size_t)n * sizeof *y[l]);
        }
        sample_planes(axes->count, x, &points, y);
        for (int l = 0; l < LANES; l++)
            for (int64_t k = 0; k < points.n_edge; k++)
                y[l][points.edge[k]] = at_edge(x[l], &axes[2 * points.edge[k]]);
    }
}
