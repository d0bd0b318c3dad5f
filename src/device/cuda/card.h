/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A card, as a context of the device has it: the driver's functions, and the card's primary
 * context, which CUDA's libraries use too. The driver has a current context for each thread, so
 * what is asked of a card, or of a stream, begins with cuda_enter; it stays current.
 */
#ifndef TSSA_DEVICE_CUDA_CARD_H
#define TSSA_DEVICE_CUDA_CARD_H

#include "device/cuda/cuda_api.h"
#include "device/cuda/ranges.h"
#include "device/device.h"
#include "device/grids/grids.h"

/* The oldest driver that is used: 1000 times the major version, and 10 times the minor one. */
#define CUDA_OLDEST_DRIVER 12000

/* Of operands and results of libraries, in bytes: what lies elsewhere is a text's. */
#define CUDA_OPERAND_ALIGNMENT 16

struct cuda_card {
    struct cuda_api api;
    int driver;               /* the version of CUDA that it is for, as CUDA_OLDEST_DRIVER is */
    int device, architecture; /* 90: compute capability 9.0 */
    cuda_context context;
    _Atomic(void *) convolutions; /* convolution.c's own; NULL until it is needed */
    struct cuda_ranges ranges;    /* where they were opened */
    cuda_module
        conditions; /* conditions.h; NULL until it is wanted, guarded by the context's lock */
    cuda_function decide;
};

/* struct device.connect and .close. */
tssa_status *cuda_connect(struct device_context *context);
void cuda_close(struct device_context *context);

/* The card of a context that is connected, which becomes the calling thread's. */
tssa_status *cuda_enter(const struct device_context *context, const struct cuda_card **card);
/* The same before something is given back, which is tried whatever has failed. */
const struct cuda_card *cuda_enter_anyway(const struct device_context *context);

/* A stream of the device. */
struct cuda_queue {
    struct grids_stream base;
    cuda_stream stream;
    struct device_recording *recording; /* while it records; recording.h */
    struct cuda_staging *staging;       /* staging.h; NULL: nothing was copied that way yet */
    cuda_event mark;                    /* how far a stream is; NULL: nobody has asked yet */
    bool endless;           /* what was asked of it since somebody waited may not end by itself */
    int64_t *halts;         /* of the host's memory, which kernels read: loops end */
    struct cuda_body *body; /* of a conditional node, while it is recorded; conditions.h */
    bool behind_node; /* the latest that was recorded is neither a launch, nor a copy or a fill */
};

/* The same for a stream. */
tssa_status *cuda_enter_stream(struct device_stream *stream, const struct cuda_card **card,
                               cuda_stream *own);

/* Waits until all is done that was asked of the stream; TSSA_LIMIT: somebody wanted it to end. */
tssa_status *cuda_settle(struct cuda_queue *queue);

/* Bytes, which are there when it returns: a grids_read_fn. */
tssa_status *cuda_read(struct device_stream *stream, struct device_place from, void *to,
                       size_t size);

/* struct device.stream_open and so on. */
tssa_status *cuda_stream_open(struct device_context *context, struct device_stream **stream);
void cuda_stream_close(struct device_stream *stream);
tssa_status *cuda_stream_wait(struct device_stream *stream);
tssa_status *cuda_event_record(struct device_stream *stream, struct device_event **event);
tssa_status *cuda_event_await(struct device_stream *stream, struct device_event *event);
void cuda_event_free(struct device_stream *recorded, struct device_event *event);
tssa_status *cuda_stream_follow(struct device_stream *stream, void *callers);
tssa_status *cuda_stream_lead(struct device_stream *stream, void *callers, bool *leads);

#endif
