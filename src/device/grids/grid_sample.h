/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample of floats but those of 8 bits, of up to three axes, with the CPU's bits. */
#ifndef TSSA_DEVICE_GRIDS_GRID_SAMPLE_H
#define TSSA_DEVICE_GRIDS_GRID_SAMPLE_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_grid_sample_find(const struct ir_op *op);

#endif
