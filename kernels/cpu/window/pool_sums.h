/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of windows for one element type, which they are computed in: see pool_sum_loops.h. */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_SUMS_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_SUMS_H

#include "device/kernel.h"
#include "device/window.h"

/* Arrays are of `dtype`, `width` bytes an element. */
struct pool_sum_loops {
    tssa_dtype dtype;
    size_t width;
    /* In place: |x| ^ p, and the p-th root of such sums. */
    void (*raise)(void *x, int64_t n, double p);
    void (*root)(void *x, int64_t n, double p);
    /* The sums of all windows of a plane: of each row of a window from left to right, from 0 on,
     * then of its rows. `line`: memory for as many results. */
    void (*sums)(const struct window *window, const void *in, void *out, void *line);
    /* divisors[i] of counts[i]; infinity for none, so that the sum, 0, over it is 0. */
    void (*divisors)(const double *counts, int64_t n, void *divisors);
    /* In place: x / divisors. */
    void (*divide)(void *x, const void *divisors, int64_t n);
};

extern const struct pool_sum_loops pool_sum_loops_f32, pool_sum_loops_f64;

#endif
