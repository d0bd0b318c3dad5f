/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_probe/probe.h"

struct copy {
    void *host;
    cuda_address device, other;
    size_t size;
};

static tssa_status *to_device(struct card *card, void *data)
{
    struct copy *copy = data;
    TRY(CARD(card, cuMemcpyHtoDAsync_v2, copy->device, copy->host, copy->size, card->stream));
    return card_sync(card);
}

static tssa_status *to_host(struct card *card, void *data)
{
    struct copy *copy = data;
    TRY(CARD(card, cuMemcpyDtoHAsync_v2, copy->host, copy->device, copy->size, card->stream));
    return card_sync(card);
}

static tssa_status *on_device(struct card *card, void *data)
{
    struct copy *copy = data;
    TRY(CARD(card, cuMemcpyDtoDAsync_v2, copy->other, copy->device, copy->size, card->stream));
    return card_sync(card);
}

/* Both ends of the way are the same; what differs is whether the host's memory is pinned. */
static const struct way {
    const char *name;
    stopwatch_work *work;
    bool pinned;
} ways[] = {
    {"host to device, pinned", to_device, true}, {"host to device, pageable", to_device, false},
    {"device to host, pinned", to_host, true},   {"device to host, pageable", to_host, false},
    {"device to device", on_device, true},
};

struct memory {
    void *pinned, *pageable;
    cuda_address device, other;
};

static tssa_status *take(struct card *card, size_t size, struct memory *memory)
{
    *memory = (struct memory){.pageable = malloc(size)};
    TRY_ALLOC(memory->pageable);
    TRY(CARD(card, cuMemAllocHost_v2, &memory->pinned, size));
    memset(memory->pageable, 1, size); /* pages that were never written to are all the same one */
    memset(memory->pinned, 1, size);
    TRY(card_zeros(card, size, &memory->device));
    return card_zeros(card, size, &memory->other);
}

static void give(struct card *card, struct memory *memory)
{
    free(memory->pageable);
    if (memory->pinned)
        tssa_status_free(CARD(card, cuMemFreeHost, memory->pinned));
    if (memory->device)
        tssa_status_free(CARD(card, cuMemFree_v2, memory->device));
    if (memory->other)
        tssa_status_free(CARD(card, cuMemFree_v2, memory->other));
}

static tssa_status *time_way(struct card *card, const struct way *way, const struct memory *memory,
                             size_t size, struct timing *timing)
{
    struct copy copy = {way->pinned ? memory->pinned : memory->pageable, memory->device,
                        memory->other, size};
    return stopwatch_time(card, way->work, &copy, 1, timing);
}

typedef void report(FILE *out, const struct way *way, size_t size, struct timing timing);

static tssa_status *each_way(struct card *card, FILE *out, size_t size, report *report)
{
    struct memory memory;
    struct timing timing;
    tssa_status *status = take(card, size, &memory);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !status; i++) {
        status = time_way(card, &ways[i], &memory, size, &timing);
        if (!status)
            report(out, &ways[i], size, timing);
    }
    give(card, &memory);
    return status;
}

static void report_latency(FILE *out, const struct way *way, size_t size, struct timing timing)
{
    (void)size;
    record_timing(out, timing, "%s, and wait", way->name);
}

static void report_bandwidth(FILE *out, const struct way *way, size_t size, struct timing timing)
{
    record_figure(out, (double)size / timing.median / 1e3, "GB/s", "%s, %zu KiB", way->name,
                  size >> 10);
}

tssa_status *probe_copy_latency(struct card *card, FILE *out)
{
    return each_way(card, out, 4, report_latency);
}

/* Sizes that the card has no room for end the series, with the error. */
tssa_status *probe_copy_bandwidth(struct card *card, FILE *out)
{
    static const size_t kibibytes[] = {4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144};
    for (size_t i = 0; i < sizeof kibibytes / sizeof *kibibytes; i++)
        TRY(each_way(card, out, kibibytes[i] << 10, report_bandwidth));
    return NULL;
}
