/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the emulated device: a handle, and bytes that lie elsewhere, so that a handle which is
 * taken for a pointer shows. What nobody wrote is 0xff. Places are checked against the sizes of
 * handles: outside of them is a TSSA_RUNTIME error.
 */
#include "device/emulated/memory.h"

#include <string.h>

#include "device/count.h"
#include "device/memory.h"

struct emulated_memory {
    unsigned char *bytes;
    size_t size;
};

void *emulated_allocate(struct device_stream *stream, size_t size)
{
    const tssa_allocator *a = stream->context->allocator;
    struct emulated_memory *memory = allocator_alloc(a, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct emulated_memory){allocator_alloc_aligned(a, size, TENSOR_ALIGNMENT), size};
    if (!memory->bytes) {
        allocator_free(a, memory);
        return NULL;
    }
    memset(memory->bytes, 0xff, size);
    stream->counts.allocations++;
    return memory;
}

void emulated_release(struct device_stream *stream, void *handle, size_t size)
{
    struct emulated_memory *memory = handle;
    (void)size;
    if (memory)
        allocator_free(stream->context->allocator, memory->bytes);
    allocator_free(stream->context->allocator, memory);
}

unsigned char *emulated_bytes(struct device_place place, size_t size)
{
    const struct emulated_memory *memory = place.memory;
    const bool inside = place.offset <= memory->size && size <= memory->size - place.offset;
    return inside ? memory->bytes + place.offset : NULL;
}

static tssa_status *find(struct device_place place, bool on_host, size_t size,
                         unsigned char **bytes)
{
    *bytes = on_host ? (unsigned char *)place.memory + place.offset : emulated_bytes(place, size);
    return *bytes ? NULL
                  : ERROR(TSSA_RUNTIME, "%zu bytes at %zu are not all in the device's memory", size,
                          place.offset);
}

tssa_status *emulated_copy(struct device_stream *stream, enum device_copy kind,
                           struct device_place to, struct device_place from, size_t size)
{
    unsigned char *target, *source;
    count_copy(stream, kind, size);
    if (size == 0)
        return NULL;
    TRY(find(to, kind == DEVICE_COPY_OUT, size, &target));
    TRY(find(from, kind == DEVICE_COPY_IN, size, &source));
    memcpy(target, source, size);
    return NULL;
}

tssa_status *emulated_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                           size_t size)
{
    unsigned char *target;
    TRY(find(to, false, size, &target));
    count_fill(stream, size);
    memset(target, byte, size);
    return NULL;
}

tssa_status *emulated_read_scalar(struct device_stream *stream, struct device_place from,
                                  tssa_dtype dtype, int64_t *value)
{
    unsigned char *source;
    TRY(find(from, false, tssa_dtype_size(dtype), &source));
    count_copy(stream, DEVICE_COPY_OUT, tssa_dtype_size(dtype));
    *value = dtype_load_int64(dtype, source);
    return NULL;
}
