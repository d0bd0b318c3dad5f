/* SPDX-License-Identifier: Apache-2.0 */
/* Expand and ConstantOfShape, which are no grids where their shape is told by elements. */
#ifndef TSSA_DEVICE_GRIDS_SPREAD_H
#define TSSA_DEVICE_GRIDS_SPREAD_H

#include "device/kernel.h"

/* NULL: it is no such op, or of elements that texts do not move. */
const struct kernel *grids_spread_find(const struct ir_op *op);

#endif
