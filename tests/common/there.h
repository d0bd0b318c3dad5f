/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in memory of a device, as a caller has them, beside the host's that they are copies of.
 * The test fails where something of it does. */
#ifndef TSSA_TESTS_COMMON_THERE_H
#define TSSA_TESTS_COMMON_THERE_H

#include <stdbool.h>

#include "device/device.h"
#include "tssa.h"

struct there {
    struct device_stream *stream;
    size_t n, offset;
    tssa_value **values; /* NULL: no tensor of numbers */
    void **memory;       /* what was allocated, where `offset` bytes are nobody's */
    size_t *sizes;       /* of the tensors */
};

/* Of the values' types and shapes, `offset` bytes behind where memory begins. What is there is what
 * the device gives. */
void there_open(struct there *t, tssa_context *context, struct device_context *device,
                tssa_value *const *values, size_t n, size_t offset);
void there_close(struct there *t);
/* From the values' elements, or to them; waits. */
void there_copy(const struct there *t, tssa_value *const *values, enum device_copy kind);
/* Makes every byte this one; waits. */
void there_fill(const struct there *t, unsigned char byte);
/* Is every byte this one? */
bool there_is_filled(const struct there *t, unsigned char byte);
/* Has it the values' elements? */
bool there_is(const struct there *t, tssa_value *const *values);
/* The addresses. */
void *there_memory(const struct there *t, size_t index);

#endif
