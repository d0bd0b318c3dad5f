/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a fuse op that is a grid: one launch. */
#ifndef TSSA_DEVICE_GRIDS_FUSED_H
#define TSSA_DEVICE_GRIDS_FUSED_H

#include "device/grids/launcher.h"

extern const struct kernel grids_fused;

/* Why the fuse op cannot be launched; NULL: it can. */
const char *grids_fused_refuses(const struct launcher *launcher, const struct ir_op *fuse);

/*
 * For kernels of fuse ops of which the first op's result is made before the launch: what that is
 * prepared, run, of results that are made, and released by. `args` has that result as one input
 * more than the op has operands, without counting it.
 */
tssa_status *grids_fused_prepare_behind(const struct ir_op *op, const struct kernel_setup *setup,
                                        const void **state);
tssa_status *grids_fused_launch(struct kernel_args *args, const void *state);
void grids_fused_release(const void *state);

#endif
