/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of float32 planes too small for vectors of neighbouring ones (pool_taps.h): as many
 * planes as a vector has lanes are turned, so that each element of one is a vector. Folds are those
 * of pool_taps.h, in their order.
 */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_PLANES_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_PLANES_H

#include <stddef.h>

#include "device/window.h"
#include "kernels/cpu/window/pool_divisors.h"

#define POOL_PLANES 8   /* that are turned together */
#define POOL_COLUMNS 64 /* of results, at most */
#define POOL_ROWS 8     /* of a window */

struct pool_planes {
    const struct window *window;
    size_t scratch; /* bytes that planes need */
    /* Of each column of results: where the columns of its windows begin in a row, and how many of
     * these there are. */
    int64_t from[POOL_COLUMNS], columns[POOL_COLUMNS];
};

/* False: windows of another kind, or others are better. There are windows. */
bool pool_planes_plan(const struct window *window, struct pool_planes *plan);

/* Of POOL_PLANES planes: the maximum of each window, -INFINITY where it is empty. False: an element
 * may be a NaN, and nothing is written. */
bool pool_planes_max(const struct pool_planes *plan, const float *in, float *out, void *scratch);
/* The sum of each window, divided unless `by` is NULL. */
void pool_planes_sum(const struct pool_planes *plan, const float *in,
                     const struct pool_divisors *by, float *out, void *scratch);

#endif
