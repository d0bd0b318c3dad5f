/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that keep elements: only when they have run it is known how many elements results have.
 */
#ifndef TSSA_DEVICE_CPU_KEPT_H
#define TSSA_DEVICE_CPU_KEPT_H

#include "device/cpu/walk.h"

/* Has it results of which only the kernel knows how much there is? */
bool cpu_keeps(const struct device_part *part);
/* Of a result, the axis along which elements or records are kept. */
int cpu_kept_axis(const struct device_part *part, uint32_t arg);

/* Of so many elements. Results have room for all, and get their sizes; those that are copies of
 * rows are made. */
tssa_status *cpu_run_keeping(struct kernel_args *args, const struct device_part *part,
                             const struct walk *walk, int64_t count);

#endif
