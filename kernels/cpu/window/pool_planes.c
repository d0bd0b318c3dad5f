/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes are turned 8 by 8 elements; then each of their rows is folded along its columns, and these
 * rows are. Microseconds of pool_taps.h and of this, windows of 3 x 3, one thread of an EPYC with
 * AVX2 (ONNX Runtime, which does much the same):
 *
 *     planes              AveragePool     MaxPool
 *     272 of 7 x 7          54  8 (11)
 *     272 of 14 x 14        97 32 (42)
 *       the same, by 2      70 18 (22)   61 19 (22)
 *     64 of 28 x 28         35 31 (38)
 *       the same, by 2      29 16 (19)   28 17 (19)
 *     64 of 56 x 56, by 2   71 57 (57)   68 59 (55)
 */
#include "kernels/cpu/window/pool_planes.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES POOL_PLANES

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));

/* ---- Plan ------------------------------------------------------------------------------------ */

/* Larger planes are better off as they are; the second is of windows with strides. */
#define MOST_ELEMENTS 1024
#define MOST_STRIDED 3969

static size_t turned_bytes(int64_t elements)
{
    return (size_t)(elements + LANES) * sizeof(lanes);
}

/* Columns of the kernel that are in the image, for one window in a row. */
static void find_columns(const struct window *w, int64_t o, int64_t *from, int64_t *columns)
{
    *columns = 0;
    for (int64_t k = 0; k < w->kernel[1]; k++) {
        const int64_t at = o * w->stride[1] - w->pad_begin[1] + k * w->dilation[1];
        if (at < 0 || at >= w->in[1])
            continue;
        if ((*columns)++ == 0)
            *from = at;
    }
}

bool pool_planes_plan(const struct window *w, struct pool_planes *plan)
{
    const int64_t most = w->rank == 2 && w->stride[1] > 1 ? MOST_STRIDED : MOST_ELEMENTS;
    *plan = (struct pool_planes){.window = w};
    if (w->rank != 2 || w->out[1] > POOL_COLUMNS || w->kernel[0] > POOL_ROWS ||
        w->kernel[1] > POOL_ROWS || w->in_count < LANES || w->in_count > most ||
        w->out_count > most)
        return false;
    for (int64_t o = 0; o < w->out[1]; o++)
        find_columns(w, o, &plan->from[o], &plan->columns[o]);
    plan->scratch =
        turned_bytes(w->in_count) + turned_bytes(w->in[0] * w->out[1]) + turned_bytes(w->out_count);
    return true;
}

