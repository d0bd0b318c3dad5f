/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the CPU: the context's allocator's. */
#include "device/memory.h"

#include <string.h>

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
        memcpy(device_place_at(to), device_place_at(from), size);
    return NULL;
}

tssa_status *cpu_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                      size_t size)
{
    (void)stream;
    if (size)
        memset(device_place_at(to), byte, size);
    return NULL;
}

tssa_status *cpu_read_scalar(struct device_stream *stream, struct device_place from,
                             tssa_dtype dtype, int64_t *value)
{
    (void)stream;
    *value = dtype_load_int64(dtype, device_place_at(from));
    return NULL;
}
