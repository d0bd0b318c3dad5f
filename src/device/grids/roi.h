/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign of FLOAT and DOUBLE, with the CPU's bits. */
#ifndef TSSA_DEVICE_GRIDS_ROI_H
#define TSSA_DEVICE_GRIDS_ROI_H

#include "device/kernel.h"

/* NULL: it is no such op. */
const struct kernel *grids_roi_find(const struct ir_op *op);

#endif
