/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/operands.h"

#include "device/device.h"

static tssa_status *upload(struct kernel_args *args, const struct tensor *tensor,
                           struct buffer **buffer)
{
    const struct device *device = args->env->stream->context->device;
    const size_t size = tensor_bytes(tensor);
    TRY(kernel_scratch(args, size ? size : 1, buffer));
    const struct device_place to = {(*buffer)->data, (*buffer)->offset};
    return device->copy(args->env->stream, DEVICE_COPY_IN, to, grids_place(tensor), size);
}

tssa_status *grids_operand(struct kernel_args *args, uint32_t index, struct buffer **buffer,
                           struct device_place *place)
{
    const struct tensor *tensor = &args->inputs[index]->tensor;
    *place = grids_place(tensor);
    if (!args->on_host || !args->on_host[index])
        return NULL;
    if (!*buffer)
        TRY(upload(args, tensor, buffer));
    *place = (struct device_place){(*buffer)->data, (*buffer)->offset};
    return NULL;
}
