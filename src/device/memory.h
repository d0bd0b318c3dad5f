/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of each device in the table: NAME_allocate to NAME_read_scalar, in the folder's memory.c;
 * and streams for those that have done what is asked of them when the call returns. What they do is
 * said in device.h.
 */
#ifndef TSSA_DEVICE_MEMORY_H
#define TSSA_DEVICE_MEMORY_H

#include "device/device.h"

tssa_status *device_ready_stream_open(struct device_context *context,
                                      struct device_stream **stream);
void device_ready_stream_close(struct device_stream *stream);
tssa_status *device_ready_stream_wait(struct device_stream *stream);
tssa_status *device_ready_event_record(struct device_stream *stream, struct device_event **event);
tssa_status *device_ready_event_await(struct device_stream *stream, struct device_event *event);
void device_ready_event_free(struct device_stream *recorded, struct device_event *event);

#define DEVICE(name)                                                                               \
    void *name##_allocate(struct device_stream *stream, size_t size);                              \
    void name##_release(struct device_stream *stream, void *memory, size_t size);                  \
    tssa_status *name##_copy(struct device_stream *stream, enum device_copy kind,                  \
                             struct device_place to, struct device_place from, size_t size);       \
    tssa_status *name##_fill(struct device_stream *stream, struct device_place to,                 \
                             unsigned char byte, size_t size);                                     \
    tssa_status *name##_read_scalar(struct device_stream *stream, struct device_place from,        \
                                    tssa_dtype dtype, int64_t *value);
#include "device/devices.def"
#undef DEVICE

/* The same as members of a device's table. */
#define DEVICE_READY_STREAMS                                                                       \
    .stream_open = device_ready_stream_open, .stream_close = device_ready_stream_close,            \
    .stream_wait = device_ready_stream_wait, .event_record = device_ready_event_record,            \
    .event_await = device_ready_event_await, .event_free = device_ready_event_free
#define DEVICE_MEMORY(name)                                                                        \
    .allocate = name##_allocate, .release = name##_release, .copy = name##_copy,                   \
    .fill = name##_fill, .read_scalar = name##_read_scalar

#endif
