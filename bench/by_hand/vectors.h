/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of floats, as gcc and clang have them, and functions of these. */
#ifndef TSSA_BENCH_VECTORS_H
#define TSSA_BENCH_VECTORS_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef int integers __attribute__((vector_size(4 * LANES)));

static inline vector choose(integers which, vector a, vector b)
{
    return (vector)(((integers)a & which) | ((integers)b & ~which));
}

/* One instruction, which gcc makes of no choice. */
static inline vector greater(vector a, vector b)
{
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return choose(a > b, a, b);
#endif
}

static inline vector exp_of(vector x)
{
    const vector limit = (vector){0} + 87.0F;
    x = -greater(-greater(x, -limit), -limit);
    const vector shifted = x * 1.44269504F + 12582912.0F; /* the integer is in the lowest bits */
    const vector n = shifted - 12582912.0F;
    const vector r = x - n * 0.693359375F + n * 2.12194440e-4F;
    vector p = r * 1.9875691500e-4F + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    return (vector)((integers)p + ((integers)shifted << 23));
}

static inline vector sigmoid_of(vector x)
{
    return 1.0F / (1.0F + exp_of(-x));
}

static inline vector tanh_of(vector x)
{
    return 2.0F * sigmoid_of(2.0F * x) - 1.0F;
}

#endif
