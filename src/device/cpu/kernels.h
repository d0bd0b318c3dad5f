/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU: the kernel of each row of the op table (kernels/cpu). */
#ifndef TSSA_DEVICE_CPU_KERNELS_H
#define TSSA_DEVICE_CPU_KERNELS_H

#include "device/device.h"

extern const struct device cpu_device;

#endif
