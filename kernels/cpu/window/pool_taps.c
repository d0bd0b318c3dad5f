/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With strides, neighbouring windows read columns that are not neighbours: those of one remainder
 * by the stride are copied one behind the other, so that vectors are loaded as they lie.
 */
#include "kernels/cpu/window/pool_taps.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

#define INLINE static inline __attribute__((always_inline))

/* Results are computed so many at a time; what is behind a row's end is overwritten by the next
 * one. */
#define BLOCK 16
/* Rows that are copied and folded while they are in the cache. */
#define STRIP 8

/* ---- Plan ------------------------------------------------------------------------------------ */

static void make_taps(struct pool_taps *taps)
{
    const struct window *w = taps->window;
    const int last = w->rank - 1;
    int64_t tap[WINDOW_MAX_RANK] = {0};
    taps->n_columns = w->kernel[last];
    taps->n_rows = w->kernel_count / w->kernel[last];
    for (int64_t c = 0; c < taps->n_columns; c++) {
        int64_t at = c * w->dilation[last];
        taps->columns[c] = at % w->stride[last] * taps->pitch + at / w->stride[last];
    }
    for (int64_t r = 0; r < taps->n_rows; r++) {
        int64_t row = 0;
        for (int i = 0; i < last; i++)
            row = row * taps->plane[i] + tap[i] * w->dilation[i];
        taps->window_rows[r] = row * taps->blocks * BLOCK;
        for (int i = last - 1; i >= 0 && ++tap[i] == w->kernel[i]; i--)
            tap[i] = 0;
    }
}

