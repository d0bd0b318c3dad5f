/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are the driver's, and do not wait for its default one; events are the driver's. */
#include "device/cuda/card.h"

tssa_status *cuda_enter_stream(struct device_stream *stream, const struct cuda_card **card,
                               cuda_stream *own)
{
    *own = ((struct cuda_queue *)stream)->stream;
    return cuda_enter(stream->context, card);
}

tssa_status *cuda_stream_open(struct device_context *context, struct device_stream **stream)
{
    const struct cuda_card *card;
    struct cuda_queue *queue = allocator_calloc(context->allocator, 1, sizeof *queue);
    TRY_ALLOC(queue);
    queue->base.stream.context = context;
    tssa_status *status = cuda_enter(context, &card);
    if (!status)
        status = CUDA(&card->api, cuStreamCreate, &queue->stream, CUDA_STREAM_NON_BLOCKING);
    if (!status)
        status = grids_stream_open(&queue->base);
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
    grids_stream_close(&queue->base);
    if (queue->stream) {
        tssa_status_free(CUDA(&card->api, cuStreamSynchronize, queue->stream));
        tssa_status_free(CUDA(&card->api, cuStreamDestroy_v2, queue->stream));
    }
    allocator_free(stream->context->allocator, queue);
}

tssa_status *cuda_stream_wait(struct device_stream *stream)
{
    const struct cuda_card *card;
    cuda_stream own;
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
