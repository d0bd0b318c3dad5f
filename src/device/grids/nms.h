/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression. */
#ifndef TSSA_DEVICE_GRIDS_NMS_H
#define TSSA_DEVICE_GRIDS_NMS_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_nms_find(const struct ir_op *op);
/* The same of a fuse op that reads what it keeps (ir_fuse_boxes). */
const struct kernel *grids_nms_find_read(const struct ir_op *op);

#endif
