/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle of the emulated device is. */
#ifndef TSSA_DEVICE_EMULATED_MEMORY_H
#define TSSA_DEVICE_EMULATED_MEMORY_H

#include "device/place.h"

/* The bytes at a place, valid as long as its memory; NULL: some are outside of it. */
unsigned char *emulated_bytes(struct device_place place, size_t size);

#endif
