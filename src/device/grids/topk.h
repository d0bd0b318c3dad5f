/* SPDX-License-Identifier: Apache-2.0 */
/* TopK of FLOAT, DOUBLE and integers. */
#ifndef TSSA_DEVICE_GRIDS_TOPK_H
#define TSSA_DEVICE_GRIDS_TOPK_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_topk_find(const struct ir_op *op);

/* Does a block choose the k elements of a line of n first, and sorts these? */
bool grids_topk_chooses(int64_t n, int64_t k);

#endif
