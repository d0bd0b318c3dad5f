/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are the driver's, and do not wait for its default one; events are the driver's. */
#include <string.h>

#include "device/cuda/recording.h"
#include "device/cuda/staging.h"

tssa_status *cuda_enter_stream(struct device_stream *stream, const struct cuda_card **card,
                               cuda_stream *own)
{
    *own = ((struct cuda_queue *)stream)->stream;
    return cuda_enter(stream->context, card);
}

/* Notes and counts are memory of the host that kernels write to, so that nobody has to fetch them:
 * a copy of a few bytes takes the time of two launches. */
static tssa_status *open_queue(struct cuda_queue *queue)
{
    const struct cuda_card *card;
    void *notes = NULL;
    TRY(cuda_enter(queue->base.stream.context, &card));
    TRY(CUDA(&card->api, cuStreamCreate, &queue->stream, CUDA_STREAM_NON_BLOCKING));
    TRY(CUDA(&card->api, cuMemAllocHost_v2, &notes, GRIDS_STREAM_BYTES));
    memset(notes, 0, GRIDS_STREAM_BYTES);
    queue->base.notes = queue->base.seen = notes;
    return NULL;
}

tssa_status *cuda_stream_open(struct device_context *context, struct device_stream **stream)
{
    struct cuda_queue *queue = allocator_calloc(context->allocator, 1, sizeof *queue);
    TRY_ALLOC(queue);
    queue->base.stream.context = context;
    tssa_status *status = open_queue(queue);
    if (status)
        cuda_stream_close(&queue->base.stream);
    else
        *stream = &queue->base.stream;
    return status;
}

void cuda_stream_close(struct device_stream *stream)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    if (!queue)
        return;
    const struct cuda_card *card = cuda_enter_anyway(stream->context);
    if (queue->stream) {
        tssa_status_free(CUDA(&card->api, cuStreamSynchronize, queue->stream));
        cuda_staging_free(queue);
        tssa_status_free(CUDA(&card->api, cuStreamDestroy_v2, queue->stream));
    }
    if (queue->base.seen)
        tssa_status_free(CUDA(&card->api, cuMemFreeHost, queue->base.seen));
    allocator_free(stream->context->allocator, queue);
}

tssa_status *cuda_stream_wait(struct device_stream *stream)
{
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_record_refuse(stream));
    TRY(cuda_enter_stream(stream, &card, &own));
    TRY(CUDA(&card->api, cuStreamSynchronize, own));
    return grids_stream_failed((struct grids_stream *)stream, cuda_read);
}

tssa_status *cuda_event_record(struct device_stream *stream, struct device_event **event)
{
    const struct cuda_card *card;
    cuda_stream own;
    cuda_event made;
    TRY(cuda_enter_stream(stream, &card, &own));
    TRY(CUDA(&card->api, cuEventCreate, &made, CUDA_EVENT_DISABLE_TIMING));
    tssa_status *status = CUDA(&card->api, cuEventRecord, made, own);
    if (status)
        tssa_status_free(CUDA(&card->api, cuEventDestroy_v2, made));
    else
        *event = (struct device_event *)made;
    return status;
}

tssa_status *cuda_event_await(struct device_stream *stream, struct device_event *event)
{
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    return CUDA(&card->api, cuStreamWaitEvent, own, (cuda_event)event, 0);
}

void cuda_event_free(struct device_stream *recorded, struct device_event *event)
{
    const struct cuda_card *card = cuda_enter_anyway(recorded->context);
    tssa_status_free(CUDA(&card->api, cuEventDestroy_v2, (cuda_event)event));
}
