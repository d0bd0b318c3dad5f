/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of every row of ir/reduction.def for one element type. A file reduce_TYPE.c defines
 * what ir/scalar/ops.h wants, and
 *
 *     T_TABLE      the table to fill, reduce_loops_f32
 *
 * and includes this file. A row is compiled for every type, also where its element types have no
 * use for it.
 */
#include <math.h>

#include "base/clones.h"
#include "ir/scalar/ops.h"
#include "kernels/cpu/lib/reduce.h"

#define LANES REDUCTION_LANES

/* Lines whose lanes are halved together: all of it in loops, in which compilers make vectors of
 * choices. */
#define GROUP 16
#define HALVE(row, width)                                                                          \
    INLINE void halve_##width##_##row(const T *restrict from, T *restrict to, int64_t lines)       \
    {                                                                                              \
        for (int64_t i = 0; i < lines; i++)                                                        \
            for (int k = 0; k < (width) / 2; k++)                                                  \
                to[i * (width) / 2 + k] =                                                          \
                    combine_##row(from[i * (width) + k], from[i * (width) + (width) / 2 + k]);     \
    }

#define HALVES(row)                                                                                \
    HALVE(row, 32)                                                                                 \
    HALVE(row, 16)                                                                                 \
    HALVE(row, 8)                                                                                  \
    HALVE(row, 4)                                                                                  \
    HALVE(row, 2)                                                                                  \
    /* a: `lines` times LANES, at most GROUP; overwritten. */                                      \
    INLINE void halve_group_##row(T *restrict a, T *restrict out, int64_t lines)                   \
    {                                                                                              \
        T b[GROUP * LANES / 2];                                                                    \
        halve_32_##row(a, b, lines);                                                               \
        halve_16_##row(b, a, lines);                                                               \
        halve_8_##row(a, b, lines);                                                                \
        halve_4_##row(b, a, lines);                                                                \
        halve_2_##row(a, out, lines);                                                              \
    }

/*
 * steps_: full steps, four at a time, so that a lane is loaded and stored once for four.
 * tail_:  a step of less than LANES elements. All lanes are stored, the others combined with the
 *         identity: AMD's processors store with a mask in a dozen cycles, and a lane stored so is
 *         slow to load again.
 * one_:   a line's first step, of up to LANES elements. Lanes are not filled with the identity
 *         before: compilers make "rep stos" of that, or a call.
 * two_:   a line of more, up to twice LANES: lanes are stored once.
 */
#define GROUP_LOOPS(row)                                                                           \
    INLINE void steps_##row(T *restrict lanes, const T *restrict x, int64_t steps, T s)            \
    {                                                                                              \
        for (; steps >= 4; steps -= 4, x += (ptrdiff_t)4 * LANES)                                  \
            for (int k = 0; k < LANES; k++) {                                                      \
                T a = before_##row(x[k], s), b = before_##row(x[k + LANES], s);                    \
                T c = before_##row(x[k + 2 * LANES], s), d = before_##row(x[k + 3 * LANES], s);    \
                lanes[k] = four_##row(lanes[k], a, b, c, d);                                       \
            }                                                                                      \
        for (; steps > 0; steps--, x += LANES)                                                     \
            for (int k = 0; k < LANES; k++)                                                        \
                lanes[k] = combine_##row(lanes[k], before_##row(x[k], s));                         \
    }                                                                                              \
    INLINE void tail_##row(T *restrict lanes, const T *restrict x, int64_t n, T s)                 \
    {                                                                                              \
        const int count = (int)n;                                                                  \
        T rest[LANES];                                                                             \
        for (int k = 0; k < LANES; k++)                                                            \
            rest[k] = k < count ? before_##row(x[k], s) : identity_##row();                        \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = combine_##row(lanes[k], rest[k]);                                           \
    }                                                                                              \
    INLINE void fold_to_##row(T *lanes, const T *x, int64_t n, T s)                                \
    {                                                                                              \
        steps_##row(lanes, x, n / LANES, s);                                                       \
        if (n % LANES)                                                                             \
            tail_##row(lanes, x + n / LANES * LANES, n % LANES, s);                                \
    }                                                                                              \
    INLINE void one_##row(T *restrict lanes, const T *restrict x, int64_t n, T s)                  \
    {                                                                                              \
        const int count = (int)n;                                                                  \
        if (count == LANES) {                                                                      \
            for (int k = 0; k < LANES; k++)                                                        \
                lanes[k] = combine_##row(identity_##row(), before_##row(x[k], s));                 \
            return;                                                                                \
        }                                                                                          \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = k < count ? before_##row(x[k], s) : identity_##row();                       \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = combine_##row(identity_##row(), lanes[k]);                                  \
    }                                                                                              \
    INLINE void two_##row(T *restrict lanes, const T *restrict x, int64_t n, T s)                  \
    {                                                                                              \
        const int count = (int)n - LANES;                                                          \
        for (int k = 0; k < LANES; k++) {                                                          \
            T a = combine_##row(identity_##row(), before_##row(x[k], s));                          \
            T b = k < count ? before_##row(x[k + LANES], s) : identity_##row();                    \
            lanes[k] = combine_##row(a, b);                                                        \
        }                                                                                          \
    }                                                                                              \
    INLINE void group_to_##row(T *restrict out, const T *restrict x, int64_t stride,               \
                               int64_t lines, int64_t n, const T *restrict shifts)                 \
    {                                                                                              \
        T lanes[GROUP * LANES];                                                                    \
        if (n <= LANES)                                                                            \
            for (int64_t i = 0; i < lines; i++)                                                    \
                one_##row(lanes + i * LANES, x + i * stride, n, shifts ? shifts[i] : 0);           \
        else if (n <= 2 * LANES)                                                                   \
            for (int64_t i = 0; i < lines; i++)                                                    \
                two_##row(lanes + i * LANES, x + i * stride, n, shifts ? shifts[i] : 0);           \
        else                                                                                       \
            for (int64_t i = 0; i < lines; i++, x += stride) {                                     \
                const T s = shifts ? shifts[i] : 0;                                                \
                one_##row(lanes + i * LANES, x, LANES, s);                                         \
                fold_to_##row(lanes + i * LANES, x + LANES, n - LANES, s);                         \
            }                                                                                      \
        halve_group_##row(lanes, out, lines);                                                      \
    }

