/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of float32 that are computed in double and rounded once: pow, the inverses, sinh and
 * cosh. Their errors are little above half a unit; docs/numerics.md has them,
 * tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F32_WIDE_H
#define TSSA_IR_SCALAR_F32_WIDE_H

#include "ir/scalar/wide.h"

/* Of infinity it is pi/2 + atan(-0). Signs are put where vectors have twice the elements. */
SCALAR_FN float f32_atan(float x)
{
    return f32_with_sign((float)wide_atan2(f64_abs((double)x), 1), x);
}

/* asin(x) = atan(x / sqrt(1 - x^2)); NaN beyond 1. */
SCALAR_FN float f32_asin(float x)
{
    double a = f64_abs((double)x);
    double y = wide_atan2(a, sqrt((1 - a) * (1 + a)));
    return f32_abs(x) > 1.0f ? NAN : f32_with_sign((float)y, x);
}

/* acos(x) = 2 atan(sqrt((1 - x) / (1 + x))) */
SCALAR_FN float f32_acos(float x)
{
    double y = 2 * wide_atan2(sqrt(1 - (double)x), sqrt(1 + (double)x));
    return f32_abs(x) > 1.0f ? NAN : (float)y;
}

/* Small arguments, where the difference of the powers would cancel: Taylor's polynomial of degree
 * 13. */
SCALAR_FN float f32_sinh(float x)
{
    double a = f64_abs((double)x), e = wide_exp(a), z = a * a;
    double series =
        (1.0 / 6 + z * (1.0 / 120)) +
        z * z *
            ((1.0 / 5040 + z * (1.0 / 362880)) + z * z * (1.0 / 39916800 + z * (1.0 / 6227020800)));
    double y = a < 1 ? a + a * z * series : (e - 1 / e) * 0.5;
    return f32_with_sign((float)y, x);
}

SCALAR_FN float f32_cosh(float x)
{
    double e = wide_exp(f64_abs((double)x));
    return (float)((e + 1 / e) * 0.5);
}

/* asinh(x) = log(x + sqrt(x^2 + 1)); near 0 Taylor's polynomial. */
SCALAR_FN float f32_asinh(float x)
{
    double a = f64_abs((double)x), z = a * a;
    double y = a < 0x1p-9 ? a - a * z * (1.0 / 6 - z * (3.0 / 40)) : wide_log(a + sqrt(z + 1));
    return f32_with_sign((float)y, x);
}

/* NaN below 1. */
SCALAR_FN float f32_acosh(float x)
{
    double wide = (double)x;
    return x < 1.0f ? NAN : (float)wide_log(wide + sqrt((wide - 1) * (wide + 1)));
}

/* NaN beyond 1. */
SCALAR_FN float f32_atanh(float x)
{
    double a = f64_abs((double)x), z = a * a;
    double y =
        a < 0x1p-9 ? a + a * z * (1.0 / 3 + z * (1.0 / 5)) : 0.5 * wide_log((1 + a) / (1 - a));
    return f32_abs(x) > 1.0f ? NAN : f32_with_sign((float)y, x);
}

/* The integer nearest to a number, ties to even; numbers of 2^23 and more are integers. */
SCALAR_FN float f32_round(float x)
{
    float a = f32_abs(x), rounded = (a + 0x1p+23f) - 0x1p+23f;
    return a < 0x1p+23f ? f32_with_sign(rounded, x) : x;
}

/*
 * exp(y log|x|) with the sign of x where y is odd; NaN where x is negative and y no integer, as in
 * IEEE 754. Exponents 1, 2, 3, -1 and 1/2 are products, a quotient and a root: pow(x, 2) is x * x.
 *
 * What is chosen by y alone is chosen by bits that are all set or not: y may be one number for a
 * whole loop, and gcc 12 makes no vectors of choices by a truth value from outside.
 */
SCALAR_FN float f32_pow(float x, float y)
{
    float a = f32_abs(x), halved = 0.5f * y;
    uint32_t integer = f32_mask(f32_round(y) == y),
             odd = integer & f32_mask(f32_round(halved) != halved);
    /* Infinity becomes a finite exponent, so that its product with log(1) is 0. */
    uint64_t finite = f32_abs(y) == INFINITY ? ~((uint64_t)0x380 << 52) : UINT64_MAX;
    double bounded = f64_of(f64_bits((double)y) & finite);
    uint64_t not_zero = y == 0.0f ? 0 : UINT64_MAX; /* pow(x, 0) is 1, even of NaN */
    float z = (float)wide_exp(bounded * f64_of(f64_bits(wide_log((double)a)) & not_zero));
    uint32_t bits = f32_bits(z) | (f32_bits(x) & odd & 0x80000000);
    bits |= x < 0.0f && a < INFINITY ? ~integer & 0x7fc00000 : 0;
    bits = x == 1.0f ? 0x3f800000 : bits;
    bits = f32_choose(f32_mask(y == 1.0f), f32_bits(x), bits);
    bits = f32_choose(f32_mask(y == 2.0f), f32_bits(x * x), bits);
    bits = f32_choose(f32_mask(y == 3.0f), f32_bits(x * x * x), bits);
    bits = f32_choose(f32_mask(y == -1.0f), f32_bits(1.0f / x), bits);
    float root = x == -INFINITY ? INFINITY : sqrtf(x) + 0.0f;
    return f32_of(f32_choose(f32_mask(y == 0.5f), f32_bits(root), bits));
}

#endif
