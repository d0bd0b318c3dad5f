/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/pool_rows.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

/* ---- Taps ------------------------------------------------------------------------------------ */

/*
 * Takes `taps` (1 to TAPS) elements of x, `apart` from each other, into each of n results, which
 * are `step` apart in x. Three at once save two of three times to load and store the result. Steps
 * of one and two have loops of their own.
 */
#define TAPS 3

#define LOOPS(n, step, statement)                                                                  \
    do {                                                                                           \
        if ((step) == 1)                                                                           \
            for (int64_t i = 0, at = 0; i < (n); i++, at++)                                        \
                statement;                                                                         \
        else if ((step) == 2)                                                                      \
            for (int64_t i = 0, at = 0; i < (n); i++, at += 2)                                     \
                statement;                                                                         \
        else                                                                                       \
            for (int64_t i = 0, at = 0; i < (n); i++, at += (step))                                \
                statement;                                                                         \
    } while (0)

#define TAKE(name, fold)                                                                           \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const float *restrict x, int64_t apart, int taps, int64_t step,              \
                      float *restrict y, int64_t n),                                               \
                     (x, apart, taps, step, y, n))                                                 \
    {                                                                                              \
        const float *restrict x1 = x + apart, *restrict x2 = x1 + apart;                           \
        if (taps == 3)                                                                             \
            LOOPS(n, step, y[i] = fold(fold(fold(y[i], x[at]), x1[at]), x2[at]));                  \
        else if (taps == 2)                                                                        \
            LOOPS(n, step, y[i] = fold(fold(y[i], x[at]), x1[at]));                                \
        else                                                                                       \
            LOOPS(n, step, y[i] = fold(y[i], x[at]));                                              \
    }

static inline float max_of(float y, float x)
{
    return x > y ? x : y;
}

static inline float max_or_nan(float y, float x)
{
    return x > y || x != x ? x : y;
}

TAKE(take_max, max_of) /* one instruction, but loses what is no number */
TAKE(take_max_or_nan, max_or_nan)

typedef void (*take_fn)(const float *x, int64_t apart, int taps, int64_t step, float *results,
                        int64_t n);

VECTOR_FUNCTION(bool, has_nan, (const float *x, int64_t n), (x, n))
{
    int32_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= x[i] != x[i];
    return found != 0;
}

/* ---- Plan ------------------------------------------------------------------------------------ */

/* Rows of the result that are shorter are computed together. */
#define SHORT 32

static bool reads_inside(const struct window *w, int i, int64_t extent)
{
    return w->pad_begin[i] == 0 && extent <= w->in[i];
}

static bool same_strides(const struct window *w)
{
    for (int i = 1; i < w->rank; i++)
        if (w->stride[i] != w->stride[0])
            return false;
    return true;
}