/* ---- Turning --------------------------------------------------------------------------------- */

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define LOW(a, b) PAIR(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) PAIR(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_PAIRS(a, b) PAIR(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_PAIRS(a, b) PAIR(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_HALVES(a, b) PAIR(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_HALVES(a, b) PAIR(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* 8 rows, so many elements apart, become columns; *seen: what their sum is added to, if any. */
INLINE void turn_block(const float *from, int64_t from_row, float *to, int64_t to_row, lanes *seen)
{
    lanes a[LANES], b[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) {
        memcpy(&a[i], from + i * from_row, sizeof a[i]);
        if (seen)
            *seen += a[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += 2) {
        b[i] = LOW(a[i], a[i + 1]);
        b[i + 1] = HIGH(a[i], a[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < LANES; i += 4) {
        a[i] = LOW_PAIRS(b[i], b[i + 2]);
        a[i + 1] = HIGH_PAIRS(b[i], b[i + 2]);
        a[i + 2] = LOW_PAIRS(b[i + 1], b[i + 3]);
        a[i + 3] = HIGH_PAIRS(b[i + 1], b[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES / 2; i++) {
        b[i] = LOW_HALVES(a[i], a[i + 4]);
        b[i + 4] = HIGH_HALVES(a[i], a[i + 4]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
        memcpy(to + i * to_row, &b[i], sizeof b[i]);
}

/* What does not fill a block is turned with what comes before it. */
VECTOR_FUNCTION(bool, turn_in, (const float *in, int64_t count, float *turned), (in, count, turned))
{
    lanes seen = {0};
    float sum = 0;
    for (int64_t i = 0; i + LANES < count; i += LANES)
        turn_block(in + i, count, turned + i * LANES, LANES, &seen);
    const int64_t last = count - LANES;
    turn_block(in + last, count, turned + last * LANES, LANES, &seen);
    for (int l = 0; l < LANES; l++)
        sum += seen[l];
    return sum == sum;
}

VECTOR_PROCEDURE(turn_out, (const float *turned, int64_t count, float *out), (turned, count, out))
{
    float block[LANES * LANES];
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        turn_block(turned + i * LANES, LANES, out + i, count, NULL);
    if (i == count)
        return;
    turn_block(turned + i * LANES, LANES, block, LANES, NULL);
    for (int p = 0; p < LANES; p++)
        memcpy(out + p * count + i, block + p * LANES, (size_t)(count - i) * sizeof *out);
}

/* ---- Folds ----------------------------------------------------------------------------------- */

INLINE void take_max(lanes *y, const float *at)
{
    lanes x;
    memcpy(&x, at, sizeof x);
    const mask takes = x > *y;
    *y = (lanes)((takes & (mask)x) | (~takes & (mask)*y));
}

INLINE void take_sum(lanes *y, const float *at)
{
    lanes x;
    memcpy(&x, at, sizeof x);
    *y += x;
}

/* Rows of turned planes, which become one element for each column of results. */
#define FOLD_COLUMNS(name, take, neutral)                                                          \
    VECTOR_PROCEDURE(name, (const struct pool_planes *plan, const float *x, float *folded),        \
                     (plan, x, folded))                                                            \
    {                                                                                              \
        const struct window *w = plan->window;                                                     \
        const int64_t step = w->dilation[1] * LANES;                                               \
        for (int64_t r = 0; r < w->in[0]; r++, x += w->in[1] * LANES)                              \
            for (int64_t o = 0; o < w->out[1]; o++, folded += LANES) {                             \
                const float *at = x + plan->from[o] * LANES;                                       \
                lanes y = (lanes){0} + (neutral);                                                  \
                int64_t k = plan->columns[o];                                                      \
                if (k == 3) {                                                                      \
                    take(&y, at);                                                                  \
                    take(&y, at + step);                                                           \
                    take(&y, at + 2 * step);                                                       \
                } else {                                                                           \
                    for (; k > 0; k--, at += step)                                                 \
                        take(&y, at);                                                              \
                }                                                                                  \
                memcpy(folded, &y, sizeof y);                                                      \
            }                                                                                      \
    }

FOLD_COLUMNS(max_columns, take_max, -INFINITY)
FOLD_COLUMNS(sum_columns, take_sum, 0.0F)

/* The rows of one row of windows that are in the image. */
INLINE int find_rows(const struct window *w, int64_t o, const float *folded, const float **rows)
{
    int count = 0;
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        const int64_t at = o * w->stride[0] - w->pad_begin[0] + k * w->dilation[0];
        if (at >= 0 && at < w->in[0])
            rows[count++] = folded + at * w->out[1] * LANES;
    }
    return count;
}

#define FOLD_ROWS(name, take, neutral)                                                             \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const struct pool_planes *plan, const float *folded,                         \
                      const struct pool_divisors *divisors, float *turned),                        \
                     (plan, folded, divisors, turned))                                             \
    {                                                                                              \
        const struct window *w = plan->window;                                                     \
        for (int64_t r = 0; r < w->out[0]; r++) {                                                  \
            const float *rows[POOL_ROWS];                                                          \
            const int count = find_rows(w, r, folded, rows);                                       \
            const float *by = divisors ? (const float *)divisors->lines + divisors->row[r] : NULL; \
            for (int64_t o = 0; o < w->out[1]; o++, turned += LANES) {                             \
                lanes y = (lanes){0} + (neutral);                                                  \
                if (count == 3) {                                                                  \
                    take(&y, rows[0] + o * LANES);                                                 \
                    take(&y, rows[1] + o * LANES);                                                 \
                    take(&y, rows[2] + o * LANES);                                                 \
                } else {                                                                           \
                    for (int k = 0; k < count; k++)                                                \
                        take(&y, rows[k] + o * LANES);                                             \
                }                                                                                  \
                if (by)                                                                            \
                    y /= by[o];                                                                    \
                memcpy(turned, &y, sizeof y);                                                      \
            }                                                                                      \
        }                                                                                          \
    }

FOLD_ROWS(max_rows, take_max, -INFINITY)
FOLD_ROWS(sum_rows, take_sum, 0.0F)

/* ---- Planes ---------------------------------------------------------------------------------- */

/* Where the planes lie in the scratch memory: turned, with rows that are folded, and results. */
struct places {
    float *turned, *folded, *results;
};

static struct places places_in(const struct pool_planes *plan, void *scratch)
{
    const struct window *w = plan->window;
    struct places places = {.turned = scratch};
    places.folded = places.turned + turned_bytes(w->in_count) / sizeof(float);
    places.results = places.folded + turned_bytes(w->in[0] * w->out[1]) / sizeof(float);
    return places;
}

bool pool_planes_max(const struct pool_planes *plan, const float *in, float *out, void *scratch)
{
    const struct places p = places_in(plan, scratch);
    if (!turn_in(in, plan->window->in_count, p.turned))
        return false;
    max_columns(plan, p.turned, p.folded);
    max_rows(plan, p.folded, NULL, p.results);
    turn_out(p.results, plan->window->out_count, out);
    return true;
}

void pool_planes_sum(const struct pool_planes *plan, const float *in,
                     const struct pool_divisors *by, float *out, void *scratch)
{
    const struct places p = places_in(plan, scratch);
    (void)turn_in(in, plan->window->in_count, p.turned);
    sum_columns(plan, p.turned, p.folded);
    sum_rows(plan, p.folded, by, p.results);
    turn_out(p.results, plan->window->out_count, out);
}
