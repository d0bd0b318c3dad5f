/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include <string.h>

#include "device/cpu/kernels.h"

static const struct device *const devices[] = {&cpu_device};

const struct device *device_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof devices / sizeof *devices; i++)
        if (strcmp(devices[i]->name, name) == 0)
            return devices[i];
    return name ? NULL : devices[0];
}

void device_context_open(struct device_context *context, const struct device *device,
                         const tssa_allocator *allocator, const struct team *team)
{
    *context = (struct device_context){.device = device, .allocator = allocator, .team = team};
    pthread_mutex_init(&context->lock, NULL);
}

void device_context_close(struct device_context *context)
{
    context->device->close(context);
    pthread_mutex_destroy(&context->lock);
}
