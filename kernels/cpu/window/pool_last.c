/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/pool_last.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/pool_divisors.h"
#include "kernels/cpu/window/pool_sums.h"

struct images;
struct reach;
typedef void (*make_row)(const struct images *s, const struct reach *reach, void *to);

struct images {
    struct window window;
    make_row make;
    int64_t channels;
    size_t size; /* of an element */
    const char *in;
    char *out;
    const struct pool_divisors *divisors; /* of each window's sum; NULL: none are divided */
    int64_t rows; /* of an image of the result: all axes but the last spatial one */
};

/* Rows of an image that a window reads, as many as are looked at together. */
#define ROWS 8

struct reach {
    const char *rows[ROWS];
    int count;
    bool goes_on; /* from what other rows have left in the result */
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

/* ---- Rows of the result ---------------------------------------------------------------------- */

/* What is made of a window's elements x; `line` is of one row of it. In vectors, and of one
 * channel. The larger one; a NaN is. */
#define MAX_TAKE(y, line, x)                                                                       \
    do {                                                                                           \
        const mask takes = (x > y) | (x != x);                                                     \
        y = (lanes)((takes & (mask)x) | (~takes & (mask)y));                                       \
    } while (0)
#define MAX_TAKE_ONE(y, line, x) (y = x > y || x != x ? x : y)
#define MAX_END(y, line) (void)line

/* The sum of a row, and then that of rows. */
#define SUM_TAKE(y, line, x) (line += x)
#define SUM_TAKE_ONE SUM_TAKE
#define SUM_END(y, line) (y += line)

/* As many channels as fill vectors of `width` bytes, from c on. */
#define MAKE_LANES(op, T, M, first, width)                                                         \
    for (; c + (int64_t)(width / sizeof(T)) <= channels; c += (int64_t)(width / sizeof(T))) {      \
        typedef T lanes __attribute__((vector_size(width)));                                       \
        typedef M mask __attribute__((vector_size(width), unused));                                \
        lanes x, y = (lanes){0} + (first);                                                         \
        if (reach->goes_on)                                                                        \
            memcpy(&y, out + c, sizeof y);                                                         \
        for (int r = 0; r < reach->count; r++) {                                                   \
            const T *row = (const T *)(const void *)reach->rows[r] + at + c;                       \
            lanes line = {0};                                                                      \
            for (int64_t k = 0; k < columns; k++) {                                                \
                memcpy(&x, row + k * step, sizeof x);                                              \
                op##_TAKE(y, line, x);                                                             \
            }                                                                                      \
            op##_END(y, line);                                                                     \
        }                                                                                          \
        memcpy(out + c, &y, sizeof y);                                                             \
    }

/* The others, one by one. */
#define MAKE_EACH(op, T, first)                                                                    \
    for (; c < channels; c++) {                                                                    \
        T y = reach->goes_on ? out[c] : (first);                                                   \
        for (int r = 0; r < reach->count; r++) {                                                   \
            const T *row = (const T *)(const void *)reach->rows[r] + at + c;                       \
            T line = 0;                                                                            \
            for (int64_t k = 0; k < columns; k++) {                                                \
                const T x = row[k * step];                                                         \
                op##_TAKE_ONE(y, line, x);                                                         \
            }                                                                                      \
            op##_END(y, line);                                                                     \
        }                                                                                          \
        out[c] = y;                                                                                \
    }

/*
 * A row of the result, of these rows of the image, of elements T, as wide as M, beginning with
 * `first`. Channels stay in registers while a window is gone through: `width` bytes of them, and
 * fewer of what does not fill so many. Macros, since compilers take vectors in functions that they
 * inline apart, as the caller's instructions would not have to be.
 */
#define MAKE_ROW(op, T, M, first, name, target, width)                                             \
    target static void name(const struct images *s, const struct reach *reach, void *to)           \
    {                                                                                              \
        T *out = to;                                                                               \
        const int64_t channels = s->channels;                                                      \
        const int64_t step = s->window.dilation[s->window.rank - 1] * channels;                    \
        for (int64_t o = 0; o < s->window.out[s->window.rank - 1]; o++, out += channels) {         \
            int64_t columns, c = 0;                                                                \
            const int64_t at = columns_inside(&s->window, o, &columns) * channels;                 \
            MAKE_LANES(op, T, M, first, width)                                                     \
            MAKE_LANES(op, T, M, first, 16)                                                        \
            MAKE_LANES(op, T, M, first, 8)                                                         \
            MAKE_EACH(op, T, first)                                                                \
        }                                                                                          \
    }

#define MAKE_ROWS(name, target, width)                                                             \
    MAKE_ROW(MAX, float, int32_t, -INFINITY, max_f32_##name, target, width)                        \
    MAKE_ROW(MAX, uint8_t, uint8_t, 0, max_u8_##name, target, width)                               \
    MAKE_ROW(MAX, int8_t, int8_t, INT8_MIN, max_i8_##name, target, width)                          \
    MAKE_ROW(SUM, float, int32_t, 0, sum_f32_##name, target, width)

MAKE_ROWS(base, , 16)
#if defined(__x86_64__)
MAKE_ROWS(v3, VECTOR_V3, 32)
MAKE_ROWS(v4, VECTOR_V4, 64)
#define BY_LEVEL(name)                                                                             \
    {                                                                                              \
        name##_base, name##_v3, name##_v4                                                          \
    }
#else
#define BY_LEVEL(name)                                                                             \
    {                                                                                              \
        name##_base, name##_base, name##_base                                                      \
    }
#endif

/* By type and level of instructions. NULL: there are none of the type. */
static make_row find_make_row(tssa_dtype dtype, bool sums)
{
    static const make_row max_f32[] = BY_LEVEL(max_f32), max_u8[] = BY_LEVEL(max_u8),
                          max_i8[] = BY_LEVEL(max_i8), sum_f32[] = BY_LEVEL(sum_f32);
    const int level = isa_level() >= ISA_V4 ? 2 : isa_level() >= ISA_V3 ? 1 : 0;
    if (sums)
        return dtype == TSSA_FLOAT ? sum_f32[level] : NULL;
    return dtype == TSSA_FLOAT   ? max_f32[level]
           : dtype == TSSA_UINT8 ? max_u8[level]
           : dtype == TSSA_INT8  ? max_i8[level]
                                 : NULL;
}

static void divide_row(const struct images *s, int64_t row, void *to)
{
    float *out = to;
    const float *by = (const float *)s->divisors->lines + s->divisors->row[row];
    const int64_t windows = s->window.out[s->window.rank - 1];
    for (int64_t o = 0; o < windows; o++, out += s->channels)
        for (int64_t c = 0; c < s->channels; c++)
            out[c] /= by[o];
}

/* Rows of the result, of all images. */
static void make_rows(void *context, int64_t begin, int64_t end)
{
    const struct images *s = context;
    const struct window *w = &s->window;
    const int last = w->rank - 1;
    const int64_t pixel = s->channels * (int64_t)s->size, size = w->out[last] * pixel;
    const int64_t rows = w->kernel_count / w->kernel[last];
    for (int64_t i = begin; i < end; i++) {
        const char *image = s->in + i / s->rows * w->in_count * pixel;
        struct reach reach = {.count = 0};
        for (int64_t k = 0; k < rows; k++) {
            const int64_t row = window_input_row(w, i % s->rows, k);
            if (row >= 0)
                reach.rows[reach.count++] = image + row * w->in[last] * pixel;
            if (reach.count == ROWS || k == rows - 1) {
                s->make(s, &reach, s->out + i * size);
                reach.count = 0;
                reach.goes_on = true;
            }
        }
        if (s->divisors)
            divide_row(s, i % s->rows, s->out + i * size);
    }
}

/* ---- Operators ------------------------------------------------------------------------------- */

#define GRAIN 32768 /* elements that are looked at */

/* *wanted false: there is nothing to make. */
static tssa_status *begin(struct kernel_args *args, struct images *s, bool sums, bool *wanted)
{
    const struct pool_state *state = args->state;
    const struct tensor *in;
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &in));
    s->make = find_make_row(in->dtype, sums);
    if (in->rank < 3 || !s->make)
        return operand_error(0, in, "images with channels last of a type that there are loops for");
    TRY(window_resolve(&state->attrs, in->rank - 2, in->dims + 1, NULL, &s->window));
    const struct window *w = &s->window;
    dims[0] = in->dims[0];
    memcpy(dims + 1, w->out, (size_t)w->rank * sizeof *dims);
    dims[in->rank - 1] = s->channels = in->dims[in->rank - 1];
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &out));
    *wanted = out && tensor_count(out) > 0;
    s->size = tssa_dtype_size(in->dtype);
    s->in = in->data;
    s->out = out ? out->data : NULL;
    s->rows = *wanted ? w->out_count / w->out[w->rank - 1] : 0;
    s->divisors = NULL;
    return NULL;
}

static void make_all(struct kernel_args *args, struct images *s)
{
    const struct window *w = &s->window;
    const int64_t cost = w->out[w->rank - 1] * s->channels * w->kernel_count;
    const int64_t batch = args->inputs[0]->tensor.dims[0];
    team_for(args->env->team, batch * s->rows, GRAIN / (cost + 1) + 1, make_rows, s);
}

tssa_status *pool_max_last(struct kernel_args *args)
{
    struct images s;
    bool wanted;
    TRY(begin(args, &s, false, &wanted));
    if (wanted)
        make_all(args, &s);
    return NULL;
}

tssa_status *pool_average_last(struct kernel_args *args)
{
    const struct pool_state *state = args->state;
    struct images s;
    struct pool_divisors divisors;
    bool wanted;
    TRY(begin(args, &s, true, &wanted));
    if (!wanted)
        return NULL;
    TRY(pool_divisors_make(args, &pool_sum_loops_f32, &s.window, state->include_pad, &divisors));
    s.divisors = &divisors;
    make_all(args, &s);
    pool_divisors_release(&divisors);
    return NULL;
}
