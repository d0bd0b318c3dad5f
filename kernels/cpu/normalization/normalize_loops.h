/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of normalizations for one element type. A file normalize_TYPE.c defines T, the C type
 * of an element; T_DTYPE, its number; T_SQRT, its square root; and T_LOOPS, the table to fill; and
 * includes this file.
 */
#include <math.h>

#include "base/clones.h"
#include "kernels/cpu/normalization/normalize.h"

#define INLINE static inline __attribute__((always_inline))

/* variance -> 1 / sqrt(variance + epsilon) */
static void invert(void *variance, int64_t n, double epsilon)
{
    T *v = variance;
    for (int64_t i = 0; i < n; i++)
        v[i] = 1 / T_SQRT(v[i] + (T)epsilon);
}

INLINE void scale_lines(const struct normalize_lines *l, const T *restrict scale,
                        const T *restrict bias)
{
    for (int64_t line = 0; line < l->lines; line++) {
        const T *x = (const T *)l->x + line * l->n;
        T *y = (T *)l->y + line * l->n;
        const T mean = ((const T *)l->mean)[line], inverse = ((const T *)l->inverse)[line];
        /* x may be y. */
        if (bias)
            for (int64_t i = 0; i < l->n; i++)
                y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
        else
            for (int64_t i = 0; i < l->n; i++)
                y[i] = (x[i] - mean) * inverse * scale[i];
    }
}

VECTOR_PROCEDURE(elements, (const struct normalize_lines *l, const void *scale, const void *bias),
                 (l, scale, bias))
{
    if (bias)
        scale_lines(l, scale, bias);
    else
        scale_lines(l, scale, NULL);
}

VECTOR_PROCEDURE(channel,
                 (const void *from, void *to, int64_t n, const void *mean, const void *inverse,
                  const void *scale, const void *bias),
                 (from, to, n, mean, inverse, scale, bias))
{
    const T *x = from, m = *(const T *)mean, b = *(const T *)bias;
    const T factor = *(const T *)inverse * *(const T *)scale;
    T *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - m) * factor + b;
}

/* variance -> sqrt(variance) + 1e-9 */
static void deviate(void *variance, int64_t n)
{
    T *v = variance;
    for (int64_t i = 0; i < n; i++)
        v[i] = T_SQRT(v[i]) + (T)1e-9;
}

INLINE void normalize_run(const T *x, T *y, int64_t n, const T *shift, const T *norm, int64_t step)
{
    if (shift)
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - shift[i * step]) / norm[i * step];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = norm[i * step] == 0 ? 0 : x[i] / norm[i * step];
}

VECTOR_PROCEDURE(by_group,
                 (const void *x, void *y, int64_t n, const void *shift, const void *norm,
                  int64_t step),
                 (x, y, n, shift, norm, step))
{
    if (step == 1)
        normalize_run(x, y, n, shift, norm, 1);
    else
        normalize_run(x, y, n, shift, norm, 0);
}

const struct normalize_loops T_LOOPS = {T_DTYPE,  sizeof(T), invert,  deviate,
                                        elements, channel,   by_group};
