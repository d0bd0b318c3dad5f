/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/recording.h"

#include <string.h>

#include "device/cuda/conditions.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGNMENT 256 /* of the device's memory */

/* Bytes of the host's: here until the recording ends, then there. */
struct chunk {
    struct chunk *next;
    cuda_address there;
    size_t size, used;
    unsigned char here[];
};

struct garbage {
    struct garbage *next;
    cuda_address memory;
};

struct device_recording {
    cuda_graph_exec graph;
    struct chunk *chunks;
    struct garbage *garbage; /* while it is made */
    struct device_counts counts;
    bool checks; /* a kernel may note an error */
    bool endless;
};

static struct device_recording *recording_of(struct device_stream *stream)
{
    return ((struct cuda_queue *)stream)->recording;
}

tssa_status *cuda_record_refuse(const struct device_stream *stream)
{
    return stream->records ? ERROR(TSSA_UNSUPPORTED, "the host waits for the device in between")
                           : NULL;
}

/* ---- Bytes of the host's --------------------------------------------------------------------- */

static tssa_status *add_chunk(struct device_stream *stream, size_t size)
{
    const tssa_allocator *allocator = stream->context->allocator;
    struct device_recording *recording = recording_of(stream);
    const struct cuda_card *card;
    if (size < CHUNK_BYTES)
        size = CHUNK_BYTES;
    TRY(cuda_enter(stream->context, &card));
    struct chunk *chunk = allocator_alloc(allocator, sizeof *chunk + size);
    TRY_ALLOC(chunk);
    *chunk = (struct chunk){.next = recording->chunks, .size = size};
    tssa_status *status = CUDA(&card->api, cuMemAlloc_v2, &chunk->there, size);
    if (status)
        allocator_free(allocator, chunk);
    else
        recording->chunks = chunk;
    return status;
}

tssa_status *cuda_record_bytes(struct device_stream *stream, const void *bytes, size_t size,
                               struct device_place *place)
{
    struct device_recording *recording = recording_of(stream);
    const struct chunk *last = recording->chunks;
    if (!last || last->size - last->used < size)
        TRY(add_chunk(stream, size));
    struct chunk *chunk = recording->chunks;
    *place = (struct device_place){(void *)(uintptr_t)chunk->there, chunk->used};
    if (size)
        memcpy(chunk->here + chunk->used, bytes, size);
    chunk->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (chunk->used > chunk->size)
        chunk->used = chunk->size;
    return NULL;
}

static tssa_status *upload(const struct cuda_card *card, cuda_stream stream,
                           const struct device_recording *recording)
{
    for (const struct chunk *chunk = recording->chunks; chunk; chunk = chunk->next)
        TRY(CUDA(&card->api, cuMemcpyHtoDAsync_v2, chunk->there, chunk->here, chunk->used, stream));
    return CUDA(&card->api, cuStreamSynchronize, stream);
}

/* ---- What is given back meanwhile ------------------------------------------------------------ */

void cuda_record_release(struct device_stream *stream, cuda_address memory)
{
    struct device_recording *recording = recording_of(stream);
    struct garbage *garbage = allocator_alloc(stream->context->allocator, sizeof *garbage);
    if (!garbage)
        return; /* it is the card's until the process ends */
    *garbage = (struct garbage){recording->garbage, memory};
    recording->garbage = garbage;
}

static void free_garbage(struct device_stream *stream, const struct cuda_card *card,
                         struct device_recording *recording)
{
    for (struct garbage *garbage = recording->garbage, *next; garbage; garbage = next) {
        next = garbage->next;
        tssa_status_free(CUDA(&card->api, cuMemFree_v2, garbage->memory));
        allocator_free(stream->context->allocator, garbage);
    }
    recording->garbage = NULL;
}

/* ---- Recordings ------------------------------------------------------------------------------ */

tssa_status *cuda_record_begin(struct device_stream *stream)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    struct device_recording *recording =
        allocator_calloc(stream->context->allocator, 1, sizeof *recording);
    TRY_ALLOC(recording);
    tssa_status *status = CUDA(&card->api, cuStreamBeginCapture_v2, own, CUDA_CAPTURE_RELAXED);
    if (status) {
        allocator_free(stream->context->allocator, recording);
        return status;
    }
    recording->counts = stream->counts;
    recording->checks = queue->base.launched;
    queue->base.launched = false;
    queue->endless = false;
    queue->recording = recording;
    stream->records = true;
    return NULL;
}

static struct device_counts difference(struct device_counts now, struct device_counts before)
{
    return (struct device_counts){.launches = now.launches - before.launches,
                                  .library_calls = now.library_calls - before.library_calls,
                                  .bytes = now.bytes - before.bytes,
                                  .allocations = now.allocations - before.allocations,
                                  .copies = now.copies - before.copies,
                                  .copied_bytes = now.copied_bytes - before.copied_bytes};
}

static tssa_status *make_graph(const struct cuda_card *card, cuda_stream stream,
                               struct device_recording *recording)
{
    cuda_graph graph = NULL;
    TRY(CUDA(&card->api, cuStreamEndCapture, stream, &graph));
    tssa_status *status =
        CUDA(&card->api, cuGraphInstantiateWithFlags, &recording->graph, graph, 0);
    tssa_status_free(CUDA(&card->api, cuGraphDestroy, graph));
    return status;
}

tssa_status *cuda_record_end(struct device_stream *stream, struct device_recording **made)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    struct device_recording *recording = queue->recording;
    const struct cuda_card *card = cuda_enter_anyway(stream->context);
    const bool before = recording->checks;
    cuda_conditions_unwind(queue);
    queue->recording = NULL;
    stream->records = false;
    recording->checks = queue->base.launched;
    recording->endless = queue->endless;
    queue->base.launched = before;
    queue->endless = false;
    const struct device_counts counts = recording->counts;
    recording->counts = difference(stream->counts, counts);
    stream->counts = counts;
    tssa_status *status = make_graph(card, queue->stream, recording);
    free_garbage(stream, card, recording);
    if (!status)
        status = upload(card, queue->stream, recording);
    if (status)
        cuda_recording_free(stream, recording);
    else
        *made = recording;
    return status;
}

static void add_counts(struct device_counts *counts, const struct device_counts *more)
{
    counts->launches += more->launches;
    counts->library_calls += more->library_calls;
    counts->bytes += more->bytes;
    counts->allocations += more->allocations;
    counts->copies += more->copies;
    counts->copied_bytes += more->copied_bytes;
    counts->replays++;
}

tssa_status *cuda_replay(struct device_stream *stream, const struct device_recording *recording)
{
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    ((struct cuda_queue *)stream)->base.launched |= recording->checks;
    ((struct cuda_queue *)stream)->endless |= recording->endless;
    add_counts(&stream->counts, &recording->counts);
    return CUDA(&card->api, cuGraphLaunch, recording->graph, own);
}

void cuda_recording_free(struct device_stream *stream, struct device_recording *recording)
{
    if (!recording)
        return;
    const tssa_allocator *allocator = stream->context->allocator;
    const struct cuda_card *card = cuda_enter_anyway(stream->context);
    tssa_status_free(CUDA(&card->api, cuStreamSynchronize, ((struct cuda_queue *)stream)->stream));
    if (recording->graph)
        tssa_status_free(CUDA(&card->api, cuGraphExecDestroy, recording->graph));
    for (struct chunk *chunk = recording->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        tssa_status_free(CUDA(&card->api, cuMemFree_v2, chunk->there));
        allocator_free(allocator, chunk);
    }
    allocator_free(allocator, recording);
}
