/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceMax and ReduceMin of all elements, of which no grid is made. */
#ifndef TSSA_DEVICE_GRIDS_EXTREME_H
#define TSSA_DEVICE_GRIDS_EXTREME_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_extreme_find(const struct ir_op *op);

#endif
