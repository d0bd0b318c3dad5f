/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign as any device computes it: attributes decoded once. */
#ifndef TSSA_DEVICE_ROI_ALIGN_H
#define TSSA_DEVICE_ROI_ALIGN_H

#include "device/kernel.h"

struct roi_attrs {
    bool half_pixel, max;
    int64_t height, width, sampling;
    double scale;
};

tssa_status *roi_decode(const struct ir_op *op, struct roi_attrs *attrs);

#endif
