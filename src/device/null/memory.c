/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the device that computes nothing: a handle that remembers a size, and holds nothing:
 * what is copied from it is zeros, and one integer or bool that is read by itself is 1, so that
 * what depends on data takes the then-branch, and loops run until their trip counts. Places are
 * checked against the sizes of handles: outside of them is a TSSA_RUNTIME error. There is 1 TiB of
 * it.
 */
#include "device/memory.h"

#include <string.h>

#include "device/count.h"

#define MOST_BYTES ((size_t)1 << 40)

struct null_memory {
    size_t size;
};

void *null_allocate(struct device_stream *stream, size_t size)
{
    struct null_memory *memory =
        size <= MOST_BYTES ? allocator_alloc(stream->context->allocator, sizeof *memory) : NULL;
    if (!memory)
        return NULL;
    memory->size = size;
    stream->counts.allocations++;
    return memory;
}

void null_release(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    allocator_free(stream->context->allocator, memory);
}

static tssa_status *check(struct device_place place, size_t size)
{
    const struct null_memory *memory = place.memory;
    if (place.offset <= memory->size && size <= memory->size - place.offset)
        return NULL;
    return ERROR(TSSA_RUNTIME, "%zu bytes at %zu of memory of %zu bytes", size, place.offset,
                 memory->size);
}

tssa_status *null_copy(struct device_stream *stream, enum device_copy kind, struct device_place to,
                       struct device_place from, size_t size)
{
    if (kind != DEVICE_COPY_OUT)
        TRY(check(to, size));
    if (kind != DEVICE_COPY_IN)
        TRY(check(from, size));
    count_copy(stream, kind, size);
    if (kind == DEVICE_COPY_OUT && size)
        memset((char *)to.memory + to.offset, 0, size);
    return NULL;
}

tssa_status *null_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                       size_t size)
{
    (void)byte;
    TRY(check(to, size));
    count_fill(stream, size);
    return NULL;
}

tssa_status *null_read_scalar(struct device_stream *stream, struct device_place from,
                              tssa_dtype dtype, int64_t *value)
{
    TRY(check(from, tssa_dtype_size(dtype)));
    count_copy(stream, DEVICE_COPY_OUT, tssa_dtype_size(dtype));
    *value = 1;
    return NULL;
}
