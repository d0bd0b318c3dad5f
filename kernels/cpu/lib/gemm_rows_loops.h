/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a matrix product of floats. A file gemm_rows_TYPE.c defines T, the C type of an element;
 * T_DTYPE, its number; and T_ROWS and T_PANELS, the functions' names; and includes this file.
 */
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/gemm_rows.h"
#include "kernels/cpu/lib/reduce_levels.h"

#define INLINE static inline __attribute__((always_inline))

#define COLUMNS 128 /* sums at a time */
/* Up to so many columns are computed one by one, in several rows at once. */
#define NARROW 4
#define ROWS 8

/* Terms [k, end) of n neighbouring columns of row i, from j on. Several at a time save loading and
 * storing sums. */
INLINE void add_columns(const struct gemm *g, int64_t i, int64_t j, int64_t n, int64_t k,
                        int64_t end, T *restrict sums)
{
    const T *a = (const T *)g->a + i * g->a_row;
    const T *b = (const T *)g->b + j * g->b_column;
    for (; g->b_column == 1 && end - k >= 4; k += 4) {
        const T w0 = a[k * g->a_column], w1 = a[(k + 1) * g->a_column];
        const T w2 = a[(k + 2) * g->a_column], w3 = a[(k + 3) * g->a_column];
        const T *b0 = b + k * g->b_row, *b1 = b0 + g->b_row, *b2 = b1 + g->b_row;
        const T *b3 = b2 + g->b_row;
        for (int64_t x = 0; x < n; x++)
            sums[x] = (((sums[x] + w0 * b0[x]) + w1 * b1[x]) + w2 * b2[x]) + w3 * b3[x];
    }
    for (; k < end; k++) {
        const T w = a[k * g->a_column], *from = b + k * g->b_row;
        if (g->b_column == 1)
            for (int64_t x = 0; x < n; x++)
                sums[x] += w * from[x];
        else
            for (int64_t x = 0; x < n; x++)
                sums[x] += w * from[x * g->b_column];
    }
}

/* The same of n rows, whose first terms are at a. `n` is a constant to the compiler. */
INLINE void add_some_rows(const struct gemm *g, int n, const T *a, const T *b, int64_t terms,
                          T *restrict sums)
{
    T kept[ROWS];
    for (int r = 0; r < n; r++)
        kept[r] = sums[r];
    for (; terms > 0; terms--, a += g->a_column, b += g->b_row)
        for (int r = 0; r < n; r++)
            kept[r] += a[r * g->a_row] * *b;
    for (int r = 0; r < n; r++)
        sums[r] = kept[r];
}

/* n rows from i on, in column j. */
INLINE void add_rows(const struct gemm *g, int64_t i, int64_t j, int64_t n, int64_t k, int64_t end,
                     T *restrict sums)
{
    const T *a = (const T *)g->a + i * g->a_row + k * g->a_column;
    const T *b = (const T *)g->b + j * g->b_column + k * g->b_row;
    if (n == ROWS) {
        add_some_rows(g, ROWS, a, b, end - k, sums);
        return;
    }
    int64_t r = 0;
    if (n & 4) {
        add_some_rows(g, 4, a, b, end - k, sums);
        r += 4;
    }
    if (n & 2) {
        add_some_rows(g, 2, a + r * g->a_row, b, end - k, sums + r);
        r += 2;
    }
    if (n & 1)
        add_some_rows(g, 1, a + r * g->a_row, b, end - k, sums + r);
}

INLINE void add_terms(const struct gemm *g, bool narrow, int64_t i, int64_t j, int64_t n, int64_t k,
                      int64_t end, T *sums)
{
    if (narrow)
        add_rows(g, i, j, n, k, end, sums);
    else
        add_columns(g, i, j, n, k, end, sums);
}

/* All terms of n results: columns from (i, j) on, or where they are narrow rows. */
INLINE const T *sums_of(const struct gemm *g, bool narrow, int64_t i, int64_t j, int64_t n,
                        T *memory)
{
    if (g->k <= REDUCTION_RADIX) { /* one level */
        memset(memory, 0, (size_t)n * sizeof(T));
        add_terms(g, narrow, i, j, n, 0, g->k, memory);
        return memory;
    }
    struct reduce_levels levels;
    reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, T_DTYPE), sizeof(T), n, memory);
    for (int64_t k = 0, count; k < g->k; k += count) {
        count = reduce_levels_room(&levels, g->k - k);
        add_terms(g, narrow, i, j, n, k, k + count, memory);
        reduce_levels_add(&levels, count);
    }
    return reduce_levels_end(&levels);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Where columns lie side by side, they are computed in tiles whose sums are registers. Those of 64
 * bytes are one wide: then elements of a are operands of multiplications where they lie, which
 * takes a fifth less time than to load each for two of them. Few rows are computed one by one, in
 * as many registers as there are columns, up to MOST_COLUMNS. */
#define WIDEST 16
#define MOST_SUMS 16
#define CHUNK ((int64_t)REDUCTION_RADIX * REDUCTION_RADIX) /* terms of two levels */

#define TILE(x) x##_of_32
#define WIDTH 32
#define TALL 6
#define WIDE 2
#define MOST_COLUMNS 8
#define ABREAST 1
#include "kernels/cpu/lib/gemm_rows_tiles.h"

#define TILE(x) x##_of_64
#define WIDTH 64
#define TALL 8
#define WIDE 1
#define MOST_COLUMNS 8
#define ABREAST 4
#include "kernels/cpu/lib/gemm_rows_tiles.h"

/* ---- Panels ---------------------------------------------------------------------------------- */

VECTOR_BY_WIDTH(panels, (const struct gemm_sweep *sweep, int64_t begin, int64_t end),
                (sweep, begin, end))

void T_PANELS(void *context, int64_t begin, int64_t end)
{
    panels(context, begin, end);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows of which no tiles are made. */
INLINE void other_rows(const struct gemm *g, int64_t begin, int64_t end)
{
    _Alignas(64) T memory[REDUCE_LEVELS * COLUMNS];
    T *c = (T *)g->c;
    if (g->n <= NARROW) {
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = begin; i < end; i += ROWS) {
                const int64_t n = end - i < ROWS ? end - i : ROWS;
                const T *sums = sums_of(g, true, i, j, n, memory);
                for (int64_t r = 0; r < n; r++)
                    c[(i + r) * g->n + j] = sums[r];
            }
        return;
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < g->n; j += COLUMNS) {
            const int64_t n = g->n - j < COLUMNS ? g->n - j : COLUMNS;
            memcpy(c + i * g->n + j, sums_of(g, false, i, j, n, memory), (size_t)n * sizeof(T));
        }
}

INLINE void rows_of_32(const struct gemm *g, int64_t begin, int64_t end)
{
    if (g->n <= NARROW || !takes_of_32(g, INT64_MAX))
        other_rows(g, begin, end);
    else if (takes_of_32(g, end - begin))
        tall_rows_of_32(g, begin, end);
    else
        single_rows_of_32(g, begin, end);
}

INLINE void rows_of_64(const struct gemm *g, int64_t begin, int64_t end)
{
    if (takes_of_64(g, end - begin))
        tall_rows_of_64(g, begin, end);
    else if (takes_of_64(g, INT64_MAX) && !takes_of_32(g, end - begin))
        single_rows_of_64(g, begin, end);
    else
        rows_of_32(g, begin, end);
}

VECTOR_BY_WIDTH(rows, (const struct gemm *g, int64_t begin, int64_t end), (g, begin, end))

void T_ROWS(void *context, int64_t begin, int64_t end)
{
    rows(context, begin, end);
}
