/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of devices that have done what is asked of them when the call returns: there is nothing
 * to wait for. */
#include "device/memory.h"

tssa_status *device_ready_stream_open(struct device_context *context, struct device_stream **stream)
{
    *stream = allocator_alloc(context->allocator, sizeof **stream);
    TRY_ALLOC(*stream);
    **stream = (struct device_stream){.context = context};
    return NULL;
}

void device_ready_stream_close(struct device_stream *stream)
{
    if (stream)
        allocator_free(stream->context->allocator, stream);
}

tssa_status *device_ready_stream_wait(struct device_stream *stream)
{
    (void)stream;
    return NULL;
}

/* An event has come when it is recorded, so there is nothing to remember of it. */
tssa_status *device_ready_event_record(struct device_stream *stream, struct device_event **event)
{
    *event = (struct device_event *)stream;
    return NULL;
}

tssa_status *device_ready_event_await(struct device_stream *stream, struct device_event *event)
{
    (void)stream;
    (void)event;
    return NULL;
}

void device_ready_event_free(struct device_stream *recorded, struct device_event *event)
{
    (void)recorded;
    (void)event;
}
