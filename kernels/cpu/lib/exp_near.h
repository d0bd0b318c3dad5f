/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether all elements of a stretch are as near 0 as f32_exp_near takes them: of magnitudes up to
 * 87. A NaN is not near.
 *
 *     uint32_t farthest = 0;
 *     for each element x: farthest = farther(farthest, x);
 *     they are near if farthest <= F32_EXP_NEAR
 */
#ifndef TSSA_KERNELS_CPU_LIB_EXP_NEAR_H
#define TSSA_KERNELS_CPU_LIB_EXP_NEAR_H

#include "ir/scalar/f32_exp.h"

/* The bits of the larger magnitude. */
SCALAR_FN uint32_t farther(uint32_t farthest, float x)
{
    uint32_t bits = f32_bits(x) & 0x7fffffff;
    return bits > farthest ? bits : farthest;
}

/* The same of x - shift. */
SCALAR_FN bool are_near(const float *x, int64_t n, float shift)
{
    uint32_t farthest = 0;
    for (int64_t i = 0; i < n; i++)
        farthest = farther(farthest, x[i] - shift);
    return farthest <= F32_EXP_NEAR;
}

#endif
