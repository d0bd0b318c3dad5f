/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax of lines of float32 in place, for kernels that have made them. Other than of a tensor,
 * exponentials are summed as they are computed, in memory for a few lines, and go back where the
 * lines were once they are multiplied. The bits are those of the operator.
 */
#include "base/clones.h"
#include "ir/reduction.h"
#include "ir/scalar/f32_exp.h"
#include "kernels/cpu/lib/farthest.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/softmax.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES REDUCTION_LANES
/* Lines whose exponentials are kept at a time, if they are short. */
#define GROUP 8
/* Elements of a line whose sum has one level. */
#define ONE_LEVEL (REDUCTION_RADIX * REDUCTION_LANES)

INLINE int64_t whole_steps(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

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
#define PLUS(a, b) ((a) + (b))

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
HALVES(halve_sums, PLUS)

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

/* The same of a line, to whole steps, and the sums of ONE_LEVEL elements at most. */
INLINE void exps_of_line(bool near, const float *restrict x, int64_t n, float most,
                         float *restrict y, float *restrict lanes, uint32_t *restrict farthest)
{
    float sums[LANES] = {0}, rest[LANES], exps[LANES];
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES) {
        exps_of_step(near, x, most, y, farthest);
        for (int k = 0; k < LANES; k++)
            sums[k] += y[k];
    }
    if (n > 0) {
        load_rest(x, n, most, rest);
        exps_of_step(near, rest, most, exps, farthest);
        for (int k = 0; k < LANES; k++) {
            y[k] = k < (int)n ? exps[k] : 0;
            sums[k] += y[k];
        }
    }
    for (int k = 0; k < LANES; k++)
        lanes[k] = sums[k];
}

INLINE bool all_near(const uint32_t *farthest)
{
    uint32_t all = 0;
    for (int k = 0; k < LANES; k++)
        all = farthest[k] > all ? farthest[k] : all;
    return all <= F32_EXP_NEAR;
}

/* Steps; the last one ends with the line, be it that elements are computed again. */
INLINE void scale_line(const float *restrict exps, int64_t n, float factor, float *restrict x)
{
    for (int64_t i = 0; n >= LANES && i < n; i += LANES) {
        const int64_t at = i + LANES < n ? i : n - LANES;
        for (int k = 0; k < LANES; k++)
            x[at + k] = exps[at + k] * factor;
    }
    for (int64_t i = 0; n < LANES && i < n; i++)
        x[i] = exps[i] * factor;
}

/* Lines whose largest elements are `most`, by memory for so many. */
INLINE void softmax_group(float *restrict x, float *restrict exps, int64_t lines, int64_t stride,
                          const int64_t *lengths, const float *most)
{
    const int64_t step = whole_steps(stride);
    _Alignas(64) float lanes[GROUP * LANES], sums[GROUP];
    uint32_t farthest[LANES] = {0};
    for (int64_t i = 0; i < lines; i++)
        exps_of_line(true, x + i * stride, lengths[i], most[i], exps + i * step, lanes + i * LANES,
                     farthest);
    if (!all_near(farthest))
        for (int64_t i = 0; i < lines; i++)
            exps_of_line(false, x + i * stride, lengths[i], most[i], exps + i * step,
                         lanes + i * LANES, farthest);
    halve_sums(lanes, sums, lines);
    for (int64_t i = 0; i < lines; i++) {
        const float *y = exps + i * step;
        if (lengths[i] > ONE_LEVEL)
            reduce_lines(REDUCTION_Sum, TSSA_FLOAT, &sums[i], y, step, 1, lengths[i], NULL);
        scale_line(y, lengths[i], 1 / sums[i], x + i * stride);
    }
}

VECTOR_PROCEDURE(softmax_groups,
                 (float *x, float *exps, int64_t lines, int64_t stride, const int64_t *lengths),
                 (x, exps, lines, stride, lengths))
{
    _Alignas(64) float lanes[SOFTMAX_LINES * LANES];
    float most[SOFTMAX_LINES];
    const int64_t several = stride > 0 ? SOFTMAX_EXPS / whole_steps(stride) : 1;
    const int64_t group = several < 1 ? 1 : several < GROUP ? several : GROUP;
    for (int64_t i = 0; i < lines; i++)
        most_of_line(x + i * stride, lengths[i], lanes + i * LANES);
    halve_most(lanes, most, lines);
    for (int64_t i = 0; i < lines; i += group)
        softmax_group(x + i * stride, exps, lines - i < group ? lines - i : group, stride,
                      lengths + i, most + i);
}

void softmax_of_float_lines(float *x, float *exps, int64_t lines, int64_t stride,
                            const int64_t *lengths)
{
    softmax_groups(x, exps, lines, stride, lengths);
}
