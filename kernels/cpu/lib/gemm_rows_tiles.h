/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a matrix product, whose sums are registers of one width. gemm_rows_loops.h defines
 *
 *     TILE(x)             a name of the width
 *     WIDTH               its bytes
 *     TALL, WIDE          a tile's rows and registers of columns
 *     MOST_COLUMNS        registers of columns of rows that are computed one by one, at most
 *     ABREAST             panels that are summed at a time
 *
 * and includes this file for each width.
 */
#define lanes TILE(lanes)
#define lanes_at TILE(lanes_at)
#define LANES ((int)(WIDTH / sizeof(T)))

typedef T lanes __attribute__((vector_size(WIDTH)));
/* Where elements lie. Several copied by memcpy to vectors went through memory. */
typedef T lanes_at __attribute__((vector_size(WIDTH), aligned(sizeof(T)), may_alias));

/* Vectors of a row of a panel. */
#define IN_PANEL (GEMM_PANEL_BYTES / WIDTH)

/* Where vector v lies, from b on: side by side, or in panels, which begin `apart` elements one
 * behind the other; 0: side by side. */
INLINE const T *TILE(tile_place)(const T *b, int v, int64_t apart)
{
    return apart ? b + v / IN_PANEL * apart + v % IN_PANEL * LANES : b + v * LANES;
}

/* Sums so many terms of `tall` rows from a on, and of `wide` vectors from b on: to sums, or if
 * `adds` added to them. `tall` and `wide` are constants to the compiler, and `step` where it is 1.
 */
