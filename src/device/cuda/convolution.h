/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card's library of convolutions, cuDNN 9 (cudnn.h), for those that are large enough; see
 * library.h. It is opened when a convolution is first worth it, which takes up to 150 ms and 300 MB
 * of the host's memory. float32 is computed as such, not in TF32, unless the session allows it, and
 * with the same bits each time.
 */
#ifndef TSSA_DEVICE_CUDA_CONVOLUTION_H
#define TSSA_DEVICE_CUDA_CONVOLUTION_H

#include "device/device.h"
#include "device/library.h"

/* Parts of struct device_library, for LIBRARY_CONV. */
bool cuda_convolution_is_there(char *why, size_t size);
bool cuda_convolution_is_worth_it(const struct conv_problem *problem);
struct library_primitive *cuda_convolution_make(struct device_context *context,
                                                const struct library_problem *problem);

/* What of it a context has; before the card is closed. */
void cuda_convolution_close(struct device_context *context);

#endif
