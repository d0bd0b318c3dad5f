/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize-19 of ai.onnx, and with it Resize-11 to 18, as any device computes it: attributes decoded
 * once, sizes resolved in a run. Sizes made from scales are floor(in * scale) in float, as ONNX's
 * own shape inference has them.
 */
#ifndef TSSA_DEVICE_RESIZE_H
#define TSSA_DEVICE_RESIZE_H

#include "device/resample.h"

enum resize_policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER };

struct resize {
    struct resample_options options;
    double extrapolation;
    enum resize_policy policy;
    bool has_axes;
    size_t n_axes;
    int64_t axes[TSSA_MAX_RANK];
};

tssa_status *resize_decode(const struct ir_op *op, struct resize *state);

/* Elements of others than `in` are the host's; those may be NULL. */
struct resize_operands {
    const struct tensor *in, *roi, *scales, *sizes;
};

/* All axes of the tensor: sizes, scales, regions of interest. */
tssa_status *resize_resolve(const struct resize *state, const struct resize_operands *operands,
                            struct resample_axis *all);

/* Is anything to be done along it? */
bool resize_changes(const struct resample_axis *axis);
/* These axes, in the order in which they are resampled: those that shrink first. How many. */
int resize_order(int rank, const struct resample_axis *axes, int *order);

#endif