/*
 * The largest and the smallest of floats take half of the comparisons, and give the same bits,
 * where no element is a NaN. A sum is made on the way, which is a NaN where an element is, or, of
 * no consequence but for time, where infinities of both signs are (a lane without an element adds
 * the identity, which is one). Lanes and sums of a line of many steps are arrays of its own, begun
 * with two elements: so compilers keep them in registers, and load each element once, be it from
 * two lines of the cache.
 */
#define PLAIN_MAX(a, b) ((a) < (b) ? (b) : (a))
#define PLAIN_MIN(a, b) ((a) > (b) ? (b) : (a))
#if defined(T_IS_FLOAT)
INLINE bool is_any_nan(const T *sums)
{
    int any = 0;
    for (int k = 0; k < LANES; k++)
        any |= isunordered(sums[k], sums[k]) ? 1 : 0;
    return any != 0;
}
#define PLAIN_LOOPS_OF_EXTREME(row, combine)                                                       \
    INLINE T combine_plain_##row(T a, T b)                                                         \
    {                                                                                              \
        return combine(a, b);                                                                      \
    }                                                                                              \
    HALVES(plain_##row)                                                                            \
    /* A line of up to LANES elements, of up to twice as many, and of as many or more. */          \
    INLINE void one_step_##row(T *restrict lanes, T *restrict sums, const T *restrict x,           \
                               int64_t n)                                                          \
    {                                                                                              \
        const int count = (int)n;                                                                  \
        for (int k = 0; k < LANES; k++) {                                                          \
            T a = k < count ? x[k] : identity_##row();                                             \
            lanes[k] = a;                                                                          \
            sums[k] += a;                                                                          \
        }                                                                                          \
    }                                                                                              \
    INLINE void two_steps_##row(T *restrict lanes, T *restrict sums, const T *restrict x,          \
                                int64_t n)                                                         \
    {                                                                                              \
        const int count = (int)n - LANES;                                                          \
        for (int k = 0; k < LANES; k++) {                                                          \
            T a = x[k], b = k < count ? x[k + LANES] : identity_##row();                           \
            lanes[k] = combine(a, b);                                                              \
            sums[k] += a + b;                                                                      \
        }                                                                                          \
    }                                                                                              \
    INLINE void many_steps_##row(T *restrict lanes, T *restrict sums, const T *restrict x,         \
                                 int64_t n)                                                        \
    {                                                                                              \
        T most[LANES], sum[LANES];                                                                 \
        for (int k = 0; k < LANES; k++) {                                                          \
            T a = x[k], b = x[k + LANES];                                                          \
            most[k] = combine(a, b);                                                               \
            sum[k] = a + b;                                                                        \
        }                                                                                          \
        for (n -= 2 * LANES, x += (ptrdiff_t)2 * LANES; n >= LANES; n -= LANES, x += LANES)        \
            for (int k = 0; k < LANES; k++) {                                                      \
                T a = x[k];                                                                        \
                most[k] = combine(most[k], a);                                                     \
                sum[k] += a;                                                                       \
            }                                                                                      \
        if (n > 0) {                                                                               \
            T rest[LANES];                                                                         \
            const int count = (int)n;                                                              \
            for (int k = 0; k < LANES; k++)                                                        \
                rest[k] = k < count ? x[k] : identity_##row();                                     \
            for (int k = 0; k < LANES; k++) {                                                      \
                most[k] = combine(most[k], rest[k]);                                               \
                sum[k] += rest[k];                                                                 \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = most[k];                                                                    \
        for (int k = 0; k < LANES; k++)                                                            \
            sums[k] += sum[k];                                                                     \
    }                                                                                              \
    INLINE void fold_extreme_##row(T *lanes, const T *x, int64_t n, T s)                           \
    {                                                                                              \
        T own[LANES], sums[LANES] = {0};                                                           \
        const bool many = n >= 2 * LANES;                                                          \
        if (many)                                                                                  \
            many_steps_##row(own, sums, x, n);                                                     \
        if (many && !is_any_nan(sums))                                                             \
            for (int k = 0; k < LANES; k++)                                                        \
                lanes[k] = combine(lanes[k], own[k]);                                              \
        else                                                                                       \
            fold_to_##row(lanes, x, n, s);                                                         \
    }                                                                                              \
    INLINE void group_extreme_##row(T *restrict out, const T *restrict x, int64_t stride,          \
                                    int64_t lines, int64_t n, const T *restrict shifts)            \
    {                                                                                              \
        T lanes[GROUP * LANES], sums[LANES] = {0};                                                 \
        if (n <= LANES)                                                                            \
            for (int64_t i = 0; i < lines; i++)                                                    \
                one_step_##row(lanes + i * LANES, sums, x + i * stride, n);                        \
        else if (n <= 2 * LANES)                                                                   \
            for (int64_t i = 0; i < lines; i++)                                                    \
                two_steps_##row(lanes + i * LANES, sums, x + i * stride, n);                       \
        else                                                                                       \
            for (int64_t i = 0; i < lines; i++)                                                    \
                many_steps_##row(lanes + i * LANES, sums, x + i * stride, n);                      \
        if (is_any_nan(sums))                                                                      \
            group_to_##row(out, x, stride, lines, n, shifts);                                      \
        else                                                                                       \
            halve_group_plain_##row(lanes, out, lines);                                            \
    }
#define EXTREME(f, row, ...) f##_extreme_##row(__VA_ARGS__)
#else
#define PLAIN_LOOPS_OF_EXTREME(row, combine)
#define EXTREME(f, row, ...) f##_to_##row(__VA_ARGS__)
#endif
#define PLAIN_LOOPS_ADD(row)
#define PLAIN_LOOPS_MUL(row)
#define PLAIN_LOOPS_MAX(row) PLAIN_LOOPS_OF_EXTREME(row, PLAIN_MAX)
#define PLAIN_LOOPS_MIN(row) PLAIN_LOOPS_OF_EXTREME(row, PLAIN_MIN)
#define BEST_ADD(f, row, ...) f##_to_##row(__VA_ARGS__)
#define BEST_MUL(f, row, ...) f##_to_##row(__VA_ARGS__)
#define BEST_MAX EXTREME
#define BEST_MIN EXTREME

#define LINE_LOOPS(row, combine)                                                                   \
    VECTOR_PROCEDURE(fold_##row, (void *to, const void *from, int64_t n, const void *shift),       \
                     (to, from, n, shift))                                                         \
    {                                                                                              \
        const T *x = from;                                                                         \
        T s = shift ? *(const T *)shift : 0;                                                       \
        BEST_##combine(fold, row, to, x, n, s);                                                    \
    }                                                                                              \
    VECTOR_PROCEDURE(                                                                              \
        lines_##row,                                                                               \
        (void *to, const void *from, int64_t stride, int64_t lines, int64_t n, const void *shift), \
        (to, from, stride, lines, n, shift))                                                       \
    {                                                                                              \
        for (int64_t i = 0; i < lines; i += GROUP) {                                               \
            const T *x = (const T *)from + i * stride, *s = shift ? (const T *)shift + i : NULL;   \
            int64_t count = lines - i < GROUP ? lines - i : GROUP;                                 \
            BEST_##combine(group, row, (T *)to + i, x, stride, count, n, s);                       \
        }                                                                                          \
    }                                                                                              \
    static void halve_lanes_##row(void *lanes)                                                     \
    {                                                                                              \
        T *a = lanes;                                                                              \
        for (int half = LANES / 2; half > 0; half /= 2)                                            \
            for (int k = 0; k < half; k++)                                                         \
                a[k] = combine_##row(a[k], a[k + half]);                                           \
    }

/* Several rows at a time, so that a result is loaded and stored once for four. */
#define ROW_LOOPS(row)                                                                             \
    INLINE void rows_with_##row(T *restrict a, const T *restrict x, int64_t stride, int64_t rows,  \
                                int64_t n, const T *restrict shifts)                               \
    {                                                                                              \
        for (; rows >= 4; rows -= 4, x += 4 * stride)                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T s = shifts ? shifts[i] : 0;                                                      \
                T b = before_##row(x[i], s), c = before_##row(x[i + stride], s);                   \
                T d = before_##row(x[i + 2 * stride], s), e = before_##row(x[i + 3 * stride], s);  \
                a[i] = four_##row(a[i], b, c, d, e);                                               \
            }                                                                                      \
        for (; rows > 0; rows--, x += stride)                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = combine_##row(a[i], before_##row(x[i], shifts ? shifts[i] : 0));            \
    }                                                                                              \
    VECTOR_PROCEDURE(                                                                              \
        rows_##row,                                                                                \
        (void *to, const void *from, int64_t stride, int64_t rows, int64_t n, const void *shift),  \
        (to, from, stride, rows, n, shift))                                                        \
    {                                                                                              \
        if (is_shifted_##row())                                                                    \
            rows_with_##row(to, from, stride, rows, n, shift);                                     \
        else                                                                                       \
            rows_with_##row(to, from, stride, rows, n, NULL);                                      \
    }                                                                                              \
    VECTOR_PROCEDURE(join_##row, (void *restrict to, const void *restrict from, int64_t n),        \
                     (to, from, n))                                                                \
    {                                                                                              \
        T *restrict a = to;                                                                        \
        const T *restrict b = from;                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = combine_##row(a[i], b[i]);                                                      \
    }

#define END_LOOPS(row)                                                                             \
    static void fill_##row(void *to, int64_t n)                                                    \
    {                                                                                              \
        T *a = to;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = identity_##row();                                                               \
    }                                                                                              \
    VECTOR_PROCEDURE(finish_##row, (void *to, int64_t n, int64_t count, const void *shift),        \
                     (to, n, count, shift))                                                        \
    {                                                                                              \
        T *a = to;                                                                                 \
        const T *s = shift;                                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = after_##row(a[i], s ? s[i] : 0, (T)count);                                      \
    }

#define DEFINE(row, shift, identity, before, combine, after)                                       \
    INLINE bool is_shifted_##row(void)                                                             \
    {                                                                                              \
        return #shift[0] != 'N';                                                                   \
    }                                                                                              \
    INLINE T identity_##row(void)                                                                  \
    {                                                                                              \
        return identity;                                                                           \
    }                                                                                              \
    INLINE T before_##row(T X, T S)                                                                \
    {                                                                                              \
        (void)S;                                                                                   \
        return before;                                                                             \
    }                                                                                              \
    INLINE T combine_##row(T a, T b)                                                               \
    {                                                                                              \
        return combine(a, b);                                                                      \
    }                                                                                              \
    INLINE T four_##row(T a, T b, T c, T d, T e)                                                   \
    {                                                                                              \
        return combine(combine(combine(combine(a, b), c), d), e);                                  \
    }                                                                                              \
    INLINE T after_##row(T A, T S, T COUNT)                                                        \
    {                                                                                              \
        (void)S, (void)COUNT;                                                                      \
        return after;                                                                              \
    }                                                                                              \
    HALVES(row)                                                                                    \
    GROUP_LOOPS(row)                                                                               \
    PLAIN_LOOPS_##combine(row) LINE_LOOPS(row, combine) ROW_LOOPS(row) END_LOOPS(row)

#define REDUCTION(row, types, shift, identity, before, combine, after)                             \
    DEFINE(row, shift, identity, before, combine, after)
#include "ir/reduction.def"
#undef REDUCTION

const struct reduce_loops T_TABLE[REDUCTION_ROWS] = {
#define REDUCTION(row, types, shift, identity, before, combine, after)                             \
    [REDUCTION_##row] = {lines_##row,       fold_##row, rows_##row,  join_##row,                   \
                         halve_lanes_##row, fill_##row, finish_##row},
#include "ir/reduction.def"
#undef REDUCTION
};
