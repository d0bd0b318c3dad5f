/* SPDX-License-Identifier: Apache-2.0 */
/* Unique of all types but STRING, of elements or slices: sorted, then what differs is numbered. */
#ifndef TSSA_DEVICE_GRIDS_UNIQUE_H
#define TSSA_DEVICE_GRIDS_UNIQUE_H

#include "device/kernel.h"

/* NULL: it is no such op, or of elements that have no order. */
const struct kernel *grids_unique_find(const struct ir_op *op);

#endif
