/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of few rows and columns over float32 planes, many neighbouring ones at a time: the
 * elements of each row of a window are folded from left to right, then its rows.
 */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_TAPS_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_TAPS_H

#include <stddef.h>

#include "device/window.h"
#include "kernels/cpu/window/pool_divisors.h"

#define POOL_TAPS 64 /* of a row of a window, and rows of one, at most */

/* Rows are copied into the middle of neutral elements, columns sorted by their remainder by the
 * stride. */
struct pool_taps {
    const struct window *window;
    int64_t plane[WINDOW_MAX_RANK]; /* sizes of what windows read, padding included */
    int64_t pitch;      /* between a row's columns of one remainder and those of the next one */
    int64_t row_length; /* between rows of the copy */
    int64_t rows;       /* of the copy */
    int64_t blocks;     /* of results, that a row of them takes */
    size_t scratch;     /* bytes that planes need */
    /* Where a window's columns lie in a row, and its rows among the rows. */
    int64_t n_columns, columns[POOL_TAPS], n_rows, window_rows[POOL_TAPS];
};

/* False: windows of another kind, or a copy that is too large. There are windows. */
bool pool_taps_plan(const struct window *window, struct pool_taps *taps);

/* The maximum of each window of so many planes; a NaN is one. -INFINITY where a window is empty. */
void pool_taps_max(const struct pool_taps *taps, const float *in, float *out, int64_t planes,
                   void *scratch);
/* Before the sums of one plane after the other in the same memory. */
void pool_taps_begin(const struct pool_taps *taps, float neutral, void *scratch);
/* The sum of each window of a plane, in the order of pool_sums.h; begun with 0. Divided, unless
 * `by` is NULL. */
void pool_taps_sum(const struct pool_taps *taps, const float *in, const struct pool_divisors *by,
                   float *out, void *scratch);

#endif
