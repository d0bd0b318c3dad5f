/* SPDX-License-Identifier: Apache-2.0 */
/* Joining tensors, for Concat and for the sequence operators. */
#ifndef TSSA_KERNELS_CPU_MOVEMENT_CONCAT_H
#define TSSA_KERNELS_CPU_MOVEMENT_CONCAT_H

#include "device/kernel.h"

/* Output 0 = the tensors one after the other along `axis` (>= 0), or along a new axis there. */
tssa_status *concat_tensors(struct kernel_args *args, const struct tensor *const *tensors,
                            size_t count, int64_t axis, bool new_axis);

#endif
