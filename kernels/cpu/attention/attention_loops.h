/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of Attention for one element type. A file attention_TYPE.c defines T, the C type of an
 * element; T_DTYPE, its number; T_TANH; T_FMA, its a * b + c; T_MULTIPLY, its function of
 * lib/gemm_fused.h; and T_LOOPS, the table to fill; and includes this file.
 */
#include <math.h>

#include "base/clones.h"
#include "kernels/cpu/attention/attention.h"

#define INLINE static inline __attribute__((always_inline))

VECTOR_PROCEDURE(scale, (void *scores, int64_t n, double factor), (scores, n, factor))
{
    T *x = scores;
    for (int64_t i = 0; i < n; i++)
        x[i] *= (T)factor;
}

VECTOR_PROCEDURE(cap, (void *scores, int64_t n, double softcap), (scores, n, softcap))
{
    T *x = scores, most = (T)softcap;
    for (int64_t i = 0; i < n; i++)
        x[i] = most * T_TANH(x[i] / most);
}

VECTOR_PROCEDURE(add_bias, (void *scores, const void *biases, int64_t n, bool truths),
                 (scores, biases, n, truths))
{
    T *x = scores;
    const T *bias = biases;
    if (truths)
        for (int64_t i = 0; i < n; i++)
            x[i] = bias[i] != 0 ? x[i] : (T)-INFINITY;
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = bias[i] == (T)-INFINITY ? bias[i] : x[i] + bias[i];
}

static void fill(void *values, int64_t n, double value)
{
    T *x = values;
    for (int64_t i = 0; i < n; i++)
        x[i] = (T)value;
}

static bool all_masked(const void *scores, int64_t n)
{
    const T *x = scores;
    for (int64_t i = 0; i < n; i++)
        if (x[i] != (T)-INFINITY)
            return false;
    return true;
}

/* Elements whose sums are made together. */
#define LANES 32

VECTOR_FUNCTION(bool, all_finite, (const void *values, int64_t n), (values, n))
{
    const T *x = values;
    T sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            sums[k] += x[i + k];
    for (; i < n; i++)
        sum += x[i];
    for (int k = 0; k < LANES; k++)
        sum += sums[k];
    return sum - sum == 0;
}

INLINE void weigh_rows(const T *restrict v, const T *restrict w, int64_t rows, int64_t n,
                       T *restrict a)
{
    for (; rows >= 4; rows -= 4, w += 4, v += 4 * n)
        for (int64_t i = 0; i < n; i++)
            a[i] = (((a[i] + w[0] * v[i]) + w[1] * v[n + i]) + w[2] * v[2 * n + i]) +
                   w[3] * v[3 * n + i];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            a[i] += w[r] * v[r * n + i];
}

VECTOR_PROCEDURE(weigh,
                 (const void *values, const void *weights, int64_t rows, int64_t n, void *sums),
                 (values, weights, rows, n, sums))
{
    weigh_rows(values, weights, rows, n, sums);
}

INLINE void weigh_some_rows(const T *restrict v, const T *restrict w, int64_t rows, int64_t n,
                            T *restrict a)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; w[r] != 0 && i < n; i++)
            a[i] = T_FMA(w[r], v[r * n + i], a[i]);
}

VECTOR_PROCEDURE(weigh_some,
                 (const void *values, const void *weights, int64_t rows, int64_t n, void *sums),
                 (values, weights, rows, n, sums))
{
    weigh_some_rows(values, weights, rows, n, sums);
}

const struct attention_loops T_LOOPS = {T_DTYPE,    sizeof(T),  scale,      cap,   add_bias,  fill,
                                        all_masked, all_finite, T_MULTIPLY, weigh, weigh_some};
