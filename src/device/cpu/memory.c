/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and streams of the CPU: memory is the context's allocator's, and what is asked of a stream is done
 * when the call returns, so that there is nothing to wait for.
 */
#include "device/memory.h"

#include <string.h>

/* ---- Streams -------------------------------------------------------------------------------------- */

tssa_status *cpu_stream_open(struct device_context *context, struct device_stream **stream)
{
    *stream = allocator_alloc(context->allocator, sizeof **stream);
    TRY_ALLOC(*stream);
    **stream = (struct device_stream){.context = context};
    return NULL;
}

void cpu_stream_close(struct device_stream *stream)
{
    if (stream)
        allocator_free(stream->context->allocator, stream);
}

tssa_status *cpu_stream_wait(struct device_stream *stream)
{
    (void)stream;
    return NULL;
}

/* An event has come when it is recorded, so there is nothing to remember of it. */
tssa_status *cpu_event_record(struct device_stream *stream, struct device_event **event)
{
    *event = (struct device_event *)stream;
    return NULL;
}

tssa_status *cpu_event_await(struct device_stream *stream, struct device_event *event)
{
    (void)stream;
    (void)event;
    return NULL;
}

void cpu_event_free(struct device_stream *recorded, struct device_event *event)
{
    (void)recorded;
    (void)event;
}

/* ---- Memory --------------------------------------------------------------------------------------- */

static void *pointer(struct device_place place)
{
    return (char *)place.memory + place.offset;
}

void *cpu_allocate(struct device_stream *stream, size_t size)
{
    return allocator_alloc_aligned(stream->context->allocator, size, TENSOR_ALIGNMENT);
}

void cpu_release(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    allocator_free(stream->context->allocator, memory);
}

tssa_status *cpu_copy(struct device_stream *stream, enum device_copy kind, struct device_place to,
                      struct device_place from, size_t size)
{
    (void)stream;
    (void)kind;
    if (size)
        memcpy(pointer(to), pointer(from), size);
    return NULL;
}

tssa_status *cpu_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                      size_t size)
{
    (void)stream;
    if (size)
        memset(pointer(to), byte, size);
    return NULL;
}

tssa_status *cpu_read_scalar(struct device_stream *stream, struct device_place from,
                             tssa_dtype dtype, int64_t *value)
{
    (void)stream;
    *value = dtype_load_int64(dtype, pointer(from));
    return NULL;
}
