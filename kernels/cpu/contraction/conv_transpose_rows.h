/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose of float32 with constant weights, by rows: each pixel of the input is a row of a
 * matrix, of its channels, and the weights are the matrix that a library packs once. What comes of
 * it is added up pixel by pixel of the result, channels side by side, and turned in the end. (The
 * other way around weights are read, and turned, in each run, which takes longest where there are
 * few pixels; and rows of few pixels fill no vectors.)
 */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_TRANSPOSE_ROWS_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_TRANSPOSE_ROWS_H

#include "device/library_cache.h"
#include "device/window.h"

/* Weights, of one group, that it could be worth it for. Their cache is to be constant then. */
bool conv_transpose_rows_packs(const struct tensor *w, int64_t groups);

struct conv_transpose_rows {
    const struct window *window; /* of the convolution that leads back: `out` is the input */
    int64_t batch, in_channels, out_channels;
    const struct tensor *w, *bias; /* conv_transpose_rows_packs; `bias` may be NULL */
    const float *x;
    float *y;
};

/* *done false: the library declines, or the sizes do, or the bias is not FLOAT. */
tssa_status *conv_transpose_rows(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_transpose_rows *job, bool *done);
/* For kernel.get_ready; x and y are not looked at. */
tssa_status *conv_transpose_rows_get_ready(struct kernel_args *args, struct library_cache *cache,
                                           const struct conv_transpose_rows *job, bool *made);

#endif
