/* SPDX-License-Identifier: Apache-2.0 */
/* Where a launch finds what it is given. */
#ifndef TSSA_DEVICE_GRIDS_OPERANDS_H
#define TSSA_DEVICE_GRIDS_OPERANDS_H

#include "device/kernel.h"
#include "device/place.h"

static inline struct device_place grids_place(const struct tensor *tensor)
{
    return (struct device_place){tensor->data, tensor->offset};
}

static inline struct device_place grids_buffer(const struct buffer *buffer)
{
    return (struct device_place){buffer->data, buffer->offset};
}

/* An operand's elements in the device's memory. What the host has is copied there first, once, into
 * *buffer, NULL before, which is to be released after the launch; NULL: they were there. */
tssa_status *grids_operand(struct kernel_args *args, uint32_t index, struct buffer **buffer,
                           struct device_place *place);

/* Copies an operand into a result of its shape. */
tssa_status *grids_copy(const struct kernel_args *args, uint32_t index, const struct tensor *to);

/* `size` bytes of an operand, from one on, which are there when it returns. */
tssa_status *grids_read(const struct kernel_args *args, uint32_t index, size_t offset, void *to,
                        size_t size);
/* As kernel_ints, wherever the elements are. */
tssa_status *grids_ints(const struct kernel_args *args, uint32_t index, int64_t *values,
                        size_t capacity, size_t *count);
/* As kernel_scalar_int. */
tssa_status *grids_int(const struct kernel_args *args, uint32_t index, int64_t *value);
/* As kernel_scalar_double, of a float. */
tssa_status *grids_float(const struct kernel_args *args, uint32_t index, float *value);

#endif
