/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of float32 around exp(): exp, expm1, tanh, erf, all by exp(x) = 2^n exp(r), |r| <= ln(2) / 2.
 * Errors are in docs/numerics.md; tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F32_EXP_H
#define TSSA_IR_SCALAR_F32_EXP_H

#include "ir/scalar/exact.h"

/* 1.5 * 2^23: what is added to it is rounded to an integer, which its lowest bits then are. */
#define F32_ROUNDER 0x1.8p+23f

/* x = n ln(2) + r. n is F32_ROUNDER + n; ln(2) in two parts, of which the product with the first is exact. */
SCALAR_FN float f32_exp_reduce(float x, float *shifted)
{
    *shifted = f32_fma(x, 0x1.715476p+0f, F32_ROUNDER);
    float n = *shifted - F32_ROUNDER;
    return f32_fma(n, 0x1.05c61p-29f, f32_fma(n, -0x1.62e43p-1f, x));
}

/* exp(r) - 1 for a reduced r: 2^-31 of it, without the roundings. */
SCALAR_FN float f32_expm1_reduced(float r)
{
    float p = f32_fma(r, 0x1.9e738p-13f, 0x1.6d3a4ap-10f);
    p = f32_fma(p, r, 0x1.1112d8p-7f);
    p = f32_fma(p, r, 0x1.5554f8p-5f);
    p = f32_fma(p, r, 0x1.555554p-3f);
    p = f32_fma(p, r, 0.5f);
    return f32_fma(r * r, p, r);
}

/* 2^n for -126 <= n <= 127, from F32_ROUNDER + n. */
SCALAR_FN float f32_power_of_2(float shifted)
{
    return f32_of((f32_bits(shifted) << 23) + 0x3f800000);
}

/*
 * Beyond -104 the result is 0, and nothing is computed of which a processor would have to make denormals;
 * where the result is one, its power of two is 2^64 too high at first.
 */
SCALAR_FN float f32_exp(float x)
{
    float bounded = x < -104.0f ? 0.0f : x, shifted;
    bounded = bounded > 89.0f ? 89.0f : bounded;
    float e = 1.0f + f32_expm1_reduced(f32_exp_reduce(bounded, &shifted));
    int low = bounded < -86.0f;
    uint32_t exponent = (f32_bits(shifted) << 23) + (low ? (uint32_t)64 << 23 : 0);
    float y = f32_of(f32_bits(e) + exponent) * (low ? 0x1p-64f : 1.0f);
    y = x > 0x1.62e42ep+6f ? INFINITY : y;
    y = x < -104.0f ? 0.0f : y;
    return x != x ? x : y;
}

/* Computed as half of it, whose power of two always exists. Near 0, where the half could be denormal: x. */
SCALAR_FN float f32_expm1(float x)
{
    float bounded = x > 89.0f ? 89.0f : x, shifted;
    bounded = bounded < -18.0f ? -18.0f : bounded;
    float e = f32_expm1_reduced(f32_exp_reduce(bounded, &shifted));
    float half = f32_power_of_2(shifted - 1.0f), y = 2.0f * f32_fma(half, e, half - 0.5f);
    return f32_abs(x) < 0x1p-25f ? x : y;
}

/* exp(x) - 1 for -87 <= x <= 87. */
SCALAR_FN float f32_expm1_bounded(float x)
{
    float shifted, e = f32_expm1_reduced(f32_exp_reduce(x, &shifted));
    float power = f32_power_of_2(shifted);
    return f32_fma(power, e, power - 1.0f);
}

/* 1 - 2 / (exp(2x) + 1), which from 9.02 on is 1; small arguments, where it would cancel: a polynomial. */
SCALAR_FN float f32_tanh(float x)
{
    float a = f32_abs(x), z = a * a, shifted;
    float bounded = a > 9.02f ? 9.02f : a;
    float e = f32_expm1_reduced(f32_exp_reduce(2.0f * bounded, &shifted));
    float power = f32_power_of_2(shifted), large = 1.0f - 2.0f / (f32_fma(power, e, power) + 1.0f);
    float p = f32_fma(z, -0x1.9921a2p-8f, 0x1.58e518p-6f);
    p = f32_fma(p, z, -0x1.b91e7ep-5f);
    p = f32_fma(p, z, 0x1.110ceep-3f);
    p = f32_fma(p, z, -0x1.55554ap-2f);
    float small = f32_fma(a * z, p, a);
    return f32_with_sign(a < 0.55f ? small : large, x);
}

/*
 * erf(x) = -expm1(-x h(x)), where h(x) = -log(1 - erf(x)) / x is smooth: a polynomial. Its first coefficient,
 * 2 / sqrt(pi), has two parts. From 3.93 on erf(x) is 1.
 */
SCALAR_FN float f32_erf(float x)
{
    float a = f32_abs(x);
    a = a > 3.93f ? 3.93f : a;
    float h = f32_fma(a, -0x1.36dad4p-17f, 0x1.edba4p-14f);
    h = f32_fma(h, a, -0x1.4bed7ap-11f);
    h = f32_fma(h, a, 0x1.b52190p-10f);
    h = f32_fma(h, a, -0x1.516f96p-13f);
    h = f32_fma(h, a, -0x1.39cc9cp-6f);
    h = f32_fma(h, a, 0x1.a4fa4ap-4f);
    h = f32_fma(h, a, 0x1.45f2fap-1f);
    h = f32_fma(h, a, -0x1.d0e254p-25f);
    float y = f32_fma(a, 0x1.20dd76p+0f, a * h);
    return f32_with_sign(f32_expm1_bounded(-y), x);
}

#endif