bool pool_rows_plan(const struct window *w, struct pool_rows *rows)
{
    const int last = w->rank - 1;
    int64_t count = 1, span = 0;
    *rows = (struct pool_rows){.window = w};
    for (int i = 0; i < w->rank; i++) {
        rows->plane[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        rows->pads |= !reads_inside(w, i, rows->plane[i]);
    }
    for (int i = 0; i < w->rank; i++) {
        if (!rows->pads)
            rows->plane[i] = w->in[i];
        if (!i64_mul(count, rows->plane[i], &count))
            return false;
        span = span * rows->plane[i] + w->out[i] - 1;
    }
    if (count > 2 * w->in_count + 4096 || w->out_count < 4)
        return false;
    rows->plane_count = count;
    rows->flat = w->out[last] < SHORT && same_strides(w);
    rows->run_length = rows->flat ? span + 1 : w->out[last];
    rows->scratch = (size_t)rows->run_length * sizeof(float);
    if (rows->pads)
        rows->scratch += (size_t)count * sizeof(float);
    return true;
}

/* ---- Planes ---------------------------------------------------------------------------------- */

static void fill(float *to, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

/* The row of the input that row number `row` of the padded plane is; -1: none. */
static int64_t source_row(const struct pool_rows *rows, int64_t row)
{
    const struct window *w = rows->window;
    int64_t source = 0, scale = 1;
    if (w->rank == 2) { /* without divisions, which take longer than short rows */
        row -= w->pad_begin[0];
        return row >= 0 && row < w->in[0] ? row : -1;
    }
    for (int d = w->rank - 2; d >= 0; d--) {
        int64_t at = row % rows->plane[d] - w->pad_begin[d];
        if (at < 0 || at >= w->in[d])
            return -1;
        source += at * scale;
        scale *= w->in[d];
        row /= rows->plane[d];
    }
    return source;
}

/* The plane into the middle of its padded copy, whose rim stays as it is. */
static void copy_plane(const struct pool_rows *rows, const float *in, float *to)
{
    const struct window *w = rows->window;
    const int last = w->rank - 1;
    const int64_t length = rows->plane[last], begin = w->pad_begin[last];
    int64_t inside = length - begin < w->in[last] ? length - begin : w->in[last];
    for (int64_t r = 0; r < rows->plane_count / length; r++, to += length) {
        int64_t source = inside > 0 ? source_row(rows, r) : -1;
        if (source >= 0)
            memcpy(to + begin, in + source * w->in[last], (size_t)inside * sizeof *to);
    }
}

/* Where the window's row number k, or that of the result's row number r, starts in the plane. */
static int64_t start_of(const struct pool_rows *rows, const int64_t *sizes, const int64_t *steps,
                        int64_t row)
{
    const int last = rows->window->rank - 1;
    int64_t at = 0, pitch = rows->plane[last];
    if (last == 1)
        return row * steps[0] * pitch;
    for (int d = last - 1; d >= 0; d--) {
        at += row % sizes[d] * steps[d] * pitch;
        row /= sizes[d];
        pitch *= rows->plane[d];
    }
    return at;
}

/* All taps of the windows whose first is at x. */
static void take_all(const struct pool_rows *rows, take_fn take, const float *x, float *results)
{
    const struct window *w = rows->window;
    const int last = w->rank - 1;
    const int64_t columns = w->kernel[last], apart = w->dilation[last];
    for (int64_t k = 0; k < w->kernel_count / columns; k++) {
        const float *row = x + start_of(rows, w->kernel, w->dilation, k);
        for (int64_t c = 0; c < columns; c += TAPS)
            take(row + c * apart, apart, columns - c < TAPS ? (int)(columns - c) : TAPS,
                 w->stride[last], results, rows->run_length);
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

static int64_t result_rows(const struct window *w)
{
    return w->out_count / w->out[w->rank - 1];
}

/* Where the result's row number r is in what was computed flat: there, steps are one. */
static int64_t flat_start(const struct pool_rows *rows, int64_t r)
{
    int64_t ones[WINDOW_MAX_RANK];
    for (int i = 0; i < rows->window->rank; i++)
        ones[i] = 1;
    return start_of(rows, rows->window->out, ones, r);
}

/* In the scratch memory, behind what is computed. */
static float *padded_plane(const struct pool_rows *rows, void *scratch, float neutral)
{
    float *padded = (float *)scratch + rows->run_length;
    if (rows->pads)
        fill(padded, rows->plane_count, neutral);
    return padded;
}

static const float *enter(const struct pool_rows *rows, const float *in, float *padded)
{
    if (!rows->pads)
        return in;
    copy_plane(rows, in, padded);
    return padded;
}

static void max_plane(const struct pool_rows *rows, take_fn take, const float *x, float *out,
                      float *flat)
{
    const struct window *w = rows->window;
    const int64_t length = w->out[w->rank - 1], n = result_rows(w);
    if (rows->flat) {
        fill(flat, rows->run_length, -INFINITY);
        take_all(rows, take, x, flat);
    }
    for (int64_t r = 0; r < n; r++, out += length) {
        if (rows->flat) {
            memcpy(out, flat + flat_start(rows, r), (size_t)length * sizeof *out);
            continue;
        }
        fill(out, length, -INFINITY);
        take_all(rows, take, x + start_of(rows, w->out, w->stride, r), out);
    }
}

void pool_rows_max(const struct pool_rows *rows, const float *in, float *out, int64_t planes,
                   void *scratch)
{
    const struct window *w = rows->window;
    float *padded = padded_plane(rows, scratch, -INFINITY);
    for (; planes > 0; planes--, in += w->in_count, out += w->out_count)
        max_plane(rows, has_nan(in, w->in_count) ? take_max_or_nan : take_max,
                  enter(rows, in, padded), out, scratch);
}
