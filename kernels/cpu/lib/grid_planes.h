/* SPDX-License-Identifier: Apache-2.0 */
/* float32 planes sampled at many points, some channels at a time: the bits of sample_floats_at. */
#ifndef TSSA_KERNELS_CPU_LIB_GRID_PLANES_H
#define TSSA_KERNELS_CPU_LIB_GRID_PLANES_H

#include "kernels/cpu/lib/sample.h"

/* `channels` planes of in_count elements, and as many of out_count results. */
struct grid_planes {
    const float *in;
    float *out;
    int64_t channels, in_count, out_count;
};

#define GRID_POINTS 64 /* at most, at a time */

/* Result p of each channel is its plane at rows axes[2 * p] and columns axes[2 * p + 1]; p < n <=
 * GRID_POINTS. */
void grid_planes_sample(const struct grid_planes *planes, const struct sample_axis *axes,
                        int64_t n);

#endif
