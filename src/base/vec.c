/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of the vectors of vec.h. */
#include "base/vec.h"

#include <string.h>

bool vec_grow_(const tssa_allocator *allocator, void **data, size_t count, size_t *capacity,
               size_t extra, size_t element_size)
{
    size_t needed, bytes;
    if (!size_add(count, extra, &needed))
        return false;
    /* Half as much again: amortised, and old blocks can be used for new ones. */
    size_t wanted = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    if (wanted < needed)
        wanted = needed;
    if (!size_mul(wanted, element_size, &bytes))
        return false;
    void *grown = allocator_alloc(allocator, bytes);
    if (!grown)
        return false;
    /* *data is a pointer to some element type, so it is read and written as bytes. */
    void *old;
    memcpy(&old, data, sizeof old);
    if (count)
        memcpy(grown, old, count * element_size);
    allocator_free(allocator, old);
    memcpy(data, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
