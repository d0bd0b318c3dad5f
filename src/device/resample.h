/* SPDX-License-Identifier: Apache-2.0 */
/* Resize along one axis, as any device computes it: which input elements make an output element,
 * with which weights (Resize-19). */
#ifndef TSSA_DEVICE_RESAMPLE_H
#define TSSA_DEVICE_RESAMPLE_H

#include "device/kernel.h"

enum resample_mode { RESAMPLE_NEAREST, RESAMPLE_LINEAR, RESAMPLE_CUBIC };

enum resample_coordinates {
    COORDINATES_HALF_PIXEL,
    COORDINATES_HALF_PIXEL_SYMMETRIC,
    COORDINATES_PYTORCH_HALF_PIXEL,
    COORDINATES_ALIGN_CORNERS,
    COORDINATES_ASYMMETRIC,
    COORDINATES_TF_HALF_PIXEL_FOR_NN,
    COORDINATES_TF_CROP_AND_RESIZE
};

enum resample_rounding {
    ROUNDING_PREFER_FLOOR,
    ROUNDING_PREFER_CEIL,
    ROUNDING_FLOOR,
    ROUNDING_CEIL
};

struct resample_options {
    enum resample_mode mode;
    enum resample_coordinates coordinates;
    enum resample_rounding rounding; /* RESAMPLE_NEAREST */
    bool antialias, exclude_outside;
    double cubic_a;
};

/* One axis; in > 0. */
struct resample_axis {
    int64_t in, out;
    double scale, roi_begin, roi_end;
};

/*
 * Output element o is the sum of weight[o * taps + k] * input[index[o * taps + k]]; indices are
 * inside the input. Where outside[o], it is the extrapolation value instead. Weights are made in
 * double; narrow[] is the same, rounded once.
 */
struct resample_table {
    int64_t taps;
    int64_t *index;
    double *weight;
    float *narrow;
    bool *outside;
};

/* How many bytes the table needs, which is empty then. */
tssa_status *resample_table_size(const struct resample_options *options,
                                 const struct resample_axis *axis, struct resample_table *table,
                                 size_t *bytes);
/* The same table, in so many bytes of memory, which is aligned as int64_t is. */
void resample_table_fill(const struct resample_options *options, const struct resample_axis *axis,
                         void *memory, struct resample_table *table);

#endif
