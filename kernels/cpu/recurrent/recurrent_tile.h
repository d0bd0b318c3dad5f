/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of rows and packed weights, in registers of one width. recurrent_steps.h defines
 *
 *     NAME(x)             a name of the width and T
 *     REGISTER            its bytes, which divide RECURRENT_LANES
 *     PANEL_BYTES         of a panel's columns
 *     REGISTERS           so many are a tile of several rows wide, at most
 *     ROW_REGISTERS       and a tile of one
 *     ABREAST             or as many panels
 *     ABREAST_OF_TWO      of two rows as many panels
 *
 * and includes this file for each width.
 */

#define ELEMENTS (REGISTER / T_BYTES)
#define PANEL ((int64_t)(PANEL_BYTES / T_BYTES))
#define IN_PANEL (PANEL_BYTES / REGISTER) /* registers of a row of a panel */
#define MOST (TALL * REGISTERS > ABREAST * IN_PANEL ? TALL * REGISTERS : ABREAST * IN_PANEL)
#define lanes NAME(lanes)
#define lanes_at NAME(lanes_at)

typedef T lanes __attribute__((vector_size(REGISTER)));
typedef T lanes_at __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));

#if REGISTER / T_BYTES == 16
#define EACH EACH_OF_16
#elif REGISTER / T_BYTES == 8
#define EACH EACH_OF_8
#else
#define EACH EACH_OF_4
#endif
#define ADDED(i) MULTIPLY_ADD(weights[i], x, before[i])

INLINE void NAME(add)(lanes *restrict sum, const lanes *restrict weight, T x)
{
    const lanes weights = *weight, before = *sum;
    *sum = (lanes){EACH(ADDED)};
}

/* Where a row's register v lies. */
INLINE const T *NAME(place)(const T *weights, int v, int64_t apart)
{
    return apart ? weights + v / IN_PANEL * apart + v % IN_PANEL * ELEMENTS
                 : weights + v * ELEMENTS;
}

/* Terms of `tall` rows and `wide` registers of sums from column `at` on; the weights are a panel's,
 * `pitch` a row, or of whole panels, each `apart` elements behind the one before. `tall` and `wide`
 * are constants to the compiler, and `apart` where it is 0: one panel. */
INLINE void NAME(tile)(int tall, int wide, const struct product *p, int64_t at, const T *weights,
                       int64_t pitch, int64_t apart, int64_t from, int64_t terms)
{
    lanes sums[MOST];
    const T *x[TALL];
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++) {
        x[r] = p->x[r] + from;
#pragma GCC unroll 16
        for (int v = 0; v < wide; v++)
            sums[r * wide + v] = *(const lanes_at *)(p->sums[r] + at + v * ELEMENTS);
    }
    for (int64_t k = 0; k < terms; k++, weights += pitch) {
        lanes weight[MOST];
#pragma GCC unroll 16
        for (int v = 0; v < wide; v++) {
            const T *place = NAME(place)(weights, v, apart);
            weight[v] = *(const lanes_at *)place;
            if (tall > 1)
                __builtin_prefetch(place + AHEAD);
        }
#pragma GCC unroll 8
        for (int r = 0; r < tall; r++)
#pragma GCC unroll 16
            for (int v = 0; v < wide; v++)
                NAME(add)(&sums[r * wide + v], &weight[v], x[r][k]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++)
#pragma GCC unroll 16
        for (int v = 0; v < wide; v++)
            *(lanes_at *)(p->sums[r] + at + v * ELEMENTS) = sums[r * wide + v];
}

/* The same of any number of registers. */
INLINE void NAME(rows)(int tall, int most, const struct product *p, int64_t at, int64_t pitch,
                       const T *weights, int64_t from, int64_t terms)
{
    int64_t left = pitch / ELEMENTS;
    for (; left >= most; left -= most, at += most * ELEMENTS, weights += most * ELEMENTS)
        NAME(tile)(tall, most, p, at, weights, pitch, 0, from, terms);
    for (; left >= 2; left -= 2, at += 2 * ELEMENTS, weights += 2 * ELEMENTS)
        NAME(tile)(tall, 2, p, at, weights, pitch, 0, from, terms);
    if (left)
        NAME(tile)(tall, 1, p, at, weights, pitch, 0, from, terms);
}

