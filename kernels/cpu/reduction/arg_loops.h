/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of ArgMax and ArgMin for one element type. A file arg_TYPE.c defines what
 * ir/scalar/ops.h wants; INDEX, an integer of its width, for vectors of both; and T_TABLE, the
 * table to fill; and includes this file.
 */
#include "base/clones.h"
#include "ir/scalar/ops.h"
#include "kernels/cpu/reduction/arg_reduce.h"

/* Where `best` is, which is there: comparisons are all made, so that they become vectors. */
VECTOR_FUNCTION(int64_t, find_first, (const void *from, int64_t n, const void *best),
                (from, n, best))
{
    const T *x = from, b = *(const T *)best;
    INDEX at = (INDEX)n;
    for (int64_t i = 0; i < n; i++) {
        INDEX here = (x[i] == b) | ((int)ISNAN(x[i]) & (int)ISNAN(b)) ? (INDEX)i : (INDEX)n;
        at = here < at ? here : at;
    }
    return (int64_t)at;
}

VECTOR_FUNCTION(int64_t, find_last, (const void *from, int64_t n, const void *best),
                (from, n, best))
{
    const T *x = from, b = *(const T *)best;
    INDEX at = -1;
    for (int64_t i = 0; i < n; i++) {
        INDEX here = (x[i] == b) | ((int)ISNAN(x[i]) & (int)ISNAN(b)) ? (INDEX)i : (INDEX)-1;
        at = here > at ? here : at;
    }
    return (int64_t)at;
}

/* A NaN is beyond all, the first or the last one. */
#define TAKE_FIRST(v, beyond, b) (((v beyond b) | (int)ISNAN(v)) & !ISNAN(b))
#define TAKE_LAST(v, beyond, b) ((v beyond b) | (v == b) | (int)ISNAN(v))
#define ROWS(name, take, beyond)                                                                   \
    VECTOR_PROCEDURE(name,                                                                         \
                     (void *restrict best, void *restrict at, const void *restrict from,           \
                      int64_t stride, int64_t rows, int64_t n),                                    \
                     (best, at, from, stride, rows, n))                                            \
    {                                                                                              \
        T *restrict b = best;                                                                      \
        INDEX *restrict indices = at;                                                              \
        const T *restrict x = from;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            b[i] = x[i];                                                                           \
            indices[i] = 0;                                                                        \
        }                                                                                          \
        for (int64_t j = 1; j < rows; j++) {                                                       \
            x += stride;                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T v = x[i], old = b[i];                                                      \
                const int taken = take(v, beyond, old);                                            \
                b[i] = taken ? v : old;                                                            \
                indices[i] = taken ? (INDEX)j : indices[i];                                        \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(rows_max_first, TAKE_FIRST, >)
ROWS(rows_max_last, TAKE_LAST, >)
ROWS(rows_min_first, TAKE_FIRST, <)
ROWS(rows_min_last, TAKE_LAST, <)

static void widen(const void *at, int64_t *to, int64_t n)
{
    const INDEX *from = at;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

const struct arg_loops T_TABLE = {
    {find_first, find_last},
    {{rows_min_first, rows_min_last}, {rows_max_first, rows_max_last}},
    widen,
};
