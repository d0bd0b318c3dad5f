/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card's libraries: of convolutions, cuDNN (convolution.h), and of products, cuBLASLt, for
 * those that are large enough; what it does not take, and all where it is not installed, is
 * computed by texts (device/grids/multiply.h). It is opened when a product is first worth it, which
 * takes 60 ms and 94 MB of the host's memory. float32 is computed as such, not in TF32, unless the
 * session allows it.
 */
#ifndef TSSA_DEVICE_CUDA_LIBRARY_H
#define TSSA_DEVICE_CUDA_LIBRARY_H

#include "device/device.h"
#include "device/library.h"

extern const struct device_library cuda_library;

/* What of it a context has; before the card is closed. */
void cuda_library_close(struct device_context *context);

#endif
