/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose of CONVOLVE_TYPES, of up to three axes. The device's library is asked
 * first; what it declines, or where there is none, a kernel of kernels/grids computes. */
#ifndef TSSA_DEVICE_GRIDS_CONV_H
#define TSSA_DEVICE_GRIDS_CONV_H

#include "device/kernel.h"

/* NULL: it is no such convolution. */
const struct kernel *grids_conv_find(const struct ir_op *op);
/* The same of a fuse op of a Conv and of what follows it (ir_fuse_convolves). */
const struct kernel *grids_conv_find_followed(const struct ir_op *op);

#endif
