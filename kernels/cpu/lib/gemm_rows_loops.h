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
/* Where columns lie side by side, they are computed in tiles whose sums are registers: of TALL rows
 * and WIDE vectors, or where there are fewer rows of one row and up to WIDEST vectors. */
#define TALL 6
#define WIDE 2
#define WIDEST 8
#define MOST_SUMS (TALL * WIDE)
#define LANES ((int)(32 / sizeof(T)))
typedef T lanes __attribute__((vector_size(32)));
/* Where elements lie. Several copied by memcpy to vectors went through memory. */
typedef T lanes_at __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

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

/* Sums so many terms of `tall` rows from a on, and of `wide` vectors from b on: to sums, or if
 * `adds` added to them. `tall` and `wide` are constants to the compiler, and `step` where it is 1.
 */
INLINE void tile_terms(const struct gemm *g, int tall, int wide, int64_t step, const T *a,
                       const T *b, int64_t terms, bool adds, lanes *restrict sums)
{
    const int64_t row = g->a_row, down = g->b_row;
    const int upper = (tall + 1) / 2;
    const T *low = a + upper * row;
    lanes kept[MOST_SUMS] = {{0}};
    for (; terms > 0; terms--, a += step, low += step, b += down) {
        lanes from[WIDEST];
        for (int v = 0; v < wide; v++)
            from[v] = *(const lanes_at *)(b + v * LANES);
        for (int r = 0; r < upper; r++) {
            for (int v = 0; v < wide; v++)
                kept[r * wide + v] += a[r * row] * from[v];
            for (int v = 0; v < wide && r + upper < tall; v++)
                kept[(r + upper) * wide + v] += low[r * row] * from[v];
        }
    }
    for (int r = 0; r < tall; r++)
        for (int v = 0; v < wide; v++)
            sums[r * wide + v] =
                adds ? sums[r * wide + v] + kept[r * wide + v] : kept[r * wide + v];
}

#define CHUNK ((int64_t)REDUCTION_RADIX * REDUCTION_RADIX) /* terms of two levels */

INLINE void tile_chunk(const struct gemm *g, int tall, int wide, int64_t step, const T *a,
                       const T *b, int64_t terms, lanes *restrict sums)
{
    for (int64_t k = 0; k < terms || k == 0; k += REDUCTION_RADIX) {
        const int64_t rest = terms - k;
        tile_terms(g, tall, wide, step, a + k * step, b + k * g->b_row,
                   rest < REDUCTION_RADIX ? rest : REDUCTION_RADIX, k > 0, sums);
    }
}

/* Chunks, whose sums are added in the levels above theirs. */
INLINE const lanes *tile_sums(const struct gemm *g, int tall, int wide, int64_t step, const T *a,
                              const T *b, lanes *chunk, lanes *memory)
{
    const struct reduce_loops *loops = reduce_loops_of(REDUCTION_Sum, T_DTYPE);
    const int64_t n = (int64_t)tall * wide * LANES;
    struct reduce_levels levels;
    for (int64_t k = 0, count; k < g->k || k == 0; k += count) {
        count = g->k - k < CHUNK ? g->k - k : CHUNK;
        tile_chunk(g, tall, wide, step, a + k * step, b + k * g->b_row, count, chunk);
        if (count == g->k)
            return chunk;
        if (k == 0)
            reduce_levels_begin(&levels, loops, sizeof(T), n, memory);
        loops->join(levels.memory, chunk, n);
        reduce_levels_add(&levels, 1);
    }
    return reduce_levels_end(&levels);
}

/* Rows [begin, end) in so many columns from j on. What does not fill a tile at the end is computed
 * with some of what is before it, again. */
INLINE void tile_rows(const struct gemm *g, int tall, int wide, int64_t step, int64_t begin,
                      int64_t end, int64_t j)
{
    lanes chunk[MOST_SUMS], memory[REDUCE_LEVELS * MOST_SUMS];
    for (int64_t at = begin; at < end; at += tall) {
        const int64_t i = at + tall < end ? at : end - tall;
        const T *a = (const T *)g->a + i * g->a_row, *b = (const T *)g->b + j;
        const lanes *sums = tile_sums(g, tall, wide, step, a, b, chunk, memory);
        for (int r = 0; r < tall; r++)
            memcpy((T *)g->c + (i + r) * g->n + j, &sums[r * wide], (size_t)wide * sizeof *sums);
    }
}

/* All columns from j on. */
INLINE void tiles(const struct gemm *g, int tall, int64_t step, int64_t begin, int64_t end,
                  int64_t j)
{
    for (; g->n - j > LANES && g->n >= WIDE * LANES; j += WIDE * LANES)
        tile_rows(g, tall, WIDE, step, begin, end,
                  j + WIDE * LANES < g->n ? j : g->n - WIDE * LANES);
    for (; j < g->n; j += LANES)
        tile_rows(g, tall, 1, step, begin, end, j + LANES < g->n ? j : g->n - LANES);
}

/* One by one: there are few. */
INLINE void tiles_of_rows(const struct gemm *g, int64_t begin, int64_t end)
{
    int64_t j = 0;
    for (; g->n - j >= WIDEST * LANES; j += WIDEST * LANES)
        tile_rows(g, 1, WIDEST, g->a_column, begin, end, j);
    for (; g->n - j >= WIDEST / 2 * LANES; j += WIDEST / 2 * LANES)
        tile_rows(g, 1, WIDEST / 2, g->a_column, begin, end, j);
    tiles(g, 1, g->a_column, begin, end, j);
}

/* ---- Panels ---------------------------------------------------------------------------------- */

/* `step` is a constant to the compiler where it is 1. */
INLINE void panels_of_row(const struct gemm *g, int64_t step, int64_t begin, int64_t end)
{
    const int64_t width = GEMM_PANEL_BYTES / sizeof(T);
    struct gemm panel = *g;
    lanes chunk[MOST_SUMS], memory[REDUCE_LEVELS * MOST_SUMS];
    panel.b_row = width;
    for (int64_t j = begin * width; j < g->n && j < end * width; j += width) {
        const T *b = (const T *)g->panels + j * g->k;
        const lanes *sums =
            tile_sums(&panel, 1, GEMM_PANEL_BYTES / 32, step, g->a, b, chunk, memory);
        const int64_t n = g->n - j < width ? g->n - j : width;
        memcpy((T *)g->c + j, sums, (size_t)n * sizeof(T));
    }
}

VECTOR_PROCEDURE(panels, (const struct gemm *g, int64_t begin, int64_t end), (g, begin, end))
{
    if (g->a_column == 1)
        panels_of_row(g, 1, begin, end);
    else
        panels_of_row(g, g->a_column, begin, end);
}

void T_PANELS(void *context, int64_t begin, int64_t end)
{
    panels(context, begin, end);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

VECTOR_PROCEDURE(rows, (const struct gemm *g, int64_t begin, int64_t end), (g, begin, end))
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
    if (g->n >= LANES && g->b_column == 1) {
        if (end - begin < TALL)
            tiles_of_rows(g, begin, end);
        else if (g->a_column == 1)
            tiles(g, TALL, 1, begin, end, 0);
        else
            tiles(g, TALL, g->a_column, begin, end, 0);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < g->n; j += COLUMNS) {
            const int64_t n = g->n - j < COLUMNS ? g->n - j : COLUMNS;
            memcpy(c + i * g->n + j, sums_of(g, false, i, j, n, memory), (size_t)n * sizeof(T));
        }
}

void T_ROWS(void *context, int64_t begin, int64_t end)
{
    rows(context, begin, end);
}
