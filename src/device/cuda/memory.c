/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card: a handle is its address there. Runs take it from their slab and their pool, so
 * it is asked for seldom, and cuMemAlloc will do.
 *
 * The driver reads memory of the host that was not locked for it before a call returns, so what is
 * copied in may change at once; so it may behind a copy that is staged.
 */
#include "device/memory.h"

#include "device/count.h"
#include "device/cuda/recording.h"
#include "device/cuda/staging.h"

static cuda_address address_of(struct device_place place)
{
    return (cuda_address)(uintptr_t)place.memory + place.offset;
}

static void *on_host(struct device_place place)
{
    return (char *)place.memory + place.offset;
}

static tssa_status *allocate(struct device_stream *stream, size_t size, cuda_address *memory)
{
    const struct cuda_card *card;
    TRY(cuda_enter(stream->context, &card));
    return CUDA(&card->api, cuMemAlloc_v2, memory, size ? size : 1);
}

void *cuda_allocate(struct device_stream *stream, size_t size)
{
    cuda_address memory = 0;
    tssa_status *status = allocate(stream, size, &memory);
    const bool there = status == NULL;
    tssa_status_free(status);
    stream->counts.allocations++;
    return there ? (void *)(uintptr_t)memory : NULL;
}

void cuda_release(struct device_stream *stream, void *memory, size_t size)
{
    (void)size;
    if (!memory)
        return;
    if (stream->records) {
        cuda_record_release(stream, (cuda_address)(uintptr_t)memory);
        return;
    }
    const struct cuda_card *card = cuda_enter_anyway(stream->context);
    cuda_stream own = ((struct cuda_queue *)stream)->stream;
    tssa_status_free(CUDA(&card->api, cuStreamSynchronize, own));
    tssa_status_free(CUDA(&card->api, cuMemFree_v2, (cuda_address)(uintptr_t)memory));
}

tssa_status *cuda_read(struct device_stream *stream, struct device_place from, void *to,
                       size_t size)
{
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_record_refuse(stream));
    TRY(cuda_enter_stream(stream, &card, &own));
    TRY(CUDA(&card->api, cuMemcpyDtoHAsync_v2, to, address_of(from), size, own));
    return cuda_settle((struct cuda_queue *)stream);
}

static tssa_status *read_result(struct device_stream *stream, struct device_place from, void *to,
                                size_t size)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    if (stream->records || !cuda_stages(queue, size))
        return cuda_read(stream, from, to, size);
    if (queue->endless) /* pieces are waited for one by one, and nobody could end it */
        TRY(cuda_settle(queue));
    return cuda_stage_out(queue, to, address_of(from), size);
}

tssa_status *cuda_copy(struct device_stream *stream, enum device_copy kind, struct device_place to,
                       struct device_place from, size_t size)
{
    const struct cuda_card *card;
    cuda_stream own;
    count_copy(stream, kind, size);
    if (size == 0)
        return NULL;
    if (stream->records && kind == DEVICE_COPY_IN) {
        TRY(cuda_record_bytes(stream, on_host(from), size, &from));
        kind = DEVICE_COPY_WITHIN;
    }
    TRY(cuda_enter_stream(stream, &card, &own));
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    switch (kind) {
    case DEVICE_COPY_IN:
        if (cuda_stages(queue, size))
            return cuda_stage_in(queue, address_of(to), on_host(from), size);
        return CUDA(&card->api, cuMemcpyHtoDAsync_v2, address_of(to), on_host(from), size, own);
    case DEVICE_COPY_OUT:
        TRY(read_result(stream, from, on_host(to), size));
        return grids_stream_failed((struct grids_stream *)stream, cuda_read);
    default:
        return CUDA(&card->api, cuMemcpyDtoDAsync_v2, address_of(to), address_of(from), size, own);
    }
}

tssa_status *cuda_fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                       size_t size)
{
    const struct cuda_card *card;
    cuda_stream own;
    count_fill(stream, size);
    if (size == 0)
        return NULL;
    TRY(cuda_enter_stream(stream, &card, &own));
    return CUDA(&card->api, cuMemsetD8Async, address_of(to), byte, size, own);
}

tssa_status *cuda_read_scalar(struct device_stream *stream, struct device_place from,
                              tssa_dtype dtype, int64_t *value)
{
    int64_t scalar = 0;
    TRY(cuda_copy(stream, DEVICE_COPY_OUT, (struct device_place){&scalar, 0}, from,
                  tssa_dtype_size(dtype)));
    *value = dtype_load_int64(dtype, &scalar);
    return NULL;
}
