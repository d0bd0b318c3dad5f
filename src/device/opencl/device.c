/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL 1.2: any card that has a driver of it. Fuse ops are grids (device/grids), in the C of
 * codegen/clike/opencl.h; loops are driven by the host.
 */
#include "device/devices.h"
#include "device/grids/product.h"
#include "device/memory.h"
#include "device/opencl/opencl.h"

static const struct ir_fusion *lend(struct device_context *context)
{
    static const struct ir_fusion fusion = GRIDS_FUSION(&opencl_launcher);
    (void)context;
    return &fusion;
}

const struct device opencl_device = {
    .name = "opencl",
    .is_numbered = true,
    .counts = true,
    .grids = true,
    .alignment = 256,
    .launcher = &opencl_launcher,
    .connect = opencl_connect,
    .close = opencl_disconnect,
    .find_kernel = grids_find_kernel_or_text,
    .compile_waiting = grids_compile_waiting,
    .compiled = grids_compiled,
    .library = &grids_library,
    .fusion = lend,
    .stream_open = opencl_stream_open,
    .stream_close = opencl_stream_close,
    .stream_wait = opencl_stream_wait,
    .event_record = opencl_event_record,
    .event_await = opencl_event_await,
    .event_free = opencl_event_free,
    DEVICE_MEMORY(opencl),
};
