/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and streams of the CPU: memory is the context's allocator's, and what is asked of a stream is done
 * when the call returns, so that there is nothing to wait for.
 */
#ifndef TSSA_DEVICE_CPU_MEMORY_H
#define TSSA_DEVICE_CPU_MEMORY_H

#include "device/device.h"

tssa_status *cpu_stream_open(struct device_context *context, struct device_stream **stream);
void cpu_stream_close(struct device_stream *stream);
tssa_status *cpu_stream_wait(struct device_stream *stream);
tssa_status *cpu_event_record(struct device_stream *stream, struct device_event **event);
tssa_status *cpu_event_await(struct device_stream *stream, struct device_event *event);
void cpu_event_free(struct device_stream *recorded, struct device_event *event);

void *cpu_allocate(struct device_stream *stream, size_t size);
void cpu_release(struct device_stream *stream, void *memory, size_t size);
tssa_status *cpu_copy(struct device_stream *stream, enum device_copy kind, struct device_place to,
                      struct device_place from, size_t size);
tssa_status *cpu_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                      size_t size);
tssa_status *cpu_read_scalar(struct device_stream *stream, struct device_place from,
                             tssa_dtype dtype, int64_t *value);

#endif
