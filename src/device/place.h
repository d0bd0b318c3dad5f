/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_DEVICE_PLACE_H
#define TSSA_DEVICE_PLACE_H

#include <stddef.h>

/* `offset` bytes into what a device's `allocate` gave, or in memory of the host `memory` plus
 * `offset`. */
struct device_place {
    void *memory;
    size_t offset;
};

/* The address of one in memory of the host that is there. */
static inline void *device_place_at(struct device_place place)
{
    return (char *)place.memory + place.offset;
}

#endif
