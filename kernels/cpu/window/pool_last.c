/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/pool_last.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct images {
    struct window window;
    int64_t channels;
    const float *in;
    float *out;
    int64_t rows; /* of an image of the result: all axes but the last spatial one */
};

/* Rows of an image that a window reads, as many as are looked at together. */
#define ROWS 8

struct reach {
    const float *rows[ROWS];
    int count;
    bool goes_on; /* from what other rows have left in the result; else from -inf */
};

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t round_up(int64_t n, int64_t by)
{
    return n > 0 ? (n + by - 1) / by : 0;
}

/* Columns of the kernel that are in the image, for one window in a row: where the first of them is
 * in it, and how many there are. */
INLINE int64_t columns_inside(const struct window *w, int64_t o, int64_t *columns)
{
    const int last = w->rank - 1;
    const int64_t dilation = w->dilation[last], from = o * w->stride[last] - w->pad_begin[last],
                  begin = round_up(-from, dilation),
                  inside = round_up(w->in[last] - from, dilation);
    *columns = (inside < w->kernel[last] ? inside : w->kernel[last]) - begin;
    return from + begin * dilation;
}

/* Channels [c, n) of a window, one by one; the larger one of each, and a NaN is. */
INLINE void max_each(const struct reach *reach, int64_t at, int64_t columns, int64_t step,
                     int64_t c, int64_t n, float *out)
{
    for (; c < n; c++) {
        float y = reach->goes_on ? out[c] : -INFINITY;
        for (int r = 0; r < reach->count; r++)
            for (int64_t k = 0; k < columns; k++) {
                const float x = reach->rows[r][at + k * step + c];
                y = x > y || x != x ? x : y;
            }
        out[c] = y;
    }
}

/*
 * A row of the result, of these rows of the image. `width` bytes of channels stay in a register
 * while a window is gone through. A macro, since compilers take vectors in functions that they
 * inline apart, as the caller's instructions would not have to be.
 */
#define MAX_ROW(name, target, width)                                                               \
    target static void name(const struct images *s, const struct reach *reach, float *out)         \
    {                                                                                              \
        typedef float lanes __attribute__((vector_size(width)));                                   \
        typedef int32_t mask __attribute__((vector_size(width)));                                  \
        const int64_t channels = s->channels, n = width / (int64_t)sizeof *out;                    \
        const int64_t step = s->window.dilation[s->window.rank - 1] * channels;                    \
        for (int64_t o = 0; o < s->window.out[s->window.rank - 1]; o++, out += channels) {         \
            int64_t columns, c = 0;                                                                \
            const int64_t at = columns_inside(&s->window, o, &columns) * channels;                 \
            for (; c + n <= channels; c += n) {                                                    \
                lanes x, y = (lanes){0} - INFINITY;                                                \
                if (reach->goes_on)                                                                \
                    memcpy(&y, out + c, sizeof y);                                                 \
                for (int r = 0; r < reach->count; r++)                                             \
                    for (int64_t k = 0; k < columns; k++) {                                        \
                        memcpy(&x, reach->rows[r] + at + c + k * step, sizeof x);                  \
                        const mask takes = (x > y) | (x != x);                                     \
                        y = (lanes)((takes & (mask)x) | (~takes & (mask)y));                       \
                    }                                                                              \
                memcpy(out + c, &y, sizeof y);                                                     \
            }                                                                                      \
            max_each(reach, at, columns, step, c, channels, out);                                  \
        }                                                                                          \
    }

#if defined(__x86_64__)
MAX_ROW(max_row_v4, VECTOR_V4, 64)
MAX_ROW(max_row_v3, VECTOR_V3, 32)
#endif
MAX_ROW(max_row_base, , 16)

typedef void (*max_row)(const struct images *s, const struct reach *reach, float *out);

static max_row find_max_row(void)
{
#if defined(__x86_64__)
    if (isa_level() >= ISA_V4)
        return max_row_v4;
    if (isa_level() >= ISA_V3)
        return max_row_v3;
#endif
    return max_row_base;
}

/* Rows of the result, of all images. */
static void max_rows(void *context, int64_t begin, int64_t end)
{
    const struct images *s = context;
    const struct window *w = &s->window;
    const max_row make_row = find_max_row();
    const int last = w->rank - 1;
    const int64_t size = w->out[last] * s->channels, rows = w->kernel_count / w->kernel[last];
    for (int64_t i = begin; i < end; i++) {
        const float *image = s->in + i / s->rows * w->in_count * s->channels;
        struct reach reach = {.count = 0};
        for (int64_t k = 0; k < rows; k++) {
            const int64_t row = window_input_row(w, i % s->rows, k);
            if (row >= 0)
                reach.rows[reach.count++] = image + row * w->in[last] * s->channels;
            if (reach.count == ROWS || k == rows - 1) {
                make_row(s, &reach, s->out + i * size);
                reach.count = 0;
                reach.goes_on = true;
            }
        }
    }
}

#define GRAIN 32768 /* elements that are compared */

tssa_status *pool_max_last(struct kernel_args *args)
{
    const struct pool_state *state = args->state;
    struct images s;
    const struct tensor *in;
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &in));
    if (in->rank < 3 || in->dtype != TSSA_FLOAT)
        return operand_error(0, in, "FLOAT images with channels last");
    TRY(window_resolve(&state->attrs, in->rank - 2, in->dims + 1, NULL, &s.window));
    const struct window *w = &s.window;
    dims[0] = in->dims[0];
    memcpy(dims + 1, w->out, (size_t)w->rank * sizeof *dims);
    dims[in->rank - 1] = s.channels = in->dims[in->rank - 1];
    TRY(kernel_output(args, 0, TSSA_FLOAT, in->rank, dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    s.in = in->data;
    s.out = out->data;
    s.rows = w->out_count / w->out[w->rank - 1];
    const int64_t cost = w->out[w->rank - 1] * s.channels * w->kernel_count;
    team_for(args->env->team, in->dims[0] * s.rows, GRAIN / (cost + 1) + 1, max_rows, &s);
    return NULL;
}
