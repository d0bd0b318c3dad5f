/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated device, for plans that tests make: what is computed on it, through copies, must be
 * the CPU's to the bit, also where it lacks kernels.
 */
#ifndef TSSA_TESTS_SHADOW_DEVICE_H
#define TSSA_TESTS_SHADOW_DEVICE_H

#include "device/device.h"

/* `lacks`: it has no kernel for a third of all ops, which run on the host. Valid until the process
 * ends. */
const struct device *shadow_device(bool lacks);

#endif
