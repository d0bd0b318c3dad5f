/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by the texts that there are of them, a launch each. */
#ifndef TSSA_DEVICE_GRIDS_CONVOLVE_H
#define TSSA_DEVICE_GRIDS_CONVOLVE_H

#include "device/grids/multiply.h"

#define CONVOLVE_TYPES MULTIPLY_TYPES

/* The text that computes it on the context's device. */
enum grids_text convolve_text(const struct device_context *context,
                              const struct conv_problem *problem);

/* Adds the bias to what a library has computed without. */
tssa_status *convolve_add_bias(struct device_stream *stream, const struct conv_problem *problem,
                               tssa_dtype dtype, const struct library_call *call);

/* What follows the convolution, of what a library, or a product, has computed without; nothing
 * where nothing does. */
tssa_status *convolve_follow(struct device_stream *stream, const struct conv_problem *problem,
                             tssa_dtype dtype, const struct library_call *call);

/* Of no empty result. */
tssa_status *convolve(struct device_stream *stream, const struct conv_problem *problem,
                      tssa_dtype dtype, const struct library_call *call);

#endif
