/* SPDX-License-Identifier: Apache-2.0 */
/* Resize, with the CPU's bits: nearest elements of any type, linear and cubic of FLOAT and DOUBLE.
 */
#ifndef TSSA_DEVICE_GRIDS_RESIZE_H
#define TSSA_DEVICE_GRIDS_RESIZE_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_resize_find(const struct ir_op *op);

#endif
