/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMul and Gemm of FLOAT and DOUBLE. The device's library is asked first; what it declines, or
 * where there is none, is computed by a kernel of kernels/grids, which is a library, too, for
 * devices that have no other.
 */
#ifndef TSSA_DEVICE_GRIDS_PRODUCT_H
#define TSSA_DEVICE_GRIDS_PRODUCT_H

#include "device/device.h"
#include "device/library.h"

extern const struct device_library grids_library;

/* NULL: it is no such product. */
const struct kernel *grids_product_find(const struct ir_op *op);

#endif
