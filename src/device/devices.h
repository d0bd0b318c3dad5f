/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of devices: for device.c, and for the folders that define them. */
#ifndef TSSA_DEVICE_DEVICES_H
#define TSSA_DEVICE_DEVICES_H

#include "device/device.h"

#define DEVICE(name) extern const struct device name##_device;
#include "device/devices.def"
#undef DEVICE

#endif
