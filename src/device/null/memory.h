/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and streams of the device that computes nothing. Memory is a handle that remembers a size, and holds
 * nothing: what is copied from it is zeros, and one integer or bool that is read by itself is 1, so that what
 * depends on data takes the then-branch, and loops run until their trip counts. Places are checked against
 * the sizes of handles: outside of them is a TSSA_RUNTIME error. There is 1 TiB of it.
 */
#ifndef TSSA_DEVICE_NULL_MEMORY_H
#define TSSA_DEVICE_NULL_MEMORY_H

#include "device/device.h"

tssa_status *null_stream_open(struct device_context *context, struct device_stream **stream);
void null_stream_close(struct device_stream *stream);
tssa_status *null_stream_wait(struct device_stream *stream);
tssa_status *null_event_record(struct device_stream *stream, struct device_event **event);
tssa_status *null_event_await(struct device_stream *stream, struct device_event *event);
void null_event_free(struct device_stream *recorded, struct device_event *event);

void *null_allocate(struct device_stream *stream, size_t size);
void null_release(struct device_stream *stream, void *memory, size_t size);
tssa_status *null_copy(struct device_stream *stream, enum device_copy kind, struct device_place to,
                       struct device_place from, size_t size);
tssa_status *null_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                       size_t size);
tssa_status *null_read_scalar(struct device_stream *stream, struct device_place from,
                              tssa_dtype dtype, int64_t *value);

#endif
