/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sum of each window is divided by for its mean: how many of its elements lie in the
 * input, or in the padding where that counts. Rows of windows that differ in where they are but not
 * in that share a line, so that few numbers are made and read, however many windows there are.
 */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_DIVISORS_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_DIVISORS_H

#include "device/kernel.h"
#include "device/window.h"

struct pool_sum_loops;

struct pool_divisors {
    struct buffer *memory;
    /* Of the loops' type; for none infinity, so that the sum, 0, over it is 0. */
    const void *lines;
    /* Of each row of results, all axes but the last: where its line begins, in elements. */
    const int64_t *row;
};

/* Lines are filled up to a multiple of so many elements. */
#define POOL_DIVISORS 16

/* There are windows. */
tssa_status *pool_divisors_make(struct kernel_args *args, const struct pool_sum_loops *loops,
                                const struct window *window, bool include_pad,
                                struct pool_divisors *divisors);
void pool_divisors_release(struct pool_divisors *divisors);

#endif
