/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maxima of windows of many elements over float32 planes (pool_taps.h has those of few), many
 * neighbouring ones at a time.
 */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_ROWS_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_ROWS_H

#include <stddef.h>

#include "base/value.h"
#include "device/window.h"

struct pool_rows {
    const struct window *window;
    bool pads; /* planes are copied into the middle of neutral elements */
    bool flat; /* rows of the result are computed as one, and what lies between */
    int64_t plane[WINDOW_MAX_RANK];  /* sizes of what is read: the plane, or its padded copy */
    int64_t plane_count, run_length; /* elements of it, and of what is computed at a time */
    size_t scratch;                  /* bytes that a plane needs, aligned as doubles are */
};

/* False: not worth it, or too large. There are windows, and they read at least one element each. */
bool pool_rows_plan(const struct window *window, struct pool_rows *rows);

/* The maximum of each window of so many planes; a NaN is one. -INFINITY where a window is empty. */
void pool_rows_max(const struct pool_rows *rows, const float *in, float *out, int64_t planes,
                   void *scratch);
#endif
