/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of normalizations, by element type: FLOAT, which narrower types are computed in,
 * and DOUBLE. */
#ifndef TSSA_KERNELS_CPU_NORMALIZATION_NORMALIZE_H
#define TSSA_KERNELS_CPU_NORMALIZATION_NORMALIZE_H

#include "base/dtype.h"

/* Neighbouring lines of n elements each, and a mean and an inverse deviation per line. */
struct normalize_lines {
    const void *x;
    void *y; /* may be x */
    int64_t lines, n;
    const void *mean, *inverse;
};

/* All elements, statistics and operands are of the type. */
struct normalize_loops {
    tssa_dtype dtype;
    size_t width;
    /* Variances to 1 / sqrt(variance + epsilon), in place. */
    void (*invert)(void *variance, int64_t n, double epsilon);
    /* Variances to sqrt(variance) + 1e-9, in place. */
    void (*deviate)(void *variance, int64_t n);
    /* y = (x - mean) * inverse * scale[i] + bias[i]; bias NULL: none. */
    void (*elements)(const struct normalize_lines *lines, const void *scale, const void *bias);
    /* y = (x - mean) * (inverse * scale) + bias, of n elements that share them; y may be x. */
    void (*channel)(const void *x, void *y, int64_t n, const void *mean, const void *inverse,
                    const void *scale, const void *bias);
    /* y = (x - shift[i * step]) / norm[i * step], step 0 or 1; shift NULL: x / norm, and 0 where
     * that is 0. */
    void (*by_group)(const void *x, void *y, int64_t n, const void *shift, const void *norm,
                     int64_t step);
};

extern const struct normalize_loops normalize_loops_f32, normalize_loops_f64;

#endif
