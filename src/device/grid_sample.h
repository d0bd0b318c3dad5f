/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample as any device computes it: attributes decoded once, operands checked. */
#ifndef TSSA_DEVICE_GRID_SAMPLE_H
#define TSSA_DEVICE_GRID_SAMPLE_H

#include "device/kernel.h"
#include "kernels/grids/sample_axis.h"

struct grid_attrs {
    enum sample_mode mode;
    enum sample_padding padding;
    bool align_corners;
};

tssa_status *grid_sample_decode(const struct ir_op *op, struct grid_attrs *attrs);

/* dims: of the result, of x's rank. Of tensors, types and dims alone are read. */
tssa_status *grid_sample_resolve(const struct tensor *x, const struct tensor *grid, int64_t *dims);

#endif
