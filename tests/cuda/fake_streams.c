/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver's streams. They keep what is asked of them until somebody waits, so that what is
 * read too early shows, and then do it in order; what another stream has to do before, that stream
 * does then, and no more, so that an event which nobody awaits shows.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

struct queued {
    struct queued *next;
    struct fake_work work;
};

struct CUstream_st {
    bool alive;
    cuda_context owner; /* NULL: it is the default stream */
    bool asked;
    cuda_graph capturing;
    struct queued *first, **end;
};

struct CUevent_st {
    bool alive;
    cuda_stream stream;           /* that it was recorded in */
    unsigned long recorded, come; /* how often */
};

static cuda_stream new_stream(void)
{
    cuda_stream stream = fake_hold(sizeof *stream);
    stream->alive = true;
    stream->end = &stream->first;
    return stream;
}

static cuda_stream stream_of(cuda_stream stream)
{
    static cuda_stream default_stream;
    if (!stream && !default_stream)
        default_stream = new_stream();
    return stream ? stream : default_stream;
}

cuda_graph *fake_capturing(cuda_stream stream)
{
    return &stream_of(stream)->capturing;
}

unsigned fake_push(cuda_stream stream, const struct fake_work *work)
{
    stream = stream_of(stream);
    EXPECT(stream->alive);
    if (stream->owner && stream->owner != fake_current())
        return FAKE_INVALID_HANDLE;
    if (stream->capturing)
        return fake_capture(stream, work);
    struct queued *queued = malloc(sizeof *queued);
    if (!queued)
        abort();
    *queued = (struct queued){NULL, *work};
    *stream->end = queued;
    stream->end = &queued->next;
    return FAKE_OK;
}

/* ---- Doing it -------------------------------------------------------------------------------- */

static unsigned do_copy(const struct fake_work *work)
{
    void *to = fake_bytes(work->to, work->size);
    const void *from = work->staged ? work->staged : fake_bytes(work->from, work->size);
    if (!to || !from)
        return FAKE_ILLEGAL_ADDRESS;
    memmove(to, from, work->size);
    return FAKE_OK;
}

static unsigned do_fill(const struct fake_work *work)
{
    char *to = fake_bytes(work->to, work->size * work->unit);
    if (!to)
        return FAKE_ILLEGAL_ADDRESS;
    for (size_t i = 0; i < work->size; i++)
        memcpy(to + i * work->unit, &work->value, work->unit); /* the low byte is the first one */
    return FAKE_OK;
}

static void do_first(cuda_stream stream)
{
    struct queued *queued = stream->first;
    stream->first = queued->next;
    if (!stream->first)
        stream->end = &stream->first;
    const unsigned result = fake_context_state() ? FAKE_OK : fake_do(&queued->work);
    if (result != FAKE_OK)
        fake_break(result);
    free(queued->work.arguments);
    free(queued->work.staged);
    free(queued);
}

static void do_all(cuda_stream stream)
{
    while (stream->first)
        do_first(stream);
}

unsigned fake_do(const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_LAUNCH:
        return fake_do_launch(work);
    case FAKE_COPY:
        return do_copy(work);
    case FAKE_FILL:
        return do_fill(work);
    case FAKE_CONDITION:
        fake_do_condition(work);
        return FAKE_OK;
    case FAKE_GRAPH:
        fake_do_graph(work->graph);
        return FAKE_OK;
    case FAKE_RECORD:
        work->event->come = work->number;
        return FAKE_OK;
    case FAKE_WAIT:
        while (work->event->come < work->number && work->recorded->first)
            do_first(work->recorded);
        return FAKE_OK;
    }
    return FAKE_INVALID_VALUE;
}

/* ---- Streams --------------------------------------------------------------------------------- */

FAKE(cuStreamCreate, cuda_stream *stream, unsigned flags)
{
    IN_CONTEXT();
    EXPECT(flags <= CUDA_STREAM_NON_BLOCKING);
    *stream = new_stream();
    (*stream)->owner = fake_current();
    fake_count(1);
    return FAKE_OK;
}

/* Also where it fails: what was asked for before must not be done when its memory is gone. */
FAKE(cuStreamSynchronize, cuda_stream stream)
{
    ENTER();
    stream = stream_of(stream);
    EXPECT(stream->alive);
    if (stream->owner && stream->owner != fake_current())
        return FAKE_INVALID_HANDLE;
    if (stream->capturing)
        return FAKE_CAPTURE_UNSUPPORTED;
    do_all(stream);
    return planned_ ? planned_ : fake_context_state();
}

/* Before a stream is asked whether it is done. */
static void (*asked)(void *data);
static void *asked_data;

void fake_when_asked(void (*call)(void *data), void *data)
{
    asked = call;
    asked_data = data;
}

/* It says no each other time, and then does what it would have done meanwhile. */
FAKE(cuStreamQuery, cuda_stream stream)
{
    PLANNED();
    EXPECT(stream && stream->alive && !stream->capturing);
    if (asked)
        asked(asked_data);
    stream->asked = stream->first && !stream->asked;
    if (stream->asked)
        return FAKE_NOT_READY;
    do_all(stream);
    return fake_context_state();
}

FAKE(cuStreamDestroy_v2, cuda_stream stream)
{
    ENTER();
    EXPECT(stream && stream->alive);
    do_all(stream);
    stream->alive = false;
    fake_count(-1);
    return planned_;
}

/* ---- Events ---------------------------------------------------------------------------------- */

FAKE(cuEventCreate, cuda_event *event, unsigned flags)
{
    IN_CONTEXT();
    EXPECT((flags & ~(unsigned)CUDA_EVENT_DISABLE_TIMING) == 0);
    *event = fake_hold(sizeof **event);
    (*event)->alive = true;
    fake_count(1);
    return FAKE_OK;
}

FAKE(cuEventRecord, cuda_event event, cuda_stream stream)
{
    IN_CONTEXT();
    EXPECT(event->alive);
    event->stream = stream_of(stream);
    const struct fake_work work = {
        .kind = FAKE_RECORD, .event = event, .number = ++event->recorded};
    return fake_push(stream, &work);
}

FAKE(cuStreamWaitEvent, cuda_stream stream, cuda_event event, unsigned flags)
{
    IN_CONTEXT();
    EXPECT(event->alive && flags == 0);
    if (!event->recorded)
        return FAKE_OK;
    const struct fake_work work = {
        .kind = FAKE_WAIT, .event = event, .recorded = event->stream, .number = event->recorded};
    return fake_push(stream, &work);
}

/* Does what the event's stream has before it, and no more. Also where it fails, as a stream. */
FAKE(cuEventSynchronize, cuda_event event)
{
    ENTER();
    EXPECT(event->alive);
    cuda_stream stream = event->recorded ? event->stream : NULL;
    if (stream && stream->owner && stream->owner != fake_current())
        return FAKE_INVALID_HANDLE;
    while (stream && event->come < event->recorded && stream->first)
        do_first(stream);
    return planned_ ? planned_ : fake_context_state();
}

FAKE(cuEventDestroy_v2, cuda_event event)
{
    ENTER();
    EXPECT(event->alive);
    event->alive = false;
    fake_count(-1);
    return planned_;
}
