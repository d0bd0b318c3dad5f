/* SPDX-License-Identifier: Apache-2.0 */
/* TopK of FLOAT, DOUBLE and integers. */
#ifndef TSSA_DEVICE_GRIDS_TOPK_H
#define TSSA_DEVICE_GRIDS_TOPK_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_topk_find(const struct ir_op *op);

/* Of some lines of n elements: does a block choose a line's k first, and sorts these? Else all are
 * compared with all others. */
bool grids_topk_chooses(int64_t lines, int64_t n, int64_t k);

#endif
