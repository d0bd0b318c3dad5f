/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device is a table of functions, and nobody outside of src/device/NAME knows more of it. A context of a
 * device is what its sessions share: memory, threads, and the library that the device may have, which is
 * opened when a kernel first needs it.
 */
#ifndef TSSA_DEVICE_DEVICE_H
#define TSSA_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/kernel.h"

struct device {
    const char *name; /* as in tssa_session_options */
    /* NULL for control flow, which the executor runs, and for opaque ops. */
    const struct kernel *(*find_kernel)(const struct ir_op *op);
    /* The plugin that computes some ops faster, what it is for, and which ops ask it. */
    const char *library_plugin, *library_missed;
    bool (*asks_library)(const struct ir_op *op);
    bool (*has_library)(void);
    void (*close)(struct device_context *context);
};

/* Shared by all threads and immutable but for what the lock guards. */
struct device_context {
    const struct device *device;
    const tssa_allocator *allocator;
    const struct team *team; /* NULL: one thread */
    pthread_mutex_t lock;    /* held while the library is opened */
    _Atomic(void *) library; /* the device's own; NULL until a kernel needs it */
};

/* The device of this name, NULL: the default one. NULL when there is none. */
const struct device *device_find(const char *name);

/* What is given outlives the context, which may not be moved. */
void device_context_open(struct device_context *context, const struct device *device,
                         const tssa_allocator *allocator, const struct team *team);
/* When nothing made in it is left. */
void device_context_close(struct device_context *context);

#endif
