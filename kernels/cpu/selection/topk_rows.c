/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best of each line so far are kept sorted: a row of elements is sorted in by as many
 * comparisons as there are, all of which are made, so that they become vectors of lines.
 */
#include "kernels/cpu/selection/topk_rows.h"

#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/selection/float_key.h"
#include "kernels/cpu/selection/rank.h"

#define INLINE static inline __attribute__((always_inline))

/* Smaller keys are better. Rows are numbered in integers of the keys' width. */
#define BEST(type)                                                                                 \
    struct best_##type {                                                                           \
        type key[TOPK_ROWS_LINES], row[TOPK_ROWS_LINES]; /* to be sorted in */                     \
        type keys[TOPK_ROWS_MOST][TOPK_ROWS_LINES], rows[TOPK_ROWS_MOST][TOPK_ROWS_LINES];         \
    };                                                                                             \
    /* Equal keys stay in the order of rows: what has lost its place is before all behind it. */   \
    INLINE void sort_in_##type(struct best_##type *b, int64_t row, int64_t k, int64_t lines)       \
    {                                                                                              \
        const int64_t before = row < k ? row : k;                                                  \
        type *restrict key = b->key, *restrict at = b->row;                                        \
        for (int64_t i = 0; i < lines; i++)                                                        \
            at[i] = (type)row;                                                                     \
        for (int64_t p = 0; p < before; p++) {                                                     \
            type *restrict best = b->keys[p], *restrict where = b->rows[p];                        \
            for (int64_t i = 0; i < lines; i++) {                                                  \
                const type new = key[i], old = best[i], new_at = at[i], old_at = where[i];         \
                const type better = -(type)(new < old) | -(type)(new_at != (type)row);             \
                const type keys = (new ^ old) & better, rows = (new_at ^ old_at) & better;         \
                best[i] = old ^ keys;                                                              \
                key[i] = new ^ keys;                                                               \
                where[i] = old_at ^ rows;                                                          \
                at[i] = new_at ^ rows;                                                             \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = 0; before < k && i < lines; i++) {                                        \
            b->keys[before][i] = key[i];                                                           \
            b->rows[before][i] = at[i];                                                            \
        }                                                                                          \
    }                                                                                              \
    static void widen_##type(const struct best_##type *b, int64_t k, int64_t lines, int64_t *at)   \
    {                                                                                              \
        for (int64_t p = 0; p < k; p++)                                                            \
            for (int64_t i = 0; i < lines; i++)                                                    \
                at[p * TOPK_ROWS_LINES + i] = b->rows[p][i];                                       \
    }

BEST(int32_t)
BEST(int64_t)

/* Keys are unsigned; vectors compare signed ones. */
VECTOR_PROCEDURE(sort_floats, (const struct topk_rows *r, int64_t k, struct best_int32_t *b),
                 (r, k, b))
{
    const uint32_t flip = (r->descending ? UINT32_MAX : 0) ^ UINT32_C(1) << 31;
    for (int64_t row = 0; row < r->n; row++) {
        const float *restrict x = (const float *)r->x + row * r->step;
        for (int64_t i = 0; i < r->lines; i++)
            b->key[i] = (int32_t)float_key(x[i], flip);
        sort_in_int32_t(b, row, k, r->lines);
    }
}

VECTOR_PROCEDURE(sort_row, (struct best_int64_t * b, int64_t row, int64_t k, int64_t lines),
                 (b, row, k, lines))
{
    sort_in_int64_t(b, row, k, lines);
}

static void sort_others(const struct topk_rows *r, int64_t k, struct best_int64_t *b)
{
    const size_t size = tssa_dtype_size(r->dtype);
    for (int64_t row = 0; row < r->n; row++) {
        const char *x = (const char *)r->x + (size_t)(row * r->step) * size;
        for (int64_t i = 0; i < r->lines; i++)
            b->key[i] = (int64_t)(rank_key(r->dtype, x + (size_t)i * size, r->descending) ^
                                  UINT64_C(1) << 63);
        sort_row(b, row, k, r->lines);
    }
}

void topk_rows(const struct topk_rows *rows, int64_t k, int64_t *at)
{
    if (rows->dtype == TSSA_FLOAT) {
        struct best_int32_t best;
        sort_floats(rows, k, &best);
        widen_int32_t(&best, k, rows->lines, at);
    } else {
        struct best_int64_t best;
        sort_others(rows, k, &best);
        widen_int64_t(&best, k, rows->lines, at);
    }
}
