/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/resample_pass.h"

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- Rows: axes behind the one that is resampled --------------------------------------------------- */

#define CHUNK 128 /* sums at a time, in the nearest cache */

/* Rows [begin, end) of outer * out. An element of weight 0 counts as nothing, even if it is no number. */
#define ROWS(name, from_type, to_type)                                                             \
    VECTOR_PROCEDURE(name, (const struct resample_pass *p, int64_t begin, int64_t end),            \
                     (p, begin, end))                                                              \
    {                                                                                              \
        const struct resample_table *t = p->table;                                                 \
        const int64_t inner = p->inner, taps = t->taps;                                            \
        for (int64_t row = begin; row < end; row++) {                                              \
            const int64_t outer = row / p->out, o = row % p->out;                                  \
            to_type *to = (to_type *)p->to + row * inner;                                          \
            const from_type *from = (const from_type *)p->from + outer * p->in * inner;            \
            for (int64_t first = 0; first < inner; first += CHUNK) {                               \
                const int64_t n = inner - first < CHUNK ? inner - first : CHUNK;                   \
                double sums[CHUNK];                                                                \
                for (int64_t i = 0; i < n; i++)                                                    \
                    sums[i] = t->outside[o] ? p->extrapolation : 0;                                \
                for (int64_t k = 0; k < taps && !t->outside[o]; k++) {                             \
                    const double weight = t->weight[o * taps + k];                                 \
                    const from_type *x = from + t->index[o * taps + k] * inner + first;            \
                    for (int64_t i = 0; weight != 0 && i < n; i++)                                 \
                        sums[i] += weight * (double)x[i];                                          \
                }                                                                                  \
                for (int64_t i = 0; i < n; i++)                                                    \
                    to[first + i] = (to_type)sums[i];                                              \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(rows_ff, float, float)
ROWS(rows_fd, float, double)
ROWS(rows_df, double, float)
ROWS(rows_dd, double, double)

/* ---- Elements: along the last axis, some lines at a time ------------------------------------------- */

#define LANES 4
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

/* Line l reads x[l] and writes y[l]. `taps` is a constant to the compiler where that is worthwhile. */
#define LINES(name, from_type, to_type)                                                            \
    INLINE void name##_of(const struct resample_pass *p, int64_t taps, const from_type *const *x,  \
                          to_type *const *y)                                                       \
    {                                                                                              \
        const struct resample_table *t = p->table;                                                 \
        const from_type *a = x[0], *b = x[1], *c = x[2], *d = x[3];                                \
        for (int64_t o = 0; o < p->out; o++) {                                                     \
            const double *weight = t->weight + o * taps;                                           \
            const int64_t *index = t->index + o * taps;                                            \
            lanes sum = {0};                                                                       \
            for (int64_t k = 0; k < taps; k++) {                                                   \
                const int64_t i = index[k];                                                        \
                const lanes v = {(double)a[i], (double)b[i], (double)c[i], (double)d[i]};          \
                if (weight[k] != 0)                                                                \
                    sum += weight[k] * v;                                                          \
            }                                                                                      \
            if (t->outside[o])                                                                     \
                sum = p->extrapolation - (lanes){0};                                               \
            for (int l = 0; l < LANES; l++)                                                        \
                y[l][o] = (to_type)sum[l];                                                         \
        }                                                                                          \
    }                                                                                              \
    VECTOR_PROCEDURE(name, (const struct resample_pass *p, int64_t begin, int64_t end),            \
                     (p, begin, end))                                                              \
    {                                                                                              \
        for (; begin < end; begin += LANES) {                                                      \
            const from_type *x[LANES];                                                             \
            to_type *y[LANES];                                                                     \
            for (int64_t l = 0; l < LANES;                                                         \
                 l++) { /* the last one again, where there are no more */                          \
                const int64_t line = begin + l < end ? begin + l : end - 1;                        \
                x[l] = (const from_type *)p->from + line * p->in;                                  \
                y[l] = (to_type *)p->to + line * p->out;                                           \
            }                                                                                      \
            if (p->table->taps == 2)                                                               \
                name##_of(p, 2, x, y);                                                             \
            else                                                                                   \
                name##_of(p, p->table->taps, x, y);                                                \
        }                                                                                          \
    }

LINES(lines_ff, float, float)
LINES(lines_fd, float, double)
LINES(lines_df, double, float)
LINES(lines_dd, double, double)

/* ---- Passes --------------------------------------------------------------------------------------- */

#define BY_TYPES(call, p, ...)                                                                     \
    do {                                                                                           \
        if ((p)->from_float && (p)->to_float)                                                      \
            call##_ff(p, __VA_ARGS__);                                                             \
        else if ((p)->from_float)                                                                  \
            call##_fd(p, __VA_ARGS__);                                                             \
        else if ((p)->to_float)                                                                    \
            call##_df(p, __VA_ARGS__);                                                             \
        else                                                                                       \
            call##_dd(p, __VA_ARGS__);                                                             \
    } while (0)

static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct resample_pass *p = context;
    (void)scratch;
    BY_TYPES(rows, p, begin, end);
}

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct resample_pass *p = context;
    (void)scratch;
    BY_TYPES(lines, p, begin, end);
}

tssa_status *resample_pass_run(struct kernel_args *args, const struct resample_pass *pass)
{
    struct resample_pass p = *pass;
    const int64_t taps = p.table->taps;
    if (p.inner == 1)
        return parts_for(args, p.outer, p.out * taps * 2, 0, run_lines, &p);
    return parts_for(args, p.outer * p.out, p.inner * taps * 2, 0, run_rows, &p);
}
