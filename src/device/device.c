/* SPDX-License-Identifier: Apache-2.0 */
#include "device/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 4 /* of the number of a device */

static const struct device *const devices[] = {
#define DEVICE(name) &name##_device,
#include "device/devices.def"
#undef DEVICE
};

const struct device *device_at(size_t index)
{
    return index < sizeof devices / sizeof *devices ? devices[index] : NULL;
}

/* The digits of NAME:N; NULL: there is no such number. */
static const char *number_of(const char *name)
{
    const char *colon = strchr(name, ':'), *digits = colon ? colon + 1 : "";
    const size_t length = strlen(digits);
    return length > 0 && length <= MOST_DIGITS && strspn(digits, "0123456789") == length ? digits
                                                                                         : NULL;
}

static bool is_name_of(const struct device *device, const char *name)
{
    const size_t length = strlen(device->name);
    return strcmp(device->name, name) == 0 ||
           (device->is_numbered && strncmp(device->name, name, length) == 0 &&
            name[length] == ':' && number_of(name));
}

const struct device *device_find(const char *name)
{
    const struct device *device = devices[0];
    for (size_t i = 0; name && (device = device_at(i)) && !is_name_of(device, name);)
        i++;
    return device;
}

uint32_t device_number(const char *name)
{
    const char *digits = name ? number_of(name) : NULL;
    return digits ? (uint32_t)strtoul(digits, NULL, 10) : 0;
}

void device_print_name(const struct device *device, uint32_t number, char name[DEVICE_NAME_SIZE])
{
    if (number)
        snprintf(name, DEVICE_NAME_SIZE, "%s:%" PRIu32, device->name, number);
    else
        snprintf(name, DEVICE_NAME_SIZE, "%s", device->name);
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

void *device_context_once(struct device_context *context, _Atomic(void *) *made,
                          void *(*make)(struct device_context *context))
{
    void *there = atomic_load_explicit(made, memory_order_acquire);
    if (there)
        return there;
    pthread_mutex_lock(&context->lock);
    there = atomic_load_explicit(made, memory_order_relaxed);
    if (!there) {
        there = make(context);
        atomic_store_explicit(made, there, memory_order_release);
    }
    pthread_mutex_unlock(&context->lock);
    return there;
}
