/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of ArgMax and ArgMin for one element type. */
#ifndef TSSA_KERNELS_CPU_REDUCTION_ARG_REDUCE_H
#define TSSA_KERNELS_CPU_REDUCTION_ARG_REDUCE_H

#include <stdint.h>

/* Indices are integers of the elements' width in the loops. */
struct arg_loops {
    /* [last]: the first or last of n neighbours that equal *best; there is one. */
    int64_t (*find[2])(const void *x, int64_t n, const void *best);
    /* [largest][last]: at[i] = which of x[i], x[i + stride], ... is the extreme; best[i], what it
     * is. */
    void (*rows[2][2])(void *restrict best, void *restrict at, const void *restrict x,
                       int64_t stride, int64_t rows, int64_t n);
    void (*widen)(const void *at, int64_t *to, int64_t n);
};

extern const struct arg_loops arg_loops_f32, arg_loops_f64, arg_loops_i32, arg_loops_i64;
extern const struct arg_loops arg_loops_u64;

#endif
