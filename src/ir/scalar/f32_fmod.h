/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C's fmod of float32, which is exact. A library finds it bit by bit, in 10 to 20 ns; here, where
 * the quotient is not large, it is three operations in double:
 *
 * Let n be the whole part of a / b, |n| < 2^26. n * b has 26 + 24 bits at most, so it is exact, and
 * so is a - n * b, a multiple of the smaller one of both numbers' lowest bits and less than |b|.
 * The quotient, rounded to double, has the same whole part: a differs from the next multiple of b
 * by one such bit at least, which is more than |a| * 2^-52, and rounding moves it by less than |a /
 * b| * 2^-53.
 */
#ifndef TSSA_IR_SCALAR_F32_FMOD_H
#define TSSA_IR_SCALAR_F32_FMOD_H

#include "ir/scalar/exact.h"

SCALAR_FN float f32_fmod(float a, float b)
{
    const double quotient = (double)a / (double)b;
    if (!(quotient > -0x1p26 && quotient < 0x1p26) || (f32_bits(b) & 0x7fffffff) >= 0x7f800000)
        return (float)fmod((double)a, (double)b); /* NaN, infinities and divisors of 0, too */
    const double rest = (double)a - (double)(int32_t)quotient * (double)b;
    return f32_of((f32_bits((float)rest) & 0x7fffffff) | (f32_bits(a) & 0x80000000));
}

#endif
