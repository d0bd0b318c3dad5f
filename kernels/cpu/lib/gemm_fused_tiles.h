/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a product by fused multiply-adds, whose sums are registers of one width.
 * gemm_fused_loops.h defines
 *
 *     TILE(x)             a name of the width
 *     WIDTH               its bytes
 *     TALLEST             the most rows of a tile, 6 or 12
 *
 * and includes this file for each width.
 */
#define lanes TILE(lanes)
#define tile_memory TILE(memory)
#define lanes_at TILE(lanes_at)
#define LANES (WIDTH / T_BYTES)
#define WIDE 2   /* registers of columns of a tile of several rows */
#define WIDEST 4 /* and of one row */
#define MOST_SUMS (TALLEST * WIDE)

#if WIDTH / T_BYTES == 16
#define EACH EACH_OF_16
#elif WIDTH / T_BYTES == 8
#define EACH EACH_OF_8
#else
#define EACH EACH_OF_4
#endif
#define ADDED(i) T_FMA(a, factors[i], before[i])

typedef T lanes __attribute__((vector_size(WIDTH)));
/* Where elements lie. */
typedef T lanes_at __attribute__((vector_size(WIDTH), aligned(sizeof(T)), may_alias));

INLINE void TILE(add)(lanes *restrict sum, T a, const lanes *restrict b)
{
    const lanes factors = *b, before = *sum;
    *sum = (lanes){EACH(ADDED)};
}

/*
 * Sums so many terms of `tall` rows from a on, and of `wide` vectors from b on. `tall` and `wide`
 * are constants to the compiler. Two pointers to rows save registers with multiples of their
 * distance. (Several terms at a time took more pointers than there are, and a fifth longer.)
 */
INLINE void TILE(add_terms)(const struct gemm_fused *g, int tall, int wide, const T *a, const T *b,
                            int64_t terms, lanes *restrict kept)
{
    const int upper = (tall + 1) / 2;
    const int64_t row = g->a_row, down = g->b_row;
    const T *low = a + upper * row;
#pragma GCC unroll 24
    for (int i = 0; i < tall * wide; i++)
        kept[i] = (lanes){0};
    for (; terms > 0; terms--, a++, low++, b += down) {
        lanes from[WIDEST];
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            from[v] = *(const lanes_at *)(b + v * LANES);
#pragma GCC unroll 12
        for (int r = 0; r < tall; r++)
#pragma GCC unroll 4
            for (int v = 0; v < wide; v++)
                TILE(add)
        (&kept[r * wide + v], r < upper ? a[r * row] : low[(r - upper) * row], &from[v]);
    }
}

/* To rows of `to`, times a factor: of no more terms than two levels have; `sums` is memory for the
 * upper one. */
INLINE void TILE(add_chunk)(const struct gemm_fused *g, int tall, int wide, const T *a, const T *b,
                            int64_t terms, T factor, lanes *restrict sums, T *restrict to,
                            int64_t to_row)
{
    const bool one_level = terms <= REDUCTION_RADIX;
    lanes kept[MOST_SUMS];
    if (!one_level)
        for (int i = 0; i < tall * wide; i++)
            sums[i] = (lanes){0};
    for (;; terms -= REDUCTION_RADIX, a += REDUCTION_RADIX, b += REDUCTION_RADIX * g->b_row) {
        TILE(add_terms)
        (g, tall, wide, a, b, terms < REDUCTION_RADIX ? terms : REDUCTION_RADIX, kept);
        if (terms <= REDUCTION_RADIX)
            break;
#pragma GCC unroll 24
        for (int i = 0; i < tall * wide; i++)
            sums[i] += kept[i];
    }
#pragma GCC unroll 24
    for (int i = 0; i < tall * wide; i++) {
        const lanes sum = one_level ? kept[i] : sums[i] + kept[i];
        *(lanes_at *)(to + i / wide * to_row + i % wide * LANES) = sum * factor;
    }
}

/* The first n of a row's columns, which all are scaled. */
INLINE void TILE(store_row)(const T *restrict from, int wide, int64_t n, T factor, T *restrict to)
{
    const int count = n < wide * LANES ? (int)n : wide * LANES;
    for (int k = 0; k < count; k++)
        to[k] = from[k] * factor;
}

/* Of a tile with more terms, or that does not go where it belongs as a whole. */
struct tile_memory {
    lanes levels[REDUCE_LEVELS * MOST_SUMS], upper[MOST_SUMS], chunk[MOST_SUMS];
};

