/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are the driver's, and do not wait for its default one; events are the driver's. */
#include <sched.h>
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
    TRY(CUDA(&card->api, cuMemAllocHost_v2, &notes, GRIDS_STREAM_BYTES + sizeof *queue->halts));
    memset(notes, 0, GRIDS_STREAM_BYTES + sizeof *queue->halts);
    queue->base.notes = queue->base.seen = notes;
    queue->halts = (int64_t *)((char *)notes + GRIDS_STREAM_BYTES);
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
    if (queue->mark)
        tssa_status_free(CUDA(&card->api, cuEventDestroy_v2, queue->mark));
    if (queue->base.seen)
        tssa_status_free(CUDA(&card->api, cuMemFreeHost, queue->base.seen));
    allocator_free(stream->context->allocator, queue);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool is_set(const atomic_bool *flag)
{
    return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

/* NULL: nobody wants it to end. */
static const char *wanted_end(const struct device_stream *stream)
{
    if (is_set(stream->stop))
        return "the run was stopped";
    return is_set(stream->cancel) ? "the run was cancelled" : NULL;
}

/* Until it is done, or somebody wants it to end; then why. */
static const char *watch(const struct cuda_card *card, const struct cuda_queue *queue)
{
    const char *why = NULL;
    while (!why && card->api.cuStreamQuery &&
           card->api.cuStreamQuery(queue->stream) == CUDA_NOT_READY) {
        why = wanted_end(&queue->base.stream);
        sched_yield();
    }
    return why;
}

tssa_status *cuda_settle(struct cuda_queue *queue)
{
    const struct cuda_card *card = queue->base.stream.context->connected;
    volatile int64_t *halts = queue->halts;
    const char *why = queue->endless ? watch(card, queue) : NULL;
    *halts = why != NULL;
    queue->endless = false;
    tssa_status *status = CUDA(&card->api, cuStreamSynchronize, queue->stream);
    *halts = 0;
    if (!why)
        return status;
    tssa_status_free(status);
    return ERROR(TSSA_LIMIT, "%s", why);
}

tssa_status *cuda_stream_wait(struct device_stream *stream)
{
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_record_refuse(stream));
    TRY(cuda_enter_stream(stream, &card, &own));
    TRY(cuda_settle((struct cuda_queue *)stream));
    return grids_stream_failed((struct grids_stream *)stream, cuda_read);
}

/* ---- Events ---------------------------------------------------------------------------------- */

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

/* ---- Streams of the caller's ----------------------------------------------------------------- */

/* What is asked of `last` from now on is done after what was asked of `first`. */
static tssa_status *order(struct cuda_queue *queue, cuda_stream first, cuda_stream last)
{
    const struct cuda_card *card;
    TRY(cuda_enter(queue->base.stream.context, &card));
    if (!queue->mark)
        TRY(CUDA(&card->api, cuEventCreate, &queue->mark, CUDA_EVENT_DISABLE_TIMING));
    TRY(CUDA(&card->api, cuEventRecord, queue->mark, first));
    return CUDA(&card->api, cuStreamWaitEvent, last, queue->mark, 0);
}

/* What a run has noted that has returned before is told now, as soon as it can be seen. */
tssa_status *cuda_stream_follow(struct device_stream *stream, void *callers)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    if (queue->base.launched && memchr(queue->base.seen, 1, GRIDS_NOTES))
        TRY(cuda_stream_wait(stream));
    return order(queue, callers, queue->stream);
}

tssa_status *cuda_stream_lead(struct device_stream *stream, void *callers, bool *leads)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    *leads = !queue->endless;
    return *leads ? order(queue, queue->stream, callers) : NULL;
}
