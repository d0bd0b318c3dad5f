/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and memory of each device in the table: NAME_stream_open to NAME_read_scalar, in the folder's memory.c. What
 * they do is said in device.h.
 */
#ifndef TSSA_DEVICE_MEMORY_H
#define TSSA_DEVICE_MEMORY_H

#include "device/device.h"

#define DEVICE(name)                                                                               \
    tssa_status *name##_stream_open(struct device_context *context,                                \
                                    struct device_stream **stream);                                \
    void name##_stream_close(struct device_stream *stream);                                        \
    tssa_status *name##_stream_wait(struct device_stream *stream);                                 \
    tssa_status *name##_event_record(struct device_stream *stream, struct device_event **event);   \
    tssa_status *name##_event_await(struct device_stream *stream, struct device_event *event);     \
    void name##_event_free(struct device_stream *recorded, struct device_event *event);            \
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

/* The same as members of the device's table. */
#define DEVICE_MEMORY(name)                                                                        \
    .stream_open = name##_stream_open, .stream_close = name##_stream_close,                        \
    .stream_wait = name##_stream_wait, .event_record = name##_event_record,                        \
    .event_await = name##_event_await, .event_free = name##_event_free,                            \
    .allocate = name##_allocate, .release = name##_release, .copy = name##_copy,                   \
    .fill = name##_fill, .read_scalar = name##_read_scalar

#endif
