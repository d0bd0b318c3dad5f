/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of NVTX, which NVIDIA's profilers show beside what the card does: struct
 * device.ranges_open and so on. They are the calling thread's, and nest. */
#ifndef TSSA_DEVICE_CUDA_RANGES_H
#define TSSA_DEVICE_CUDA_RANGES_H

#include "device/device.h"

/* Of the card; NULL: the library is not there. */
struct cuda_ranges {
    int (*nvtxRangePushA)(const char *name);
    int (*nvtxRangePop)(void);
};

bool cuda_ranges_open(struct device_context *context);
void cuda_range_begin(const struct device_context *context, const char *name);
void cuda_range_end(const struct device_context *context);

#endif