bool pool_taps_plan(const struct window *w, struct pool_taps *taps)
{
    const int last = w->rank - 1;
    *taps = (struct pool_taps){.window = w, .rows = 1};
    if (w->kernel[last] > POOL_TAPS || w->kernel_count / w->kernel[last] > POOL_TAPS)
        return false;
    for (int i = 0; i < w->rank; i++) {
        taps->plane[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (i < last && !i64_mul(taps->rows, taps->plane[i], &taps->rows))
            return false;
    }
    const int64_t columns = (taps->plane[last] + w->stride[last] - 1) / w->stride[last];
    taps->pitch = (columns + BLOCK - 1) / BLOCK * BLOCK; /* so that rows begin as lines do */
    taps->row_length = taps->pitch * w->stride[last];
    taps->blocks = (w->out[last] + BLOCK - 1) / BLOCK;
    int64_t folded;
    if (!i64_mul(taps->rows, taps->blocks * BLOCK, &folded) || folded > 4 * w->in_count + 65536 ||
        taps->row_length > 4 * w->in_count + 65536)
        return false;
    /* The rows of a strip, what vectors reach behind them, all rows folded, and a row of results.
     */
    taps->scratch =
        (size_t)(STRIP * taps->row_length + BLOCK + folded + taps->blocks * BLOCK) * sizeof(float);
    make_taps(taps);
    return true;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

#define LANES 8
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Sums of all that was copied: NaN where something was, or, of no consequence but for time,
 * infinities of both signs or numbers as large. */
struct seen {
    lanes a, b;
};

INLINE void copy_block(const float *x, struct seen *seen, float *to)
{
    lanes a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, x + LANES, sizeof b);
    memcpy(to, &a, sizeof a);
    memcpy(to + LANES, &b, sizeof b);
    seen->a += a;
    seen->b += b;
}

/* The same, columns of even numbers and of odd ones. */
INLINE void split_block(const float *x, struct seen *seen, float *even, float *odd)
{
    lanes a, b, result;
    memcpy(&a, x, sizeof a);
    memcpy(&b, x + LANES, sizeof b);
    result = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    memcpy(even, &result, sizeof result);
    result = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    memcpy(odd, &result, sizeof result);
    seen->a += a;
    seen->b += b;
}

/* The same of one vector. */
INLINE void split_lanes(const float *x, struct seen *seen, float *even, float *odd)
{
    typedef float half_lanes __attribute__((vector_size(LANES / 2 * sizeof(float))));
    lanes a;
    half_lanes result;
    memcpy(&a, x, sizeof a);
    result = __builtin_shufflevector(a, a, 0, 2, 4, 6);
    memcpy(even, &result, sizeof result);
    result = __builtin_shufflevector(a, a, 1, 3, 5, 7);
    memcpy(odd, &result, sizeof result);
    seen->a += a;
}

/* n columns that lie side by side. What does not fill a block, or a vector, is copied together with
 * what comes before it. */
INLINE void copy_row(const float *restrict x, int64_t n, struct seen *seen, float *restrict to)
{
    if (n >= BLOCK) {
        for (int64_t i = 0; i + BLOCK < n; i += BLOCK)
            copy_block(x + i, seen, to + i);
        copy_block(x + n - BLOCK, seen, to + n - BLOCK);
    } else {
        for (int64_t i = 0; i < n; i++) {
            to[i] = x[i];
            seen->a += x[i];
        }
    }
}

/* n columns, of even numbers and of odd ones. */
INLINE void split_row(const float *restrict x, int64_t n, struct seen *seen, float *restrict even,
                      float *restrict odd)
{
    if (n >= 2 * LANES) {
        const int64_t last = n / 2 - LANES;
        for (int64_t i = 0; i < last; i += LANES)
            split_block(x + 2 * i, seen, even + i, odd + i);
        split_block(x + 2 * last, seen, even + last, odd + last);
    } else if (n >= LANES) {
        const int64_t last = n / 2 - LANES / 2;
        for (int64_t i = 0; i < last; i += LANES / 2)
            split_lanes(x + 2 * i, seen, even + i, odd + i);
        split_lanes(x + 2 * last, seen, even + last, odd + last);
    } else {
        for (int64_t i = 0; i < n / 2; i++) {
            even[i] = x[2 * i];
            odd[i] = x[2 * i + 1];
            seen->a += x[2 * i] + x[2 * i + 1];
        }
    }
    if (n % 2) {
        even[n / 2] = x[n - 1];
        seen->a += x[n - 1];
    }
}

/* n columns of a row, of which the first is column `at` of the padded row. */
INLINE void copy_columns(const float *restrict x, int64_t n, int64_t step, int64_t pitch,
                         int64_t at, struct seen *seen, float *restrict row)
{
    if (step == 1) {
        copy_row(x, n, seen, row + at);
    } else if (step == 2) {
        split_row(x, n, seen, row + at % 2 * pitch + at / 2,
                  row + (at + 1) % 2 * pitch + (at + 1) / 2);
    } else {
        for (int64_t k = 0; k < step && k < n; k++) { /* a division for each of them, no more */
            float *to = row + (at + k) % step * pitch + (at + k) / step;
            for (int64_t i = k; i < n; i += step, to++) {
                *to = x[i];
                seen->a += x[i];
            }
        }
    }
}

/* The row of the input that row number `row` of the padded plane is; -1: none. */
INLINE int64_t source_row(const struct pool_taps *taps, int64_t row)
{
    const struct window *w = taps->window;
    int64_t source = 0, scale = 1;
    for (int d = w->rank - 2; d >= 0; d--) {
        int64_t at = row - w->pad_begin[d];
        if (d > 0) {
            at = row % taps->plane[d] - w->pad_begin[d];
            row /= taps->plane[d];
        }
        if (at < 0 || at >= w->in[d])
            return -1;
        source += at * scale;
        scale *= w->in[d];
    }
    return source;
}

/* Rows [first, first + n) of a padded plane, whose columns beyond the input's stay as they are.
 * False: none has a NaN. */
VECTOR_FUNCTION(bool, copy_rows,
                (const struct pool_taps *taps, const float *in, int64_t first, int64_t n,
                 float neutral, float *to),
                (taps, in, first, n, neutral, to))
{
    const struct window *w = taps->window;
    const int last = w->rank - 1;
    const int64_t begin = w->pad_begin[last], room = taps->plane[last] - begin;
    const int64_t inside = room < w->in[last] ? room : w->in[last];
    struct seen seen = {{0}, {0}};
    for (int64_t r = first; r < first + n; r++, to += taps->row_length) {
        int64_t source = inside > 0 ? source_row(taps, r) : -1;
        if (source >= 0)
            copy_columns(in + source * w->in[last], inside, w->stride[last], taps->pitch, begin,
                         &seen, to);
        for (int64_t i = 0; source < 0 && i < taps->row_length; i++)
            to[i] = neutral;
    }
    float sums[LANES], sum = 0;
    seen.a += seen.b;
    memcpy(sums, &seen.a, sizeof sums);
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    return sum != sum;
}

/* ---- Folds ----------------------------------------------------------------------------------- */

INLINE float max_of(float y, float x)
{
    return x > y ? x : y;
}

INLINE float max_or_nan(float y, float x)
{
    return x > y || x != x ? x : y;
}

INLINE float sum_of(float y, float x)
{
    return y + x;
}

/* Rows of `n` numbers, `pitch` apart, folded at these offsets; results are rows too. */
struct rows {
    int64_t n, count, pitch, to_pitch;
    int64_t n_offsets;
    const int64_t *offsets;
    float neutral;
    const float *by; /* what sums are divided by, in lines; NULL: they are not */
    const int64_t *by_row;
};

/* Quotients take as long as all else does: they are made while other rows are folded. */
#define SUM_OVER(sum) (by ? (sum) / by[i] : (sum))
#define LARGEST(x) (x)

/* Three at a time, of which the first are the odd ones. */
#define FOLD_ROWS(name, fold, result)                                                              \
    VECTOR_PROCEDURE(name, (const struct rows *rows, const float *restrict x, float *restrict y),  \
                     (rows, x, y))                                                                 \
    {                                                                                              \
        const int64_t n = rows->n / LANES * LANES, odd = (rows->n_offsets + 2) % 3 + 1;            \
        const float neutral = rows->neutral;                                                       \
        for (int64_t r = 0; r < rows->count; r++, x += rows->pitch, y += rows->to_pitch) {         \
            const int64_t *at = rows->offsets;                                                     \
            const float *restrict by = rows->by ? rows->by + rows->by_row[r] : NULL;               \
            const float *a = x + at[0], *b = x + at[odd > 1], *c = x + at[odd - 1];                \
            if (rows->n_offsets == 3)                                                              \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = result(fold(fold(fold(neutral, a[i]), b[i]), c[i]));                    \
            else if (rows->n_offsets == 2)                                                         \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = result(fold(fold(neutral, a[i]), b[i]));                                \
            else if (odd == 3)                                                                     \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = fold(fold(fold(neutral, a[i]), b[i]), c[i]);                            \
            else if (odd == 2)                                                                     \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = fold(fold(neutral, a[i]), b[i]);                                        \
            else                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = fold(neutral, a[i]);                                                    \
            for (int64_t k = odd; k < rows->n_offsets; k += 3) {                                   \
                a = x + at[k];                                                                     \
                b = x + at[k + 1];                                                                 \
                c = x + at[k + 2];                                                                 \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = fold(fold(fold(y[i], a[i]), b[i]), c[i]);                               \
            }                                                                                      \
            if (!by)                                                                               \
                continue;                                                                          \
            for (int64_t i = 0; (rows->n_offsets < 2 || rows->n_offsets > 3) && i < n; i++)        \
                y[i] = result(y[i]);                                                               \
        }                                                                                          \
    }

FOLD_ROWS(max_rows, max_of, LARGEST) /* one instruction, but loses what is no number */
FOLD_ROWS(max_or_nan_rows, max_or_nan, LARGEST)
FOLD_ROWS(sum_rows, sum_of, SUM_OVER)

typedef void (*fold_fn)(const struct rows *rows, const float *x, float *y);

/* Rows of results along the last axis but one, `rows->count` of them. `room`: elements that may be
 * written. */
static void fold_results(struct rows *rows, fold_fn fold, const float *x, float *y, int64_t room,
                         float *spare)
{
    const int64_t count = rows->count, n = rows->to_pitch;
    const int64_t *by_row = rows->by_row;
    int64_t fit = room < rows->n ? 0 : (room - rows->n) / n + 1;
    fit = fit < count ? fit : count;
    rows->count = fit;
    fold(rows, x, y);
    rows->count = 1;
    for (int64_t r = fit; r < count; r++) {
        if (rows->by)
            rows->by_row = by_row + r;
        fold(rows, x + r * rows->pitch, spare);
        memcpy(y + r * n, spare, (size_t)n * sizeof *y);
    }
    rows->count = count;
}

/* The two folds: of what has no NaN, and of everything; they may be the same. */
struct folds {
    fold_fn numbers, all;
    float neutral;
    const struct pool_divisors *by; /* NULL: sums are not divided */
};

/* strip: rows that are neutral, but for what an earlier plane has left. */
static void fold_plane(const struct pool_taps *taps, const struct folds *folds, const float *in,
                       float *strip, float *y)
{
    const struct window *w = taps->window;
    const int last = w->rank - 1;
    const int64_t n = (w->out[last] + LANES - 1) / LANES * LANES, pitch = taps->blocks * BLOCK;
    float *folded = strip + STRIP * taps->row_length + BLOCK, *spare = folded + taps->rows * pitch;
    bool any = false;
    struct rows columns = {
        n, 0, taps->row_length, pitch, taps->n_columns, taps->columns, folds->neutral, NULL, NULL};
    for (int64_t r = 0; r < taps->rows; r += STRIP) {
        columns.count = taps->rows - r < STRIP ? taps->rows - r : STRIP;
        bool nan = copy_rows(taps, in, r, columns.count, folds->neutral, strip);
        (nan ? folds->all : folds->numbers)(&columns, strip, folded + r * pitch);
        any |= nan;
    }
    int64_t at[WINDOW_MAX_RANK] = {0}, count = last ? w->out[last - 1] : 1;
    struct rows rows = {n,
                        count,
                        (last ? w->stride[last - 1] : 0) * pitch,
                        w->out[last],
                        taps->n_rows,
                        taps->window_rows,
                        folds->neutral,
                        folds->by ? folds->by->lines : NULL,
                        NULL};
    for (int64_t done = 0; done < w->out_count; done += count * w->out[last]) {
        int64_t first = 0;
        for (int i = 0; i < last; i++)
            first = first * taps->plane[i] + at[i] * w->stride[i];
        rows.by_row = folds->by ? folds->by->row + done / w->out[last] : NULL;
        fold_results(&rows, any ? folds->all : folds->numbers, folded + first * pitch, y + done,
                     w->out_count - done, spare);
        for (int i = last - 2; i >= 0 && ++at[i] == w->out[i]; i--)
            at[i] = 0;
    }
}

/* ---- Planes ---------------------------------------------------------------------------------- */

void pool_taps_begin(const struct pool_taps *taps, float neutral, void *scratch)
{
    float *strip = scratch;
    for (int64_t i = 0; i < STRIP * taps->row_length + BLOCK; i++)
        strip[i] = neutral;
}

void pool_taps_max(const struct pool_taps *taps, const float *in, float *out, int64_t planes,
                   void *scratch)
{
    const struct folds folds = {max_rows, max_or_nan_rows, -INFINITY, NULL};
    const struct window *w = taps->window;
    pool_taps_begin(taps, -INFINITY, scratch);
    for (; planes > 0; planes--, in += w->in_count, out += w->out_count)
        fold_plane(taps, &folds, in, scratch, out);
}

void pool_taps_sum(const struct pool_taps *taps, const float *in, const struct pool_divisors *by,
                   float *out, void *scratch)
{
    const struct folds folds = {sum_rows, sum_rows, 0, by};
    fold_plane(taps, &folds, in, scratch, out);
}
