/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates, taps and weights of Resize; see resample.h. */
#include "device/resample.h"

#include <inttypes.h>
#include <math.h>

/* Where output element o lies in the input. A size that comes from a scale may be fractional, and
 * some modes are defined by it. */
static double source(const struct resample_axis *axis, enum resample_coordinates mode, int64_t o)
{
    double x = (double)o, in = (double)axis->in, out = axis->scale * in, span;
    switch (mode) {
    case COORDINATES_ALIGN_CORNERS:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case COORDINATES_ASYMMETRIC:
        return x / axis->scale;
    case COORDINATES_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / axis->scale;
    case COORDINATES_PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? (x + 0.5) / axis->scale - 0.5 : 0;
    case COORDINATES_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)axis->out / out) + (x + 0.5) / axis->scale - 0.5;
    case COORDINATES_TF_CROP_AND_RESIZE:
        span = (axis->roi_end - axis->roi_begin) * (in - 1);
        return axis->roi_begin * (in - 1) + (out == 1 ? span / 2 : x * span / (out - 1));
    default:
        return (x + 0.5) / axis->scale - 0.5;
    }
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double kernel_weight(const struct resample_options *options, double distance)
{
    if (options->mode == RESAMPLE_CUBIC)
        return cubic(distance, options->cubic_a);
    return fabs(distance) < 1 ? 1 - fabs(distance) : 0;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static double round_as(double x, enum resample_rounding rounding)
{
    switch (rounding) {
    case ROUNDING_PREFER_CEIL:
        return floor(x + 0.5);
    case ROUNDING_FLOOR:
        return floor(x);
    case ROUNDING_CEIL:
        return ceil(x);
    default:
        return ceil(x - 0.5);
    }
}

/* Weights that sum to 1; those of elements outside the input go to the elements at the edge, or are
 * left out and the rest scaled up. */
static void fill_taps(const struct resample_options *options, const struct resample_axis *axis,
                      double x, double stretch, int64_t taps, int64_t *index, double *weight)
{
    double floor_x = floor(x), sum = 0;
    int64_t first = (int64_t)floor_x - taps / 2 + 1;
    for (int64_t k = 0; k < taps; k++) {
        int64_t i = first + k;
        bool excluded = options->exclude_outside && (i < 0 || i >= axis->in);
        weight[k] = excluded ? 0 : kernel_weight(options, ((double)i - x) * stretch);
        index[k] = clamp(i, axis->in);
        sum += weight[k];
    }
    for (int64_t k = 0; k < taps && sum != 0 && (options->exclude_outside || stretch < 1); k++)
        weight[k] /= sum;
}

/* How many elements a kernel reaches: an even number around x. */
static int64_t count_taps(const struct resample_options *options, double stretch)
{
    if (options->mode == RESAMPLE_NEAREST)
        return 1;
    double reach = options->mode == RESAMPLE_CUBIC ? 2 : 1;
    return 2 * (int64_t)ceil(reach / stretch);
}

static double stretch_of(const struct resample_options *options, const struct resample_axis *axis)
{
    return options->antialias && axis->scale < 1 ? axis->scale : 1;
}

tssa_status *resample_table_size(const struct resample_options *options,
                                 const struct resample_axis *axis, struct resample_table *table,
                                 size_t *bytes)
{
    const double stretch = stretch_of(options, axis);
    size_t entries, flags = (size_t)axis->out * sizeof(bool);
    /* An output of at least one element means that 1 / scale is about the input's size at most. */
    if (2 / stretch > 4 * (double)axis->in + 4)
        return ERROR(TSSA_RUNTIME, "scale %g is too small for %" PRId64 " elements", axis->scale,
                     axis->in);
    *table = (struct resample_table){.taps = count_taps(options, stretch)};
    if (!size_mul((size_t)axis->out, (size_t)table->taps, &entries) ||
        !size_mul(entries, sizeof(int64_t) + sizeof(double) + sizeof(float), bytes) ||
        !size_add(*bytes, flags, bytes))
        return ERROR(TSSA_LIMIT, "an axis of %" PRId64 " elements is too long", axis->out);
    return NULL;
}

/* No coordinate of a sane model comes near this; beyond it, a double would not fit an int64. */
#define COORDINATE_LIMIT 0x1p52

void resample_table_fill(const struct resample_options *options, const struct resample_axis *axis,
                         void *memory, struct resample_table *table)
{
    const double stretch = stretch_of(options, axis);
    const size_t entries = (size_t)axis->out * (size_t)table->taps;
    table->index = memory;
    table->weight = (double *)(void *)(table->index + entries);
    table->narrow = (float *)(void *)(table->weight + entries);
    table->outside = (bool *)(void *)(table->narrow + entries);
    for (int64_t o = 0; o < axis->out; o++) {
        double x = source(axis, options->coordinates, o);
        int64_t *index = table->index + o * table->taps;
        double *weight = table->weight + o * table->taps;
        table->outside[o] = options->coordinates == COORDINATES_TF_CROP_AND_RESIZE &&
                            !(x >= 0 && x <= (double)(axis->in - 1));
        x = x > -COORDINATE_LIMIT ? fmin(x, COORDINATE_LIMIT) : -COORDINATE_LIMIT; /* NaN too */
        if (options->mode != RESAMPLE_NEAREST) {
            fill_taps(options, axis, x, stretch, table->taps, index, weight);
            continue;
        }
        index[0] = clamp((int64_t)round_as(x, options->rounding), axis->in);
        weight[0] = 1;
    }
    for (int64_t i = 0; i < axis->out * table->taps; i++)
        table->narrow[i] = (float)table->weight[i];
}
