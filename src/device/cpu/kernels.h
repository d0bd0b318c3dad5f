/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU kernel of each row of the op table. */
#ifndef TSSA_DEVICE_CPU_KERNELS_H
#define TSSA_DEVICE_CPU_KERNELS_H

#include "device/kernel.h"

/* NULL for control flow, which the executor runs, and for opaque ops. */
const struct cpu_kernel *cpu_kernel_find(const struct ir_op *op);
/* Does this op, in float32, ask device/cpu/provider.h to compute it? */
bool cpu_kernel_asks_provider(const struct ir_op *op);

#endif
