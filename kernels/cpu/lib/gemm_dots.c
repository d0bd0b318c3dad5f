/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a matrix times a vector, in REDUCTION_LANES sums each. Several rows at a time read the
 * same bank of the cache, and were slower. The lanes of eight rows are added together, so that the
 * last additions are those of full vectors, too.
 */
#include "kernels/cpu/lib/gemm_dots.h"

#include <string.h>

#include "base/clones.h"
#include "ir/reduction.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES 8
#define VECTORS (REDUCTION_LANES / LANES) /* of a row's sums */
#define ROWS LANES                        /* whose lanes are added together */

typedef float lanes __attribute__((vector_size(4 * LANES)));
/* Where elements lie. */
typedef float lanes_at __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
/* Two vectors in one, where there is AVX-512. */
typedef float pair __attribute__((vector_size(8 * LANES)));
typedef float pair_at __attribute__((vector_size(8 * LANES), aligned(4), may_alias));

struct dots {
    const float *matrix, *vector; /* rows of `terms` neighbours, each times the vector's */
    int64_t stride, terms;
    float *out;
};

bool gemm_dots_takes(const struct gemm *gemm)
{
    /* What does not end with a vector is slow here, and what is longer has further sums. */
    return (gemm->n == 1 || gemm->m == 1) && gemm->a_column == 1 && gemm->b_row == 1 &&
           gemm->k % LANES == 0 && gemm->k >= REDUCTION_LANES &&
           gemm->k <= REDUCTION_RADIX * REDUCTION_LANES;
}

/* The sums of a row, to what lanes k, k + 8, k + 16 and k + 24 come to. */
INLINE void add_row(const struct dots *d, const float *x, lanes *out)
{
    const float *y = d->vector;
    lanes sums[VECTORS] = {{0}};
    int64_t n = d->terms;
    for (; n >= REDUCTION_LANES; n -= REDUCTION_LANES, x += REDUCTION_LANES, y += REDUCTION_LANES)
        for (int v = 0; v < VECTORS; v++)
            sums[v] += *(const lanes_at *)(x + v * LANES) * *(const lanes_at *)(y + v * LANES);
    for (int v = 0; v < VECTORS - 1; v++)
        if (v * LANES < n)
            sums[v] += *(const lanes_at *)(x + v * LANES) * *(const lanes_at *)(y + v * LANES);
    *out = (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* The same of rows that are whole steps. */
INLINE void add_whole_row(const struct dots *d, const float *x, lanes *out)
{
    pair sums[VECTORS / 2] = {{0}};
    for (int64_t k = 0; k < d->terms; k += REDUCTION_LANES)
        for (int v = 0; v < VECTORS / 2; v++)
            sums[v] += *(const pair_at *)(x + k + 2 * v * LANES) *
                       *(const pair_at *)(d->vector + k + 2 * v * LANES);
    const pair sum = sums[0] + sums[1];
    *out = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7) +
           __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* Lanes k and k + 4, then + 2, then + 1, of eight rows: to their results. */
INLINE void halve(const lanes *row, lanes *out)
{
    lanes four[4], two[2];
    for (int i = 0; i < 4; i++)
        four[i] = __builtin_shufflevector(row[i], row[i + 4], 0, 1, 2, 3, 8, 9, 10, 11) +
                  __builtin_shufflevector(row[i], row[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    for (int i = 0; i < 2; i++) /* rows i, i + 2, then i + 4, i + 6 */
        two[i] = __builtin_shufflevector(four[i], four[i + 2], 0, 1, 8, 9, 4, 5, 12, 13) +
                 __builtin_shufflevector(four[i], four[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    const lanes even = __builtin_shufflevector(two[0], two[1], 0, 8, 2, 10, 4, 12, 6, 14);
    const lanes odd = __builtin_shufflevector(two[0], two[1], 1, 9, 3, 11, 5, 13, 7, 15);
    *out = even + odd;
}

/* `paired` is a constant to the compiler. */
INLINE void some_rows(const struct dots *d, bool paired, int64_t i, int n, lanes *row)
{
    for (int r = 0; r < n; r++)
        if (paired)
            add_whole_row(d, d->matrix + (i + r) * d->stride, row + r);
        else
            add_row(d, d->matrix + (i + r) * d->stride, row + r);
}

/* What does not fill eight rows at the end is computed with some of what is before it, again. */
INLINE void all_rows(const struct dots *d, bool paired, int64_t begin, int64_t end)
{
    lanes row[ROWS], sums;
    if (end - begin < ROWS) {
        memset(row, 0, sizeof row);
        some_rows(d, paired, begin, (int)(end - begin), row);
        halve(row, &sums);
        memcpy(d->out + begin, &sums, (size_t)(end - begin) * sizeof *d->out);
        return;
    }
    for (int64_t at = begin; at < end; at += ROWS) {
        const int64_t i = at + ROWS < end ? at : end - ROWS;
        some_rows(d, paired, i, ROWS, row);
        halve(row, &sums);
        memcpy(d->out + i, &sums, sizeof sums);
    }
}

INLINE void rows_of_32(const struct dots *d, int64_t begin, int64_t end)
{
    all_rows(d, false, begin, end);
}

INLINE void rows_of_64(const struct dots *d, int64_t begin, int64_t end)
{
    if (d->terms % REDUCTION_LANES == 0)
        all_rows(d, true, begin, end);
    else
        all_rows(d, false, begin, end);
}

VECTOR_BY_WIDTH(rows, (const struct dots *d, int64_t begin, int64_t end), (d, begin, end))

void gemm_dots_f32(void *context, int64_t begin, int64_t end)
{
    const struct gemm *g = context;
    const bool column = g->n == 1;
    const struct dots d = {.matrix = column ? g->a : g->b,
                           .vector = column ? g->b : g->a,
                           .stride = column ? g->a_row : g->b_column,
                           .terms = g->k,
                           .out = g->c};
    rows(&d, begin, end);
}
