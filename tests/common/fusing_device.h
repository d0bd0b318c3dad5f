/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of the tests with the CPU's memory and kernels, and with kernels of fuse ops: they call
 * those of the ops inside, one after the other. What it computes must be the CPU's to the bit. It
 * takes any op into a fuse op.
 */
#ifndef TSSA_TESTS_FUSING_DEVICE_H
#define TSSA_TESTS_FUSING_DEVICE_H

#include "device/device.h"

/* What it lends. */
extern const struct ir_fusion fusing_takes_all;

/* `refuses`: it has a kernel for every other fuse op alone, though it lends as before. Valid until
 * the process ends. */
const struct device *fusing_device(bool refuses);

#endif