INLINE void TILE(tile_terms)(const struct gemm *g, int tall, int wide, int64_t step, int64_t apart,
                             const T *a, const T *b, int64_t terms, bool adds, lanes *restrict sums)
{
    const int64_t row = g->a_row, down = g->b_row;
    const int upper = (tall + 1) / 2;
    const T *low = a + upper * row;
    lanes kept[MOST_SUMS] = {{0}};
    for (; terms > 0; terms--, a += step, low += step, b += down) {
        lanes from[WIDEST];
        for (int v = 0; v < wide; v++)
            from[v] = *(const lanes_at *)TILE(tile_place)(b, v, apart);
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

INLINE void TILE(tile_chunk)(const struct gemm *g, int tall, int wide, int64_t step, int64_t apart,
                             const T *a, const T *b, int64_t terms, lanes *restrict sums)
{
    for (int64_t k = 0; k < terms || k == 0; k += REDUCTION_RADIX) {
        const int64_t rest = terms - k;
        TILE(tile_terms)
        (g, tall, wide, step, apart, a + k * step, b + k * g->b_row,
         rest < REDUCTION_RADIX ? rest : REDUCTION_RADIX, k > 0, sums);
    }
}

/* Chunks, whose sums are added in the levels above theirs. */
INLINE const lanes *TILE(tile_sums)(const struct gemm *g, int tall, int wide, int64_t step,
                                    int64_t apart, const T *a, const T *b, lanes *chunk,
                                    lanes *memory)
{
    const struct reduce_loops *loops = reduce_loops_of(REDUCTION_Sum, T_DTYPE);
    const int64_t n = (int64_t)tall * wide * LANES;
    struct reduce_levels levels;
    for (int64_t k = 0, count; k < g->k || k == 0; k += count) {
        count = g->k - k < CHUNK ? g->k - k : CHUNK;
        TILE(tile_chunk)
        (g, tall, wide, step, apart, a + k * step, b + k * g->b_row, count, chunk);
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
INLINE void TILE(tile_rows)(const struct gemm *g, int tall, int wide, int64_t step, int64_t begin,
                            int64_t end, int64_t j)
{
    lanes chunk[MOST_SUMS], memory[REDUCE_LEVELS * MOST_SUMS];
    for (int64_t at = begin; at < end; at += tall) {
        const int64_t i = at + tall < end ? at : end - tall;
        const T *a = (const T *)g->a + i * g->a_row, *b = (const T *)g->b + j;
        const lanes *sums = TILE(tile_sums)(g, tall, wide, step, 0, a, b, chunk, memory);
        for (int r = 0; r < tall; r++)
            memcpy((T *)g->c + (i + r) * g->n + j, &sums[r * wide], (size_t)wide * sizeof *sums);
    }
}

/* All columns from j on. */
INLINE void TILE(tiles)(const struct gemm *g, int tall, int64_t step, int64_t begin, int64_t end,
                        int64_t j)
{
    for (; g->n - j > LANES && g->n >= WIDE * LANES; j += WIDE * LANES)
        TILE(tile_rows)
    (g, tall, WIDE, step, begin, end, j + WIDE * LANES < g->n ? j : g->n - WIDE * LANES);
    for (; j < g->n; j += LANES)
        TILE(tile_rows)(g, tall, 1, step, begin, end, j + LANES < g->n ? j : g->n - LANES);
}

/* Are there a tile's columns and rows? */
INLINE bool TILE(takes)(const struct gemm *g, int64_t rows)
{
    return g->n >= LANES && g->b_column == 1 && rows >= TALL;
}

INLINE void TILE(tall_rows)(const struct gemm *g, int64_t begin, int64_t end)
{
    if (g->a_column == 1)
        TILE(tiles)(g, TALL, 1, begin, end, 0);
    else
        TILE(tiles)(g, TALL, g->a_column, begin, end, 0);
}

/* ---- One row --------------------------------------------------------------------------------- */

/* Rows one by one, in as many registers of columns as there are. */
INLINE void TILE(single_rows)(const struct gemm *g, int64_t begin, int64_t end)
{
    const int64_t widest = MOST_COLUMNS * LANES;
    int64_t j = 0;
    for (; g->n - j >= widest; j += widest)
        TILE(tile_rows)(g, 1, MOST_COLUMNS, g->a_column, begin, end, j);
    for (; g->n - j >= widest / 2; j += widest / 2)
        TILE(tile_rows)(g, 1, MOST_COLUMNS / 2, g->a_column, begin, end, j);
    TILE(tiles)(g, 1, g->a_column, begin, end, j);
}

/* So many panels from `at` on; `abreast` is a constant to the compiler. */
INLINE void TILE(panels_abreast)(const struct gemm_sweep *sweep, int abreast, int64_t step,
                                 int64_t at)
{
    const struct gemm *g = sweep->gemm;
    const int64_t columns = GEMM_PANEL_BYTES / sizeof(T), j = at * columns;
    const int64_t n = g->n - j < abreast * columns ? g->n - j : abreast * columns;
    const T *b = (const T *)sweep->panels + j * g->k;
    lanes chunk[MOST_SUMS], memory[REDUCE_LEVELS * MOST_SUMS];
    struct gemm panel = *g;
    panel.b_row = columns;
    const lanes *sums = TILE(tile_sums)(&panel, 1, abreast * IN_PANEL, step, columns * g->k, g->a,
                                        b, chunk, memory);
    memcpy((T *)g->c + j, sums, (size_t)n * sizeof(T));
}

/* Panels [begin, end): as many abreast as there are registers for, then the others. */
INLINE void TILE(panels_of_row)(const struct gemm_sweep *sweep, int64_t step, int64_t begin,
                                int64_t end)
{
    const int64_t groups = (end - begin) / ABREAST;
    const int64_t parts = groups + (end - begin) % ABREAST;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t part = sweep->backward ? parts - 1 - i : i;
        if (part < groups)
            TILE(panels_abreast)(sweep, ABREAST, step, begin + part * ABREAST);
        else
            TILE(panels_abreast)(sweep, 1, step, begin + groups * ABREAST + part - groups);
    }
}

INLINE void TILE(panels)(const struct gemm_sweep *sweep, int64_t begin, int64_t end)
{
    if (sweep->gemm->a_column == 1)
        TILE(panels_of_row)(sweep, 1, begin, end);
    else
        TILE(panels_of_row)(sweep, sweep->gemm->a_column, begin, end);
}

#undef lanes
#undef lanes_at
#undef LANES
#undef IN_PANEL
#undef ABREAST
#undef MOST_COLUMNS
#undef TILE
#undef WIDTH
#undef TALL
#undef WIDE
