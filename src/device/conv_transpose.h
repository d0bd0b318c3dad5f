/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose as any device computes it: what a convolution's gradient is. Its geometry is that
 * of the convolution which leads from the output back to the input.
 */
#ifndef TSSA_DEVICE_CONV_TRANSPOSE_H
#define TSSA_DEVICE_CONV_TRANSPOSE_H

#include "device/conv.h"

struct conv_transpose_attrs {
    struct window_attrs window;
    int64_t groups;
    size_t n_padding, n_shape;
    int64_t padding[WINDOW_MAX_RANK]; /* output_padding */
    int64_t shape[TSSA_MAX_RANK];     /* output_shape */
};

tssa_status *conv_transpose_decode(const struct ir_op *op, struct conv_transpose_attrs *attrs);

/* Checks x, w and bias, which the caller has set, and resolves sizes: the job's window has the
 * operator's input as `out`, and its output as `in`. dims: of the result, of x's rank. */
tssa_status *conv_transpose_resolve(const struct conv_transpose_attrs *attrs, struct conv_job *job,
                                    int64_t *dims);

/* Of a resolved job, as conv_problem. */
bool conv_transpose_problem(const struct conv_job *job, tssa_dtype dtype,
                            struct library_problem *problem);

#endif
