/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool, GlobalMaxPool and GlobalAveragePool, of up to three axes, with the CPU's
 * bits. */
#ifndef TSSA_DEVICE_GRIDS_POOL_H
#define TSSA_DEVICE_GRIDS_POOL_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_pool_find(const struct ir_op *op);

#endif
