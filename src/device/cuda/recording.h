/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings (device/device.h): the driver captures what is asked of a stream as a graph, of which
 * a launch costs the host about what one kernel does. Each kernel's parameters are those of the
 * capture, so bytes of the host's that kernels read are kept beside it, in memory of the card.
 */
#ifndef TSSA_DEVICE_CUDA_RECORDING_H
#define TSSA_DEVICE_CUDA_RECORDING_H

#include "device/cuda/card.h"

tssa_status *cuda_record_begin(struct device_stream *stream);
tssa_status *cuda_record_end(struct device_stream *stream, struct device_recording **recording);
tssa_status *cuda_record_bytes(struct device_stream *stream, const void *bytes, size_t size,
                               struct device_place *place);
tssa_status *cuda_replay(struct device_stream *stream, const struct device_recording *recording);
void cuda_recording_free(struct device_stream *stream, struct device_recording *recording);

/* While the stream records: gives memory back when it has ended, since a capture cannot wait. */
void cuda_record_release(struct device_stream *stream, cuda_address memory);
/* Is it the body of a conditional node that is recorded? */
static inline bool cuda_record_nested(const struct cuda_queue *queue)
{
    return queue->body != NULL;
}
/* TSSA_UNSUPPORTED while it records, of what the host wants to wait for. */
tssa_status *cuda_record_refuse(const struct device_stream *stream);

#endif