/* Some terms of a panel's columns, which are `pitch`, of all rows. */
INLINE void NAME(panel)(struct product p, int64_t at, int64_t pitch, const T *weights, int64_t from,
                        int64_t terms)
{
    for (int n; p.n_rows > 0; p.n_rows -= n, p.x += n, p.sums += n) {
        const int tiles = (p.n_rows + TALL - 1) / TALL;
        n = (p.n_rows + tiles - 1) / tiles;
        switch (n) {
        case 1:
            NAME(rows)(1, ROW_REGISTERS, &p, at, pitch, weights, from, terms);
            break;
        case 2:
            NAME(rows)(2, REGISTERS, &p, at, pitch, weights, from, terms);
            break;
        case 3:
            NAME(rows)(3, REGISTERS, &p, at, pitch, weights, from, terms);
            break;
        case 4:
            NAME(rows)(4, REGISTERS, &p, at, pitch, weights, from, terms);
            break;
        case 5:
            NAME(rows)(5, REGISTERS, &p, at, pitch, weights, from, terms);
            break;
        default:
            NAME(rows)(6, REGISTERS, &p, at, pitch, weights, from, terms);
        }
    }
}

/* All terms of a panel, from column `at` on. */
INLINE void NAME(one_panel)(const struct product *p, int64_t at)
{
    const int64_t pitch = p->columns - at < PANEL ? p->columns - at : PANEL;
    for (int64_t k = 0; k < p->depth; k += TERMS)
        NAME(panel)
    (*p, at, pitch, p->weights + at * p->depth + k * pitch, k,
     p->depth - k < TERMS ? p->depth - k : TERMS);
}

/* Panels abreast, of one row or two. */
INLINE void NAME(panels)(const struct product *p, int64_t at)
{
    const T *weights = p->weights + at * p->depth;
    const int64_t apart = PANEL * p->depth;
    if (p->n_rows == 1)
        NAME(tile)(1, ABREAST * IN_PANEL, p, at, weights, PANEL, apart, 0, p->depth);
    else
        NAME(tile)(2, ABREAST_OF_TWO * IN_PANEL, p, at, weights, PANEL, apart, 0, p->depth);
}

/* Shares [begin, end) of the columns. */
INLINE void NAME(multiply)(const struct product *p, int64_t begin, int64_t end)
{
    const int64_t all = (p->columns + PANEL - 1) / PANEL;
    begin *= SHARE / PANEL;
    end = end * (SHARE / PANEL) < all ? end * (SHARE / PANEL) : all;
    const int64_t whole = p->columns / PANEL < end ? p->columns / PANEL : end;
    const int64_t abreast = p->n_rows == 1 ? ABREAST : p->n_rows == 2 ? ABREAST_OF_TWO : 1;
    const int64_t groups = abreast > 1 && whole > begin ? (whole - begin) / abreast : 0;
    const int64_t grouped = begin + groups * abreast, parts = groups + end - grouped;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t part = p->backward ? parts - 1 - i : i;
        if (part < groups)
            NAME(panels)(p, (begin + part * abreast) * PANEL);
        else
            NAME(one_panel)(p, (grouped + part - groups) * PANEL);
    }
}

#undef lanes
#undef lanes_at
#undef ELEMENTS
#undef PANEL
#undef IN_PANEL
#undef MOST
#undef EACH
#undef ADDED
#undef NAME
#undef REGISTER
#undef PANEL_BYTES
#undef REGISTERS
#undef ROW_REGISTERS
#undef ABREAST
#undef ABREAST_OF_TWO
