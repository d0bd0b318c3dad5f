/* SPDX-License-Identifier: Apache-2.0 */
#include "device/devices.h"

#include <string.h>

static const struct device *const devices[] = {
#define DEVICE(name) &name##_device,
#include "device/devices.def"
#undef DEVICE
};

const struct device *device_at(size_t index)
{
    return index < sizeof devices / sizeof *devices ? devices[index] : NULL;
}

const struct device *device_find(const char *name)
{
    const struct device *device = devices[0];
    for (size_t i = 0; name && (device = device_at(i)) && strcmp(device->name, name) != 0;)
        i++;
    return device;
}

void device_context_open(struct device_context *context, const struct device *device,
                         const tssa_allocator *allocator, const struct team *team)
{
    *context = (struct device_context){
        .device = device, .data_share = 1, .allocator = allocator, .team = team};
    pthread_mutex_init(&context->lock, NULL);
}

tssa_status *device_context_connect(struct device_context *context)
{
    const struct device *device = context->device;
    return device->connect ? device->connect(context) : NULL;
}

void device_context_close(struct device_context *context)
{
    context->device->close(context);
    pthread_mutex_destroy(&context->lock);
}
