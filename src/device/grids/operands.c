/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/operands.h"

#include <string.h>

#include "device/device.h"

static bool is_on_host(const struct kernel_args *args, uint32_t index)
{
    return args->on_host && args->on_host[index];
}

static tssa_status *upload(struct kernel_args *args, const struct tensor *tensor,
                           struct buffer **buffer)
{
    const struct device *device = args->env->stream->context->device;
    const size_t size = tensor_bytes(tensor);
    TRY(kernel_scratch(args, size ? size : 1, buffer));
    return device->copy(args->env->stream, DEVICE_COPY_IN, grids_buffer(*buffer),
                        grids_place(tensor), size);
}

tssa_status *grids_operand(struct kernel_args *args, uint32_t index, struct buffer **buffer,
                           struct device_place *place)
{
    const struct tensor *tensor = &args->inputs[index]->tensor;
    *place = grids_place(tensor);
    if (!is_on_host(args, index))
        return NULL;
    if (args->env->stream->records)
        return args->env->stream->context->device->record_bytes(args->env->stream, tensor->data,
                                                                tensor_bytes(tensor), place);
    if (!*buffer)
        TRY(upload(args, tensor, buffer));
    *place = grids_buffer(*buffer);
    return NULL;
}

tssa_status *grids_copy(const struct kernel_args *args, uint32_t index, const struct tensor *to)
{
    const struct tensor *from = &args->inputs[index]->tensor;
    return args->env->stream->context->device->copy(
        args->env->stream, is_on_host(args, index) ? DEVICE_COPY_IN : DEVICE_COPY_WITHIN,
        grids_place(to), grids_place(from), tensor_bytes(from));
}

tssa_status *grids_read(const struct kernel_args *args, uint32_t index, size_t offset, void *to,
                        size_t size)
{
    const struct device *device = args->env->stream->context->device;
    const struct tensor *tensor = &args->inputs[index]->tensor;
    struct device_place from = grids_place(tensor);
    if (size && is_on_host(args, index))
        memcpy(to, (const char *)tensor->data + offset, size);
    if (!size || is_on_host(args, index))
        return NULL;
    from.offset += offset;
    args->env->stream->counts.waits++;
    return device->copy(args->env->stream, DEVICE_COPY_OUT, (struct device_place){to, 0}, from,
                        size);
}

tssa_status *grids_ints(const struct kernel_args *args, uint32_t index, int64_t *values,
                        size_t capacity, size_t *count)
{
    const struct tensor *tensor;
    TRY(kernel_tensor(args, index, &tensor));
    const size_t n = tensor_count(tensor), size = tssa_dtype_size(tensor->dtype);
    if (is_on_host(args, index) || !dtype_is_integer(tensor->dtype) || n > capacity)
        return kernel_ints(args, index, values, capacity, count);
    TRY(grids_read(args, index, 0, values, n * size));
    for (size_t i = n; i-- > 0;) { /* from the last one on: they become longer where they are */
        unsigned char element[sizeof *values];
        memcpy(element, (const char *)values + i * size, size);
        values[i] = dtype_load_int64(tensor->dtype, element);
    }
    *count = n;
    return NULL;
}

tssa_status *grids_int(const struct kernel_args *args, uint32_t index, int64_t *value)
{
    const struct tensor *tensor;
    size_t count;
    TRY(kernel_tensor(args, index, &tensor));
    if (is_on_host(args, index) || !dtype_is_integer(tensor->dtype) || tensor_count(tensor) != 1)
        return kernel_scalar_int(args, index, value);
    return grids_ints(args, index, value, 1, &count);
}

tssa_status *grids_float(const struct kernel_args *args, uint32_t index, float *value)
{
    const struct tensor *tensor;
    double number = 0;
    TRY(kernel_tensor(args, index, &tensor));
    if (!is_on_host(args, index) && tensor->dtype == TSSA_FLOAT && tensor_count(tensor) == 1)
        return grids_read(args, index, 0, value, sizeof *value);
    TRY(kernel_scalar_double(args, index, &number));
    *value = (float)number;
    return NULL;
}
