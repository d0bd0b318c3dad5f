/* SPDX-License-Identifier: Apache-2.0 */
#include "device/opencl/opencl.h"

tssa_status *opencl_stream_open(struct device_context *context, struct device_stream **stream)
{
    struct opencl *cl = opencl_of(context);
    struct opencl_stream *made = allocator_calloc(context->allocator, 1, sizeof *made);
    opencl_result result = 0;
    TRY_ALLOC(made);
    made->base.stream.context = context;
    made->queue = cl->api.clCreateCommandQueue(cl->context, cl->device, 0, &result);
    tssa_status *status = opencl_status(result, "clCreateCommandQueue");
    if (!status)
        status = grids_stream_open(&made->base);
    if (status)
        opencl_stream_close(&made->base.stream);
    else
        *stream = &made->base.stream;
    return status;
}

void opencl_stream_close(struct device_stream *stream)
{
    struct opencl_stream *own = (struct opencl_stream *)stream;
    if (!stream)
        return;
    struct opencl *cl = opencl_of(stream->context);
    if (own->queue)
        cl->api.clFinish(own->queue);
    grids_stream_close(&own->base);
    if (own->queue)
        cl->api.clReleaseCommandQueue(own->queue);
    allocator_free(stream->context->allocator, own);
}

tssa_status *opencl_stream_wait(struct device_stream *stream)
{
    TRY(OPENCL(&opencl_of(stream->context)->api, clFinish, opencl_queue_of(stream)));
    return grids_stream_failed((struct grids_stream *)stream, opencl_read);
}

/* Handles of OpenCL are pointers: an event is one. */
tssa_status *opencl_event_record(struct device_stream *stream, struct device_event **event)
{
    const struct opencl_api *api = &opencl_of(stream->context)->api;
    opencl_event made = NULL;
    TRY(OPENCL(api, clEnqueueMarkerWithWaitList, opencl_queue_of(stream), 0, NULL, &made));
    *event = (struct device_event *)made;
    return OPENCL(api, clFlush, opencl_queue_of(stream)); /* so that it comes, whoever waits */
}

tssa_status *opencl_event_await(struct device_stream *stream, struct device_event *event)
{
    opencl_event recorded = (opencl_event)event;
    return OPENCL(&opencl_of(stream->context)->api, clEnqueueBarrierWithWaitList,
                  opencl_queue_of(stream), 1, &recorded, NULL);
}

void opencl_event_free(struct device_stream *recorded, struct device_event *event)
{
    if (event)
        opencl_of(recorded->context)->api.clReleaseEvent((opencl_event)event);
}
