/* SPDX-License-Identifier: Apache-2.0 */
/* A handle is a buffer; what is released while commands use it, OpenCL keeps until they are done.
 */
#include "device/memory.h"

#include "device/count.h"
#include "device/opencl/opencl.h"

#define MOST_PATTERN 128 /* bytes of one, by the standard */

void *opencl_allocate(struct device_stream *stream, size_t size)
{
    const struct opencl *cl = opencl_of(stream->context);
    opencl_result result = 0;
    opencl_memory memory =
        cl->api.clCreateBuffer(cl->context, OPENCL_READ_WRITE, size ? size : 1, NULL, &result);
    stream->counts.allocations++;
    return result == 0 ? memory : NULL;
}

void opencl_release(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    if (memory)
        opencl_of(stream->context)->api.clReleaseMemObject(memory);
}

tssa_status *opencl_read(struct device_stream *stream, struct device_place from, void *to,
                         size_t size)
{
    return OPENCL(&opencl_of(stream->context)->api, clEnqueueReadBuffer, opencl_queue_of(stream),
                  from.memory, 1, from.offset, size, to, 0, NULL, NULL);
}

/* Few bytes go along as patterns, each as long as it is aligned: nobody waits for these. */
static tssa_status *write_few(struct device_stream *stream, struct device_place to,
                              const char *from, size_t size)
{
    for (size_t done = 0, part; done < size; done += part) {
        part = MOST_PATTERN;
        while (part > size - done || (to.offset + done) % part != 0)
            part /= 2;
        TRY(OPENCL(&opencl_of(stream->context)->api, clEnqueueFillBuffer, opencl_queue_of(stream),
                   to.memory, from + done, part, to.offset + done, part, 0, NULL, NULL));
    }
    return NULL;
}

static tssa_status *write_bytes(struct device_stream *stream, struct device_place to,
                                const char *from, size_t size)
{
    if (size <= MOST_PATTERN)
        return write_few(stream, to, from, size);
    return OPENCL(&opencl_of(stream->context)->api, clEnqueueWriteBuffer, opencl_queue_of(stream),
                  to.memory, 1, to.offset, size, from, 0, NULL, NULL);
}

tssa_status *opencl_copy(struct device_stream *stream, enum device_copy kind,
                         struct device_place to, struct device_place from, size_t size)
{
    count_copy(stream, kind, size);
    if (size == 0)
        return NULL;
    switch (kind) {
    case DEVICE_COPY_IN:
        return write_bytes(stream, to, (const char *)from.memory + from.offset, size);
    case DEVICE_COPY_OUT:
        TRY(opencl_read(stream, from, (char *)to.memory + to.offset, size));
        return grids_stream_failed((struct grids_stream *)stream, opencl_read);
    default:
        return OPENCL(&opencl_of(stream->context)->api, clEnqueueCopyBuffer,
                      opencl_queue_of(stream), from.memory, to.memory, from.offset, to.offset, size,
                      0, NULL, NULL);
    }
}

tssa_status *opencl_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                         size_t size)
{
    count_fill(stream, size);
    if (size == 0)
        return NULL;
    return OPENCL(&opencl_of(stream->context)->api, clEnqueueFillBuffer, opencl_queue_of(stream),
                  to.memory, &byte, 1, to.offset, size, 0, NULL, NULL);
}

tssa_status *opencl_read_scalar(struct device_stream *stream, struct device_place from,
                                tssa_dtype dtype, int64_t *value)
{
    unsigned char bytes[8] = {0};
    count_copy(stream, DEVICE_COPY_OUT, tssa_dtype_size(dtype));
    TRY(opencl_read(stream, from, bytes, tssa_dtype_size(dtype)));
    *value = dtype_load_int64(dtype, bytes);
    return grids_stream_failed((struct grids_stream *)stream, opencl_read);
}
