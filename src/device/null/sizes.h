/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large results are on the device that computes nothing. First by what the plan knows; then by
 * the sizes of the operands and the integers that a launch is given, as a kernel would tell them.
 * What only data could tell is a share (struct device_context) of its bound, or, where it has none,
 * of the elements of the largest operand.
 */
#ifndef TSSA_DEVICE_NULL_SIZES_H
#define TSSA_DEVICE_NULL_SIZES_H

#include "device/device.h"

/* Of result `index`, a tensor of known rank. */
tssa_status *null_dims(const struct kernel_args *args, uint32_t index, int64_t *dims);
/* A size within the op, by what the plan knows or a guess; false: it has none. */
bool null_dim(const struct kernel_args *args, const struct dim *dim, int64_t *value);

#endif
