/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of float32 around exp(): exp, sigmoid, expm1, tanh, erf, all by exp(x) = 2^n exp(r),
 * |r| <= ln(2) / 2. Errors are in docs/numerics.md; tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F32_EXP_H
#define TSSA_IR_SCALAR_F32_EXP_H

#include "ir/scalar/exact.h"

/* 1.5 * 2^23: what is added to it is rounded to an integer, which its lowest bits then are. */
#define F32_ROUNDER 0x1.8p+23f

/* x = n ln(2) + r. n is F32_ROUNDER + n; ln(2) in two parts, of which the product with the first is
 * exact. */
SCALAR_FN float f32_exp_argument(float x, float *shifted)
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

/*
 * exp(r): the polynomial is of what is near 1, not of what is near 0 as above: two operations less,
 * for 0.2 ulp.
 */
SCALAR_FN float f32_exp_reduced(float r)
{
    float p = f32_fma(r, 0x1.6a4d6p-10f, 0x1.12398ep-7f);
    p = f32_fma(p, r, 0x1.5558bp-5f);
    p = f32_fma(p, r, 0x1.555492p-3f);
    p = f32_fma(p, r, 0x1.fffffcp-2f);
    p = f32_fma(p, r, 1.0f);
    return f32_fma(p, r, 1.0f);
}

/* 2^n for -126 <= n <= 127, from F32_ROUNDER + n. */
SCALAR_FN float f32_power_of_2(float shifted)
{
    return f32_of((f32_bits(shifted) << 23) + 0x3f800000);
}

/*
 * In the bits of F32_ROUNDER + 126 + n, the exponent that 2^(n-1) has as a float is the lowest
 * byte. So n is bounded there: to 129 above, which gives infinity, also where the sum was negative,
 * and NaN is in r. Below, the power has two factors, so that denormals are rounded once. Choices
 * are few and each about another number: compilers join those about one number to branches, of
 * which they make more comparisons than there were.
 */
SCALAR_FN float f32_exp(float x)
{
    const float ROUNDER = F32_ROUNDER + 126.0f;
    const uint32_t ZERO = 0x4b40007e; /* ROUNDER's bits: n = 0 */
    uint32_t bits = f32_bits(f32_fma(x, 0x1.715476p+0f, ROUNDER));
    bits = bits > ZERO + 129 ? ZERO + 129 : bits;
    float n = f32_of(bits) - ROUNDER;
    float r = f32_fma(n, 0x1.05c61p-29f, f32_fma(n, -0x1.62e43p-1f, x));
    float p = f32_exp_reduced(r);
    uint32_t normal = bits < ZERO - 124 ? ZERO - 124 : bits;
    float rest = f32_of(((bits - normal) << 23) + 0x40000000); /* 2 or less */
    float y = p * f32_of(normal << 23) * rest;
    return x < -104.0f ? 0.0f : y;
}

/* The bits of 87: between it and its negative n is an exponent that normal numbers have, with every
 * fraction. */
#define F32_EXP_NEAR 0x42ae0000

/* The bits of f32_exp for -87 <= x <= 87. */
SCALAR_FN float f32_exp_near(float x)
{
    float shifted, p = f32_exp_reduced(f32_exp_argument(x, &shifted));
    return f32_of(f32_bits(p) + (f32_bits(shifted) << 23));
}

/*
 * 1 / (1 + exp(-x)); below -87, where exp(-x) has no room, exp(x), which is exp(x) / (1 + exp(x)).
 */
SCALAR_FN float f32_sigmoid(float x)
{
    bool low = x < -87.0f;
    float e = f32_exp(low ? x : -x);
    return (low ? e : 1.0f) / (1.0f + e);
}

/* The bits of f32_sigmoid for -87 <= x <= 87. */
SCALAR_FN float f32_sigmoid_near(float x)
{
    return 1.0f / (1.0f + f32_exp_near(-x));
}

/*
 * Computed as half of it, whose power of two always exists. Near 0, where the half could be
 * denormal: x. From 2^-26 down the power does not count any more.
 */
SCALAR_FN float f32_expm1(float x)
{
    float bounded = x > 89.0f ? 89.0f : x, shifted;
    float e = f32_expm1_reduced(f32_exp_argument(bounded, &shifted));
    float halved = f32_power_of_2(shifted - 1.0f), y = 2.0f * f32_fma(halved, e, halved - 0.5f);
    y = shifted < F32_ROUNDER - 26.0f ? -1.0f : y;
    return f32_abs(x) < 0x1p-25f ? x : y;
}

/* exp(x) - 1 for -87 <= x <= 87. */
SCALAR_FN float f32_expm1_bounded(float x)
{
    float shifted, e = f32_expm1_reduced(f32_exp_argument(x, &shifted));
    float power = f32_power_of_2(shifted);
    return f32_fma(power, e, power - 1.0f);
}

/*
 * (1 - e) / (1 + e) of e = exp(-2 |x|) = 2^n (1 - 2 q), q = -expm1(-2 r) / 2, n <= 0: half of both
 * sides is computed from q and rounded once, so that nothing cancels where n is 0 and neither
 * grows. One part of ln(2) / 2 is enough, since e is small where n is not. From 9.02 on it is 1;
 * NaN is not above it.
 */
SCALAR_FN float f32_tanh(float x)
{
    float a = f32_abs(x);
    a = a > 9.02f ? 9.02f : a;
    float shifted = f32_fma(a, -0x1.715476p+1f, F32_ROUNDER);
    float r = f32_fma(shifted - F32_ROUNDER, 0x1.62e43p-2f, a);
    float p = f32_fma(r, -0x1.68a188p-5f, 0x1.122ee2p-3f);
    p = f32_fma(p, r, -0x1.555ae2p-2f);
    p = f32_fma(p, r, 0x1.55549ep-1f);
    p = f32_fma(p, r, -0x1.fffff8p-1f);
    float q = f32_fma(r * r, p, r);
    uint32_t n = f32_bits(shifted) << 23;
    float power = f32_of(n + 0x3f800000), halved = f32_of(n + 0x3f000000);
    float y = f32_fma(power, q, 0.5f - halved) / f32_fma(-power, q, 0.5f + halved);
    return f32_of(f32_bits(y) | (f32_bits(x) & 0x80000000));
}

/*
 * erf(x) = -expm1(-x h(x)), where h(x) = -log(1 - erf(x)) / x is smooth: a polynomial. Its first
 * coefficient, 2 / sqrt(pi), has two parts. From 3.93 on erf(x) is 1.
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
