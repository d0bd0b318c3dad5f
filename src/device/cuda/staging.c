/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/staging.h"

#include <string.h>

#define GRAIN ((int64_t)128 << 10) /* bytes that are worth a thread */

static const struct cuda_card *card_of(const struct cuda_queue *queue)
{
    return queue->base.stream.context->connected;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tssa_status *fill(const struct cuda_card *card, struct cuda_staging *staging)
{
    void *memory;
    TRY(CUDA(&card->api, cuMemAllocHost_v2, &memory, (size_t)STAGING_SLOTS * STAGING_SLOT));
    staging->memory = memory;
    for (int i = 0; i < STAGING_SLOTS; i++)
        TRY(CUDA(&card->api, cuEventCreate, &staging->done[i], CUDA_EVENT_DISABLE_TIMING));
    return NULL;
}

static bool is_worth_it(const struct cuda_queue *queue, size_t size)
{
    const struct team *team = queue->base.stream.context->team;
    return size >= STAGING_LEAST && team && team->parallel_for && team->threads > 1;
}

bool cuda_stages(struct cuda_queue *queue, size_t size)
{
    if (!is_worth_it(queue, size))
        return false;
    if (queue->staging)
        return true;
    queue->staging =
        allocator_calloc(queue->base.stream.context->allocator, 1, sizeof *queue->staging);
    tssa_status *status =
        queue->staging ? fill(card_of(queue), queue->staging) : status_out_of_memory();
    if (status)
        cuda_staging_free(queue);
    tssa_status_free(status); /* it is copied without */
    return queue->staging != NULL;
}

void cuda_staging_free(struct cuda_queue *queue)
{
    struct cuda_staging *staging = queue->staging;
    const struct cuda_card *card = card_of(queue);
    if (!staging)
        return;
    for (int i = 0; i < STAGING_SLOTS; i++)
        if (staging->done[i])
            tssa_status_free(CUDA(&card->api, cuEventDestroy_v2, staging->done[i]));
    if (staging->memory)
        tssa_status_free(CUDA(&card->api, cuMemFreeHost, staging->memory));
    allocator_free(queue->base.stream.context->allocator, staging);
    queue->staging = NULL;
}

/* ---- The host's copies ----------------------------------------------------------------------- */

struct bytes {
    char *to;
    const char *from;
};

static void copy_part(void *context, int64_t begin, int64_t end)
{
    const struct bytes *bytes = context;
    memcpy(bytes->to + begin, bytes->from + begin, (size_t)(end - begin));
}

static void copy_piece(const struct cuda_queue *queue, char *to, const char *from, size_t size)
{
    struct bytes bytes = {to, from};
    team_for(queue->base.stream.context->team, (int64_t)size, GRAIN, copy_part, &bytes);
}

static size_t piece_at(size_t at, size_t size)
{
    return size - at < STAGING_SLOT ? size - at : STAGING_SLOT;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static char *memory_of(const struct cuda_staging *staging, uint32_t slot)
{
    return staging->memory + (size_t)slot * STAGING_SLOT;
}

static tssa_status *await_slot(const struct cuda_queue *queue, uint32_t slot)
{
    struct cuda_staging *staging = queue->staging;
    if (!staging->busy[slot])
        return NULL;
    TRY(CUDA(&card_of(queue)->api, cuEventSynchronize, staging->done[slot]));
    staging->busy[slot] = false;
    return NULL;
}

/* The card has been asked to copy: the slot is its own until that is done. */
static tssa_status *lend_slot(const struct cuda_queue *queue, uint32_t slot)
{
    const struct cuda_card *card = card_of(queue);
    tssa_status *status =
        CUDA(&card->api, cuEventRecord, queue->staging->done[slot], queue->stream);
    if (status) /* nobody could tell when */
        tssa_status_free(CUDA(&card->api, cuStreamSynchronize, queue->stream));
    queue->staging->busy[slot] = status == NULL;
    return status;
}

static uint32_t take_slot(struct cuda_staging *staging)
{
    return staging->next++ % STAGING_SLOTS;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

tssa_status *cuda_stage_in(struct cuda_queue *queue, cuda_address to, const char *from, size_t size)
{
    const struct cuda_card *card = card_of(queue);
    for (size_t at = 0, n; at < size; at += n) {
        const uint32_t slot = take_slot(queue->staging);
        char *memory = memory_of(queue->staging, slot);
        n = piece_at(at, size);
        TRY(await_slot(queue, slot));
        copy_piece(queue, memory, from + at, n);
        TRY(CUDA(&card->api, cuMemcpyHtoDAsync_v2, to + at, memory, n, queue->stream));
        TRY(lend_slot(queue, slot));
    }
    return NULL;
}

/* A piece that the card copies into a slot, and the host out of it. */
struct coming {
    uint32_t slot;
    size_t at, size;
};

static tssa_status *ask(struct cuda_queue *queue, cuda_address from, struct coming *coming)
{
    const struct cuda_card *card = card_of(queue);
    coming->slot = take_slot(queue->staging);
    TRY(await_slot(queue, coming->slot));
    TRY(CUDA(&card->api, cuMemcpyDtoHAsync_v2, memory_of(queue->staging, coming->slot),
             from + coming->at, coming->size, queue->stream));
    return lend_slot(queue, coming->slot);
}

static tssa_status *take(struct cuda_queue *queue, char *to, const struct coming *coming)
{
    TRY(await_slot(queue, coming->slot));
    copy_piece(queue, to + coming->at, memory_of(queue->staging, coming->slot), coming->size);
    return NULL;
}

/* As many are under way as there are slots. */
tssa_status *cuda_stage_out(struct cuda_queue *queue, char *to, cuda_address from, size_t size)
{
    const size_t n = (size + STAGING_SLOT - 1) / STAGING_SLOT;
    struct coming coming[STAGING_SLOTS];
    for (size_t i = 0; i < n + STAGING_SLOTS; i++) {
        struct coming *own = &coming[i % STAGING_SLOTS];
        if (i >= STAGING_SLOTS)
            TRY(take(queue, to, own));
        if (i >= n)
            continue;
        own->at = i * STAGING_SLOT;
        own->size = piece_at(own->at, size);
        TRY(ask(queue, from, own));
    }
    return NULL;
}
