/* SPDX-License-Identifier: Apache-2.0 */
/* The first few of lines that lie side by side, in the order of rank.h. */
#ifndef TSSA_KERNELS_CPU_SELECTION_TOPK_ROWS_H
#define TSSA_KERNELS_CPU_SELECTION_TOPK_ROWS_H

#include "base/dtype.h"

#define TOPK_ROWS_MOST 8   /* of a line */
#define TOPK_ROWS_LEAST 8  /* lines: fewer are no vectors */
#define TOPK_ROWS_LINES 64 /* that are looked at together, at most */

struct topk_rows {
    const void *x; /* the first row: an element of each line */
    tssa_dtype dtype;
    int64_t n, step; /* rows, and elements from one to the next; n <= INT32_MAX */
    int64_t lines;
    bool descending;
};

/* at[i * TOPK_ROWS_LINES + l]: in which row the i-th of line l is, for i < k <= n. */
void topk_rows(const struct topk_rows *rows, int64_t k, int64_t *at);

#endif
