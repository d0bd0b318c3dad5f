/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the OpenCL device share. */
#ifndef TSSA_DEVICE_OPENCL_OPENCL_H
#define TSSA_DEVICE_OPENCL_OPENCL_H

#include "device/grids/grids.h"
#include "device/grids/launcher.h"
#include "device/opencl/opencl_api.h"

/* device_context.connected. */
struct opencl {
    struct opencl_api api;
    opencl_device_id device;
    opencl_context context;
    bool rounds_division; /* as IEEE 754 says, of float32, where it is asked to */
};

static inline struct opencl *opencl_of(const struct device_context *context)
{
    return context->connected;
}

/* A queue, in which all is done in order. */
struct opencl_stream {
    struct grids_stream base;
    opencl_queue queue;
};

static inline opencl_queue opencl_queue_of(const struct device_stream *stream)
{
    return ((const struct opencl_stream *)stream)->queue;
}

/* Bytes, which are there when it returns: a grids_read_fn. */
tssa_status *opencl_read(struct device_stream *stream, struct device_place from, void *to,
                         size_t size);

tssa_status *opencl_connect(struct device_context *context);
void opencl_disconnect(struct device_context *context);

tssa_status *opencl_stream_open(struct device_context *context, struct device_stream **stream);
void opencl_stream_close(struct device_stream *stream);
tssa_status *opencl_stream_wait(struct device_stream *stream);
tssa_status *opencl_event_record(struct device_stream *stream, struct device_event **event);
tssa_status *opencl_event_await(struct device_stream *stream, struct device_event *event);
void opencl_event_free(struct device_stream *recorded, struct device_event *event);

extern const struct launcher opencl_launcher;

#endif
