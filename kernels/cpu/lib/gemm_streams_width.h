/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of columns of a product of few rows, in vectors of one width. gemm_streams.c defines
 *
 *     STREAM(x)           a name of the width
 *     WIDTH               its bytes
 *
 * and includes this file for each width.
 */
#define lanes STREAM(lanes)
#define LANES ((int64_t)(WIDTH / sizeof(float)))

typedef float lanes __attribute__((vector_size(WIDTH), aligned(sizeof(float)), may_alias));

/* BLOCK: rows of the matrix that are read side by side. Of rows that are a multiple of 4 KiB apart,
 * more than 8 fall out of each other's set of the first cache: of 768 rows of 3072 (AMD Milan, one
 * thread) 16 take 725 us and 8 426. */
#if WIDTH == 64
#define EACH EACH_OF_16
#define BLOCK 16
#else
#define EACH EACH_OF_8
#define BLOCK 8
#endif
#define ADDED(i) f32_fma(weight, terms[i], before[i])

INLINE void STREAM(add)(lanes *restrict sum, float weight, const lanes *restrict from)
{
    const lanes terms = *from, before = *sum;
    *sum = (lanes){EACH(ADDED)};
}

/*
 * Adds `terms` terms to the sums of n columns of `rows` rows, `apart` from row to row; a sum begins
 * at 0 where `begins`. All but n and the places are constants to the compiler.
 */
INLINE void STREAM(add_block)(int rows, int terms, bool begins, const struct block *block,
                              int64_t n, int64_t apart, float *restrict sums)
{
    const float *b = block->b;
    int64_t j = 0;
    for (; n - j >= LANES; j += LANES) {
        const lanes none = {0};
        lanes kept[MOST_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            kept[r] = begins ? none : *(const lanes *)(sums + r * apart + j);
        for (int t = 0; t < terms; t++) {
            const float *at = b + t * block->down + j;
            const lanes from = *(const lanes *)at;
            if (block->ahead)
                __builtin_prefetch(at + block->ahead);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++)
                STREAM(add)(&kept[r], block->weights[t * MOST_ROWS + r], &from);
        }
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            *(lanes *)(sums + r * apart + j) = kept[r];
    }
    for (; j < n; j++)
        for (int r = 0; r < rows; r++) {
            float sum = begins ? 0 : sums[r * apart + j];
            for (int t = 0; t < terms; t++)
                sum = f32_fma(block->weights[t * MOST_ROWS + r], b[t * block->down + j], sum);
            sums[r * apart + j] = sum;
        }
}

/* As add_block, of 16 rows in halves: else gcc reads their weights as one vector, and turns a
 * register for each of them. */
INLINE void STREAM(add_rows)(int rows, int terms, bool begins, const struct block *block, int64_t n,
                             int64_t apart, float *sums)
{
    const int part = rows == 16 ? 8 : rows;
    struct block rest = *block;
    for (int r = 0; r < rows; r += part, rest.weights += part)
        STREAM(add_block)(part, terms, begins, &rest, n, apart, sums + r * apart);
}

/* Would what is asked for ahead take the place of what is read? Four rows by 768 of 3072 take 733
 * us so, and 579 without. With AVX-512 it was not seen. */
INLINE bool STREAM(is_crowded)(int64_t down)
{
    return WIDTH == 32 && down % PAGE == 0;
}

/* The sums of up to REDUCTION_RADIX terms. */
INLINE void STREAM(add_terms)(const struct gemm *g, int rows, int64_t k, int64_t terms, int64_t j,
                              int64_t n, int64_t apart, float *sums)
{
    float weights[BLOCK * MOST_ROWS];
    struct block block = {.down = g->b_row, .ahead = BLOCK * g->b_row, .weights = weights};
    for (int64_t t = 0, count; t < terms; t += count) {
        count = terms - t >= BLOCK ? BLOCK : 1;
        for (int64_t i = 0; i < count; i++)
            for (int r = 0; r < rows; r++)
                weights[i * MOST_ROWS + r] =
                    ((const float *)g->a)[r * g->a_row + (k + t + i) * g->a_column];
        block.b = (const float *)g->b + (k + t) * g->b_row + j;
        if (k + t + 2 * BLOCK > g->k || n >= LONG || STREAM(is_crowded)(g->b_row))
            block.ahead = 0; /* there are no such rows; or the machine does */
        if (count == 1)
            STREAM(add_rows)(rows, 1, t == 0, &block, n, apart, sums);
        else if (t == 0)
            STREAM(add_rows)(rows, BLOCK, true, &block, n, apart, sums);
        else
            STREAM(add_rows)(rows, BLOCK, false, &block, n, apart, sums);
    }
}

/* Adds the sums of one level to those of the next, which begin with them where `begins`. */
INLINE void STREAM(add_level)(int rows, bool begins, const float *restrict from, int64_t n,
                              int64_t from_apart, float *restrict to, int64_t apart)
{
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            to[r * apart + j] =
                begins ? from[r * from_apart + j] : to[r * apart + j] + from[r * from_apart + j];
}

/* Columns [j, j + n), no more than fit into a level. */
INLINE void STREAM(stretch)(const struct gemm *g, int rows, int64_t j, int64_t n)
{
    _Alignas(64) float terms[LEVEL + MOST_ROWS * APART], level[LEVEL + MOST_ROWS * APART];
    const int64_t apart = n + APART;
    float *c = (float *)g->c + j;
    for (int64_t k = 0; k < g->k; k += CHUNK) {
        const int64_t end = g->k - k < CHUNK ? g->k : k + CHUNK;
        const bool only = g->k <= CHUNK;
        for (int64_t at = k; at < end; at += REDUCTION_RADIX) {
            const int64_t rest = end - at;
            STREAM(add_terms)
            (g, rows, at, rest < REDUCTION_RADIX ? rest : REDUCTION_RADIX, j, n, apart, terms);
            STREAM(add_level)
            (rows, at == k, terms, n, apart, only ? c : level, only ? g->n : apart);
        }
        if (!only)
            STREAM(add_level)(rows, k == 0, level, n, apart, c, g->n);
    }
}

INLINE void STREAM(stretches)(const struct streams *s, int rows, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = i * s->width, rest = s->gemm->n - j;
        STREAM(stretch)(s->gemm, rows, j, rest < s->width ? rest : s->width);
    }
}

#define STREAM_ROWS(rows)                                                                          \
    case rows:                                                                                     \
        STREAM(stretches)(s, rows, begin, end);                                                    \
        break;

INLINE void STREAM(streams)(const struct streams *s, int64_t begin, int64_t end)
{
    switch (s->gemm->m) {
        STREAM_ROWS(1)
        STREAM_ROWS(2)
        STREAM_ROWS(3)
        STREAM_ROWS(4)
        STREAM_ROWS(5)
        STREAM_ROWS(6)
        STREAM_ROWS(7)
        STREAM_ROWS(8)
#if WIDTH == 64
        STREAM_ROWS(9)
        STREAM_ROWS(10)
        STREAM_ROWS(11)
        STREAM_ROWS(12)
        STREAM_ROWS(13)
        STREAM_ROWS(14)
        STREAM_ROWS(15)
        STREAM_ROWS(16)
#endif
    }
}

#undef lanes
#undef LANES
#undef EACH
#undef BLOCK
#undef ADDED
#undef STREAM_ROWS
#undef STREAM
#undef WIDTH
