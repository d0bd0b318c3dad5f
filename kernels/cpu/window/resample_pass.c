/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/resample_pass.h"

#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- Rows: axes behind the one that is resampled --------------------------------------------- */

#define CHUNK 256 /* sums at a time, in the nearest cache */

/*
 * A row of one weighted row, or of two. What does not fill a vector is computed together with what
 * comes before it.
 */
#define TWO(name, T, lanes)                                                                        \
    INLINE void name##_lanes(const T *weight, bool both, const T *a, const T *b, T *to)            \
    {                                                                                              \
        lanes sum, x;                                                                              \
        memcpy(&x, a, sizeof x);                                                                   \
        sum = 0 + weight[0] * x;                                                                   \
        if (both) {                                                                                \
            memcpy(&x, b, sizeof x);                                                               \
            sum += weight[1] * x;                                                                  \
        }                                                                                          \
        memcpy(to, &sum, sizeof sum);                                                              \
    }                                                                                              \
    INLINE void name##_of(int64_t n, const T *weight, bool both, const T *a, const T *b, T *to)    \
    {                                                                                              \
        const int64_t last = n - (int64_t)(sizeof(lanes) / sizeof(T));                             \
        for (int64_t i = 0; last < 0 && i < n; i++)                                                \
            to[i] = both ? (0 + weight[0] * a[i]) + weight[1] * b[i] : 0 + weight[0] * a[i];       \
        for (int64_t i = 0; i < last; i += (int64_t)(sizeof(lanes) / sizeof(T)))                   \
            name##_lanes(weight, both, a + i, b + i, to + i);                                      \
        if (last >= 0)                                                                             \
            name##_lanes(weight, both, a + last, b + last, to + last);                             \
    }

typedef float row_floats __attribute__((vector_size(32)));
typedef double row_doubles __attribute__((vector_size(32)));
TWO(float_rows, float, row_floats)
TWO(double_rows, double, row_doubles)

/* Rows [begin, end) of outer * out. An element of weight 0 counts as nothing, even if it is no
 * number. */
#define ROWS(name, T, weights)                                                                     \
    VECTOR_PROCEDURE(name, (const struct resample_pass *p, int64_t begin, int64_t end),            \
                     (p, begin, end))                                                              \
    {                                                                                              \
        const struct resample_table *t = p->table;                                                 \
        const int64_t inner = p->inner, taps = t->taps;                                            \
        for (int64_t row = begin; row < end; row++) {                                              \
            const int64_t outer = row / p->out, o = row % p->out;                                  \
            const T *weight = t->weights + o * taps;                                               \
            const int64_t *index = t->index + o * taps;                                            \
            const T *from = (const T *)p->from + outer * p->in * inner;                            \
            T *restrict to = (T *)p->to + row * inner;                                             \
            if (taps == 2 && !t->outside[o] && (weight[0] != 0 || weight[1] != 0)) {               \
                const int one = weight[0] == 0 ? 1 : 0;                                            \
                const bool both = weight[0] != 0 && weight[1] != 0;                                \
                name##_of(inner, weight + one, both, from + index[one] * inner,                    \
                          from + index[1] * inner, to);                                            \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t first = 0; first < inner; first += CHUNK) {                               \
                const int64_t n = inner - first < CHUNK ? inner - first : CHUNK;                   \
                T sums[CHUNK];                                                                     \
                for (int64_t i = 0; i < n; i++)                                                    \
                    sums[i] = t->outside[o] ? (T)p->extrapolation : 0;                             \
                for (int64_t k = 0; k < taps && !t->outside[o]; k++) {                             \
                    const T factor = weight[k], *x = from + index[k] * inner + first;              \
                    for (int64_t i = 0; factor != 0 && i < n; i++)                                 \
                        sums[i] += factor * x[i];                                                  \
                }                                                                                  \
                for (int64_t i = 0; i < n; i++)                                                    \
                    to[first + i] = sums[i];                                                       \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(float_rows, float, narrow)
ROWS(double_rows, double, weight)

/* ---- Elements: along the last axis, some lines at a time ------------------------------------- */

#define LANES 4
typedef float float_lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef double double_lanes __attribute__((vector_size(LANES * sizeof(double))));

/*
 * Line l reads x[l] and writes y[l]. `taps` is a constant to the compiler where that is worthwhile.
 */
#define LINES(name, T, lanes, weights)                                                             \
    INLINE void name##_of(const struct resample_pass *p, int64_t taps, const T *const *x,          \
                          T *const *y)                                                             \
    {                                                                                              \
        const struct resample_table *t = p->table;                                                 \
        const T *a = x[0], *b = x[1], *c = x[2], *d = x[3];                                        \
        for (int64_t o = 0; o < p->out; o++) {                                                     \
            const T *weight = t->weights + o * taps;                                               \
            const int64_t *index = t->index + o * taps;                                            \
            lanes sum = {0};                                                                       \
            for (int64_t k = 0; k < taps; k++) {                                                   \
                const int64_t i = index[k];                                                        \
                const lanes v = {a[i], b[i], c[i], d[i]};                                          \
                if (weight[k] != 0)                                                                \
                    sum += weight[k] * v;                                                          \
            }                                                                                      \
            if (t->outside[o])                                                                     \
                sum = (T)p->extrapolation - (lanes){0};                                            \
            for (int l = 0; l < LANES; l++)                                                        \
                y[l][o] = sum[l];                                                                  \
        }                                                                                          \
    }                                                                                              \
    VECTOR_PROCEDURE(name, (const struct resample_pass *p, int64_t begin, int64_t end),            \
                     (p, begin, end))                                                              \
    {                                                                                              \
        for (; begin < end; begin += LANES) {                                                      \
            const T *x[LANES];                                                                     \
            T *y[LANES];                                                                           \
            /* The last one again, where there are no more. */                                     \
            for (int64_t l = 0; l < LANES; l++) {                                                  \
                const int64_t line = begin + l < end ? begin + l : end - 1;                        \
                x[l] = (const T *)p->from + line * p->in;                                          \
                y[l] = (T *)p->to + line * p->out;                                                 \
            }                                                                                      \
            if (p->table->taps == 2)                                                               \
                name##_of(p, 2, x, y);                                                             \
            else                                                                                   \
                name##_of(p, p->table->taps, x, y);                                                \
        }                                                                                          \
    }

LINES(float_lines, float, float_lanes, narrow)
LINES(double_lines, double, double_lanes, weight)

/* ---- Passes ---------------------------------------------------------------------------------- */

static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct resample_pass *p = context;
    (void)scratch;
    (p->dtype == TSSA_FLOAT ? float_rows : double_rows)(p, begin, end);
}

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct resample_pass *p = context;
    (void)scratch;
    (p->dtype == TSSA_FLOAT ? float_lines : double_lines)(p, begin, end);
}

tssa_status *resample_pass_run(struct kernel_args *args, const struct resample_pass *pass)
{
    struct resample_pass p = *pass;
    const int64_t taps = p.table->taps;
    if (p.inner == 1)
        return parts_for(args, p.outer, p.out * taps * 2, 0, run_lines, &p);
    return parts_for(args, p.outer * p.out, p.inner * taps * 2, 0, run_rows, &p);
}
