/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScatterND and ScatterElements without a reduction: of updates with one place the last one is
 * written, as on the CPU. An index that is out of range is noted (grids.h).
 */
#ifndef TSSA_DEVICE_GRIDS_SCATTER_H
#define TSSA_DEVICE_GRIDS_SCATTER_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_scatter_find(const struct ir_op *op);

#endif
