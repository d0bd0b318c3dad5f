/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax of lines of float32 in place, for kernels that have made them. Other than of a tensor,
 * exponentials are summed as they are computed, in memory for one line, and go back where the line
 * was once they are multiplied. The bits are those of the operator.
 */
#include "base/clones.h"
#include "ir/reduction.h"
#include "ir/scalar/f32_exp.h"
#include "kernels/cpu/lib/farthest.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/softmax.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES REDUCTION_LANES
/* Elements of a line whose sum has one level. */
#define ONE_LEVEL (REDUCTION_RADIX * REDUCTION_LANES)

INLINE float larger(float a, float b)
{
    return a > b ? a : b;
}

/* Lanes k and k + width / 2 of each line, to half as many. */
#define HALVE(name, combine, width)                                                                \
    INLINE void name##_##width(const float *restrict from, float *restrict to, int64_t lines)      \
    {                                                                                              \
        for (int64_t i = 0; i < lines; i++)                                                        \
            for (int k = 0; k < (width) / 2; k++)                                                  \
                to[i * (width) / 2 + k] =                                                          \
                    combine(from[i * (width) + k], from[i * (width) + (width) / 2 + k]);           \
    }
/* All lanes of each line to one; `lanes` are overwritten. */
#define HALVES(name, combine)                                                                      \
    HALVE(name, combine, 32)                                                                       \
    HALVE(name, combine, 16)                                                                       \
    HALVE(name, combine, 8)                                                                        \
    HALVE(name, combine, 4)                                                                        \
    HALVE(name, combine, 2)                                                                        \
    INLINE void name(float *restrict lanes, float *restrict out, int64_t lines)                    \
    {                                                                                              \
        float half[SOFTMAX_LINES * LANES / 2];                                                     \
        name##_32(lanes, half, lines);                                                             \
        name##_16(half, lanes, lines);                                                             \
        name##_8(lanes, half, lines);                                                              \
        name##_4(half, lanes, lines);                                                              \
        name##_2(lanes, out, lines);                                                               \
    }
HALVES(halve_most, larger)

typedef float eight __attribute__((vector_size(32), may_alias));
typedef float four __attribute__((vector_size(16)));

/* Those of one line to their sum: in a tree as well. */
INLINE float sum_of_lanes(const eight *lanes)
{
    const eight all = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    const four half = __builtin_shufflevector(all, all, 0, 1, 2, 3) +
                      __builtin_shufflevector(all, all, 4, 5, 6, 7);
    return (half[0] + half[2]) + (half[1] + half[3]);
}

/* A line's last elements, fewer than LANES, and others of this value. */
INLINE void load_rest(const float *restrict x, int64_t n, float other, float *restrict rest)
{
    const int count = (int)n;
    for (int k = 0; k < LANES; k++)
        rest[k] = k < count ? x[k] : other;
}

/* Of numbers; a NaN may get lost, but will be among the exponentials, and so in their sum. */
INLINE void most_of_line(const float *restrict x, int64_t n, float *restrict lanes)
{
    float most[LANES], rest[LANES];
    for (int k = 0; k < LANES; k++)
        most[k] = -INFINITY;
    for (; n >= LANES; n -= LANES, x += LANES)
        for (int k = 0; k < LANES; k++)
            most[k] = larger(x[k], most[k]);
    load_rest(x, n, -INFINITY, rest);
    for (int k = 0; k < LANES; k++)
        lanes[k] = larger(rest[k], most[k]);
}

/* exp(x - most) of LANES elements. */
INLINE void exps_of_step(bool near, const float *restrict x, float most, float *restrict y,
                         uint32_t *restrict farthest)
{
    for (int k = 0; k < LANES; k++) {
        const float a = x[k] - most;
        farthest[k] = farther(farthest[k], a);
        y[k] = near ? f32_exp_near(a) : f32_exp(a);
    }
}

/* The same of a line, and the sums of ONE_LEVEL elements at most. false: not all are `near`. */
INLINE bool exps_of_line(bool near, const float *restrict x, int64_t n, float most,
                         float *restrict y, float *restrict lanes)
{
    float sums[LANES] = {0}, rest[LANES], exps[LANES];
    uint32_t farthest[LANES] = {0}, all = 0;
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES) {
        exps_of_step(near, x, most, y, farthest);
        for (int k = 0; k < LANES; k++)
            sums[k] += y[k];
    }
    load_rest(x, n, most, rest);
    exps_of_step(near, rest, most, exps, farthest);
    for (int k = 0; k < LANES; k++)
        exps[k] = k < (int)n ? exps[k] : 0;
    for (int k = 0; k < (int)n; k++)
        y[k] = exps[k];
    for (int k = 0; k < LANES; k++)
        lanes[k] = sums[k] + exps[k];
    for (int k = 0; k < LANES; k++)
        all = farthest[k] > all ? farthest[k] : all;
    return all <= F32_EXP_NEAR;
}

/* A line whose largest element is `most`, by `exps`, memory for it. */
INLINE void softmax_line(float *restrict x, int64_t n, float most, float *restrict exps)
{
    _Alignas(64) float lanes[LANES];
    if (!exps_of_line(true, x, n, most, exps, lanes))
        exps_of_line(false, x, n, most, exps, lanes);
    float sum = sum_of_lanes((const eight *)lanes);
    if (n > ONE_LEVEL)
        reduce_lines(REDUCTION_Sum, TSSA_FLOAT, &sum, exps, n, 1, n, NULL);
    const float factor = 1 / sum;
    for (int64_t i = 0; i < n; i++)
        x[i] = exps[i] * factor;
}

VECTOR_PROCEDURE(each_line,
                 (float *x, float *exps, int64_t lines, int64_t stride, const int64_t *lengths),
                 (x, exps, lines, stride, lengths))
{
    float lanes[SOFTMAX_LINES * LANES], most[SOFTMAX_LINES];
    for (int64_t i = 0; i < lines; i++)
        most_of_line(x + i * stride, lengths[i], lanes + i * LANES);
    halve_most(lanes, most, lines);
    for (int64_t i = 0; i < lines; i++)
        softmax_line(x + i * stride, lengths[i], most[i], exps);
}

void softmax_of_float_lines(float *x, float *exps, int64_t lines, int64_t stride,
                            const int64_t *lengths)
{
    each_line(x, exps, lines, stride, lengths);
}
