/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ops on lists that are one op (ir_fuse_lists): NonZeros, of which all that are found are
 * counted in one launch and numbered in another one, before the host waits once for how many they
 * are; TopKs, which are one launch, and two more where some are long, and little of them is more
 * than -inf.
 */
#ifndef TSSA_DEVICE_GRIDS_LISTS_H
#define TSSA_DEVICE_GRIDS_LISTS_H

#include "device/kernel.h"

/* NULL: it is no fuse op of such ops alone. */
const struct kernel *grids_lists_find(const struct ir_op *op);
/* A NonZero by itself, of such elements, or a TopK of a long list of which few are wanted; NULL: it
 * is none. */
const struct kernel *grids_lists_find_one(const struct ir_op *op);

#endif
