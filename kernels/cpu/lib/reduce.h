/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: the rows of ir/reduction.def, in the order of elements that is written there. Kernels
 * that sum, or look for the largest, do it here, so that one order is everywhere.
 */
#ifndef TSSA_KERNELS_CPU_LIB_REDUCE_H
#define TSSA_KERNELS_CPU_LIB_REDUCE_H

#include "base/team.h"
#include "base/value.h"
#include "ir/reduction.h"
#include "kernels/cpu/lib/axes.h"

/*
 * A row's loops for one element type. Elements, accumulators and shifts are of that type. `shift`
 * is S per result, NULL where the row has none.
 */
struct reduce_loops {
    /* to[i] = what the n <= REDUCTION_RADIX * REDUCTION_LANES neighbours from x + i * stride on are
     * combined to. */
    void (*lines)(void *to, const void *x, int64_t stride, int64_t lines, int64_t n,
                  const void *shift);
    /* n neighbours to REDUCTION_LANES accumulators; every step but the last one is full. */
    void (*fold)(void *lanes, const void *x, int64_t n, const void *shift);
    /* a[i] with x[i], x[i + stride], ...: as many as there are rows. */
    void (*rows)(void *a, const void *x, int64_t stride, int64_t rows, int64_t n,
                 const void *shift);
    /* a[i] with b[i]. */
    void (*join)(void *restrict a, const void *restrict b, int64_t n);
    /* REDUCTION_LANES accumulators to the first one. */
    void (*halve)(void *lanes);
    void (*fill)(void *a, int64_t n); /* with the identity */
    /* `after`, of what `count` elements were combined to. */
    void (*finish)(void *a, int64_t n, int64_t count, const void *shift);
};

extern const struct reduce_loops reduce_loops_f32[REDUCTION_ROWS], reduce_loops_f64[REDUCTION_ROWS];
extern const struct reduce_loops reduce_loops_i32[REDUCTION_ROWS], reduce_loops_i64[REDUCTION_ROWS];
extern const struct reduce_loops reduce_loops_u64[REDUCTION_ROWS];

/* Loops for FLOAT, DOUBLE, INT32, INT64 and UINT64; NULL for others. */
const struct reduce_loops *reduce_loops_of(enum reduction_row row, tssa_dtype dtype);

/*
 * out[i] = the row over n neighbours from x + i * stride on, for i < lines, `after` included.
 * Elements of `dtype`, one that has loops; shift as above, also for rows whose shift is another
 * row.
 */
void reduce_lines(enum reduction_row row, tssa_dtype dtype, void *out, const void *x,
                  int64_t stride, int64_t lines, int64_t n, const void *shift);

/* The same of columns, in the order of an axis that is not the innermost one: out[i] = the row over
 * x[i], x[i + stride], ..., n of them, for i < columns. */
void reduce_columns(enum reduction_row row, tssa_dtype dtype, void *out, const void *x,
                    int64_t stride, int64_t columns, int64_t n, const void *shift);

/*
 * Reduces the axes of `reduced`, per element of `kept`, into `out`, of any type that
 * convert_elements knows, on a team (NULL: none). `shift` is S per result, of reduction_type(), for
 * rows to which it is given; else NULL.
 */
void reduce_tensor(const struct team *team, enum reduction_row row, const struct tensor *in,
                   const struct axis_nest *kept, const struct axis_nest *reduced, const void *shift,
                   struct tensor *out);

#endif
