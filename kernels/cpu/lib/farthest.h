/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far from 0 the elements of a stretch are, as the bits of the largest magnitude: what is near
 * takes some functions of ir/scalar fewer operations, for the same bits (F32_EXP_NEAR,
 * F32_TRIG_NEAR). A NaN is farther than any number.
 *
 *     uint32_t farthest = 0;
 *     for each element x: farthest = farther(farthest, x);
 *     all are near if farthest <= F32_EXP_NEAR
 */
#ifndef TSSA_KERNELS_CPU_LIB_FARTHEST_H
#define TSSA_KERNELS_CPU_LIB_FARTHEST_H

#include <math.h>

#include "ir/scalar/exact.h"

/* The bits of the larger magnitude. */
SCALAR_FN uint32_t farther(uint32_t farthest, float x)
{
    const uint32_t bits = f32_bits(fabsf(x)); /* a row that takes |x| has it made once */
    return bits > farthest ? bits : farthest;
}

/* Of x[i] - shift. */
SCALAR_FN uint32_t farthest_of(const float *x, int64_t n, float shift)
{
    uint32_t farthest = 0;
    for (int64_t i = 0; i < n; i++)
        farthest = farther(farthest, x[i] - shift);
    return farthest;
}

#endif