/*
 * Rows from i on, columns from j on. All at once go where they belong if they all do. Else, and
 * where there are more terms, `memory` has them: chunks are added in the levels above theirs.
 */
INLINE void TILE(tile)(const struct gemm_fused *g, int tall, int wide, int64_t i, int64_t j,
                       struct tile_memory *memory)
{
    const T *a = (const T *)g->a + i * g->a_row, factor = (T)g->factor;
    const T *b = (const T *)g->b + j / GEMM_FUSED_PANEL * g->b_panel + j % GEMM_FUSED_PANEL;
    T *c = (T *)g->c + i * g->c_row + j;
    const bool direct = g->k <= CHUNK && (g->c_is_whole || g->n - j >= wide * LANES);
    const int64_t row = wide * LANES, n = tall * row;
    const struct reduce_loops *loops = NULL;
    struct reduce_levels levels;
    T *chunk = (T *)memory->chunk;
    const T *sums = chunk;
    for (int64_t k = 0, count; k < g->k || k == 0; k += count) {
        count = g->k - k < CHUNK ? g->k - k : CHUNK;
        TILE(add_chunk)
        (g, tall, wide, a + k, b + k * g->b_row, count, direct ? factor : 1, memory->upper,
         direct ? c : chunk, direct ? g->c_row : row);
        if (count == g->k)
            break;
        if (k == 0) {
            loops = reduce_loops_of(REDUCTION_Sum, T_DTYPE);
            reduce_levels_begin(&levels, loops, sizeof(T), n, memory->levels);
        }
        loops->join(levels.memory, chunk, n);
        reduce_levels_add(&levels, 1);
    }
    if (direct)
        return;
    if (loops)
        sums = reduce_levels_end(&levels);
    for (int r = 0; r < tall; r++)
        TILE(store_row)(sums + r * row, wide, g->n - j, factor, c + r * g->c_row);
}

/* How many of so many rows that are left make a tile: with some of those before them, again, where
 * that fills one. */
INLINE int TILE(height)(int64_t left, int64_t rows)
{
    static const int heights[] = {TALLEST, TALLEST * 2 / 3, TALLEST / 2, TALLEST / 3};
    int height = 1;
    for (int i = 0; i < 4 && heights[i] >= left; i++)
        if (heights[i] <= rows)
            height = heights[i];
    for (int i = 0; i < 4 && height == 1; i++)
        if (heights[i] <= left)
            height = heights[i];
    return height;
}

INLINE void TILE(rows)(const struct gemm_fused *g, int wide, int64_t j, struct tile_memory *memory)
{
    for (int64_t at = 0, height; at < g->m; at += height) {
        height = TILE(height)(g->m - at, g->m);
        const int64_t i = at + height < g->m ? at : g->m - height;
        switch (height) {
        case TALLEST:
            TILE(tile)(g, TALLEST, wide, i, j, memory);
            break;
        case TALLEST * 2 / 3:
            TILE(tile)(g, TALLEST * 2 / 3, wide, i, j, memory);
            break;
        case TALLEST / 2:
            TILE(tile)(g, TALLEST / 2, wide, i, j, memory);
            break;
        case TALLEST / 3:
            TILE(tile)(g, TALLEST / 3, wide, i, j, memory);
            break;
        default:
            TILE(tile)(g, 1, wide, i, j, memory);
        }
    }
}

INLINE void TILE(multiply)(const struct gemm_fused *g)
{
    struct tile_memory memory;
    const bool rows = g->m < TALLEST / 3 && g->b_panel == GEMM_FUSED_PANEL;
    int64_t j = 0;
    for (; rows && g->n - j > (WIDEST - 1) * LANES; j += WIDEST * LANES)
        for (int64_t i = 0; i < g->m; i++)
            TILE(tile)(g, 1, WIDEST, i, j, &memory);
    for (; g->n - j > LANES; j += WIDE * LANES)
        TILE(rows)(g, WIDE, j, &memory);
    if (j < g->n)
        TILE(rows)(g, 1, j, &memory);
}

#undef lanes
#undef tile_memory
#undef lanes_at
#undef LANES
#undef WIDE
#undef WIDEST
#undef MOST_SUMS
#undef EACH
#undef ADDED
#undef TILE
#undef WIDTH
#undef TALLEST
