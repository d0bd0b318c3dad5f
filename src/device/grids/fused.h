/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a fuse op that is a grid: one launch. */
#ifndef TSSA_DEVICE_GRIDS_FUSED_H
#define TSSA_DEVICE_GRIDS_FUSED_H

#include "device/grids/launcher.h"

extern const struct kernel grids_fused;

/* Why the fuse op cannot be launched; NULL: it can. */
const char *grids_fused_refuses(const struct launcher *launcher, const struct ir_op *fuse);

#endif
