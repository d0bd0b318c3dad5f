/* SPDX-License-Identifier: Apache-2.0 */
/* How what is turned (CLIKE_TURNED) is cut into patches, which blocks take. */
#ifndef TSSA_DEVICE_GRIDS_PATCHES_H
#define TSSA_DEVICE_GRIDS_PATCHES_H

#include <stdint.h>

struct grids_patches {
    int64_t along, inner; /* as the launch is told */
    int shift;
    int64_t count;
};

/* Of n elements, so many of them along the turned axes and behind those. */
struct grids_patches grids_cut(int64_t n, int64_t along, int64_t inner);

#endif
