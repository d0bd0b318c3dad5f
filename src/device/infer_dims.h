/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dims of a result by the shapes of the operands, and by the integers among them, the host's and,
 * where there are few, the device's, which are read: what inference (ir/infer.h) says of the op
 * when these are constants. It copies the op, and so is for what the plan does not tell.
 */
#ifndef TSSA_DEVICE_INFER_DIMS_H
#define TSSA_DEVICE_INFER_DIMS_H

#include "device/kernel.h"

/* Of a result of known rank, fills those of dims[rank] which follow, and are not there yet (has).
 */
tssa_status *device_infer_dims(const struct kernel_args *args, uint32_t index, bool *has,
                               int64_t *dims);

#endif
