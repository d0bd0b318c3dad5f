/* SPDX-License-Identifier: Apache-2.0 */
/* The device `cuda`: cards of NVIDIA's, by the driver's numbers. Fuse ops are grids (device/grids),
 * in CUDA C. */
#include "device/cuda/conditions.h"
#include "device/cuda/launcher.h"
#include "device/cuda/library.h"
#include "device/cuda/ranges.h"
#include "device/cuda/recording.h"
#include "device/devices.h"
#include "device/memory.h"

static const struct ir_fusion *lend(struct device_context *context)
{
    static const struct ir_fusion fusion = GRIDS_FUSION(&cuda_launcher);
    (void)context;
    return &fusion;
}

const struct device cuda_device = {
    .name = "cuda",
    .is_numbered = true,
    .counts = true,
    .grids = true,
    .alignment = 256,
    .operand_alignment = CUDA_OPERAND_ALIGNMENT,
    .launcher = &cuda_launcher,
    .connect = cuda_connect,
    .close = cuda_close,
    .find_kernel = grids_find_kernel_or_text,
    .compile_waiting = grids_compile_waiting,
    .compiled = grids_compiled,
    .library = &cuda_library,
    .fusion = lend,
    .ranges_open = cuda_ranges_open,
    .range_begin = cuda_range_begin,
    .range_end = cuda_range_end,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_wait = cuda_stream_wait,
    .event_record = cuda_event_record,
    .event_await = cuda_event_await,
    .event_free = cuda_event_free,
    .stream_follow = cuda_stream_follow,
    .stream_lead = cuda_stream_lead,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .record_bytes = cuda_record_bytes,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .record_while_begin = cuda_record_while_begin,
    .record_while_end = cuda_record_while_end,
    .record_if_begin = cuda_record_if_begin,
    .record_if_else = cuda_record_if_else,
    .record_if_end = cuda_record_if_end,
    .records_while = cuda_records_while,
    .records_if = cuda_records_if,
    DEVICE_MEMORY(cuda),
};
