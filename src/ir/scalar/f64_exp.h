/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of double around exp(): exp, sigmoid, expm1, tanh, sinh, cosh, erf, all by exp(x) = 2^n
 * exp(r), |r| <= ln(2) / 2. Polynomials are minimax; errors are in docs/numerics.md, and
 * tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F64_EXP_H
#define TSSA_IR_SCALAR_F64_EXP_H

#include "ir/scalar/exact.h"

/* 1.5 * 2^52: what is added to it is rounded to an integer, which its lowest bits then are. */
#define F64_ROUNDER 0x1.8p+52

/* x + low = n ln(2) + r, |x| < 2^10, low tiny. n is *shifted - F64_ROUNDER. The products of n with
 * the first part of ln(2) are exact, and so is what they leave of x. */
SCALAR_FN double f64_exp_argument(double x, double low, double *shifted)
{
    *shifted = f64_fma(x, 0x1.71547652b82fep+0, F64_ROUNDER);
    double n = *shifted - F64_ROUNDER;
    return f64_fma(n, -0x1.62e42fefa4000p-1, x) + f64_fma(n, 0x1.8432a1b0e2634p-43, low);
}

/* exp(r) - 1 for a reduced r: 2^-58, without the roundings. */
SCALAR_FN double f64_expm1_reduced(double r)
{
    double p = f64_fma(0x1.af8598281be54p-26, r, 0x1.28b03a59b7601p-22);
    p = f64_fma(p, r, 0x1.71dddfc0112e1p-19);
    p = f64_fma(p, r, 0x1.a01996a436394p-16);
    p = f64_fma(p, r, 0x1.a01a01bae8045p-13);
    p = f64_fma(p, r, 0x1.6c16c185a0ebap-10);
    p = f64_fma(p, r, 0x1.111111110d629p-7);
    p = f64_fma(p, r, 0x1.5555555550050p-5);
    p = f64_fma(p, r, 0x1.5555555555561p-3);
    p = f64_fma(p, r, 0x1.000000000000bp-1);
    return f64_fma(r * r, p, r);
}

/* 2^n for -1022 <= n <= 1023, from F64_ROUNDER + n. */
SCALAR_FN double f64_power_of_2(double shifted)
{
    return f64_of((f64_bits(shifted) << 52) + 0x3ff0000000000000);
}

/*
 * 2^power exp(x + low), where |low| is tiny. The power of two has two factors, so that what is
 * denormal is rounded once. Beyond 711 it is infinity, below -747 zero; NaN for NaN.
 */
SCALAR_FN double f64_exp_times(double x, double low, int power)
{
    double bounded = x > 711.0 ? 711.0 : x < -747.0 ? -747.0 : x, shifted;
    double r = f64_exp_argument(bounded, low, &shifted);
    double y = 1.0 + f64_expm1_reduced(r);
    uint64_t n = f64_bits(shifted) - f64_bits(F64_ROUNDER) + 2048 + (uint64_t)(int64_t)power;
    uint64_t first = n >> 1;
    return y * f64_of((first - 1) << 52) * f64_of((n - first - 1) << 52);
}

SCALAR_FN double f64_exp(double x)
{
    return f64_exp_times(x, 0.0, 0);
}

/*
 * 1 / (1 + exp(-x)); below -709, where exp(-x) has no room, exp(x), which is exp(x) / (1 + exp(x)).
 */
SCALAR_FN double f64_sigmoid(double x)
{
    bool low = x < -709.0;
    double e = f64_exp(low ? x : -x);
    return (low ? e : 1.0) / (1.0 + e);
}

/* Computed as half of it, whose power of two always exists. Below -38 the power does not count any
 * more. */
SCALAR_FN double f64_expm1(double x)
{
    double bounded = x > 710.0 ? 710.0 : x < -40.0 ? -40.0 : x, shifted;
    double e = f64_expm1_reduced(f64_exp_argument(bounded, 0.0, &shifted));
    double halved = f64_power_of_2(shifted - 1.0), y = 2.0 * f64_fma(halved, e, halved - 0.5);
    return f64_abs(x) < 0x1p-54 ? x : y;
}

/* 1 - 2 / (exp(2x) + 1), which from 19.1 on is 1; small arguments, where it would cancel: a
 * polynomial. */
SCALAR_FN double f64_tanh(double x)
{
    double a = f64_abs(x), z = a * a, shifted;
    double bounded = a > 19.5 ? 19.5 : a;
    double e = f64_expm1_reduced(f64_exp_argument(2.0 * bounded, 0.0, &shifted));
    double power = f64_power_of_2(shifted);
    double large = 1.0 - 2.0 / (1.0 + f64_fma(power, e, power));
    double p = f64_fma(-0x1.476f9366a387cp-16, z, 0x1.5d9bda3b047bfp-14);
    p = f64_fma(p, z, -0x1.e97e02de411a3p-13);
    p = f64_fma(p, z, 0x1.3485213e4ece0p-11);
    p = f64_fma(p, z, -0x1.7d90026491606p-10);
    p = f64_fma(p, z, 0x1.d6d29f5c13962p-9);
    p = f64_fma(p, z, -0x1.226e2f2d5f567p-7);
    p = f64_fma(p, z, 0x1.664f485a3be44p-6);
    p = f64_fma(p, z, -0x1.ba1ba1b981423p-5);
    p = f64_fma(p, z, 0x1.11111111107e4p-3);
    p = f64_fma(p, z, -0x1.555555555554fp-2);
    double small = f64_fma(a * z, p, a);
    return f64_with_sign(z < 0.3025 ? small : large, x);
}

/*
 * Half of exp(|x|), whose inverse is 4 / 2 of exp(-|x|); a polynomial where the two would cancel.
 */
SCALAR_FN double f64_sinh(double x)
{
    double a = f64_abs(x), z = a * a, halved = f64_exp_times(a, 0.0, -1);
    double p = f64_fma(0x1.b4cf7b2c12433p-41, z, 0x1.611a3a182f532p-33);
    p = f64_fma(p, z, 0x1.ae6467669e987p-26);
    p = f64_fma(p, z, 0x1.71de3a45f70b4p-19);
    p = f64_fma(p, z, 0x1.a01a01a0291fdp-13);
    p = f64_fma(p, z, 0x1.11111111110a1p-7);
    p = f64_fma(p, z, 0x1.5555555555556p-3);
    double small = f64_fma(a * z, p, a);
    return f64_with_sign(a < 1.0 ? small : halved - 0.25 / halved, x);
}

SCALAR_FN double f64_cosh(double x)
{
    double halved = f64_exp_times(f64_abs(x), 0.0, -1);
    return halved + 0.25 / halved;
}

/*
 * Below 1 a polynomial; above, 1 - exp(-y), where y = -log(1 - erf(x)) is one. From 6 on it is 1.
 */
SCALAR_FN double f64_erf(double x)
{
    double a = f64_abs(x), z = a * a;
    double p = f64_fma(0x1.069a61ad6ee58p-34, z, -0x1.38d8f53ec4c3ap-30);
    p = f64_fma(p, z, 0x1.f7c8fac5cf662p-27);
    p = f64_fma(p, z, -0x1.5f20c6cc0aa87p-23);
    p = f64_fma(p, z, 0x1.b9df61c4ea5ffp-20);
    p = f64_fma(p, z, -0x1.f4d1e862e9427p-17);
    p = f64_fma(p, z, 0x1.f9a32221faf9dp-14);
    p = f64_fma(p, z, -0x1.c02db3dda3f18p-11);
    p = f64_fma(p, z, 0x1.565bcd0dcca84p-8);
    p = f64_fma(p, z, -0x1.b82ce312856aap-6);
    p = f64_fma(p, z, 0x1.ce2f21a042b55p-4);
    p = f64_fma(p, z, -0x1.812746b0379e6p-2);
    double small = f64_fma(a, 0x1.20dd750429b6dp+0, a * f64_fma(z, p, 0x1.1ae3a914fed80p-56));
    double t = (a > 6.0 ? 6.0 : a) - 1.0;
    double q = f64_fma(0x1.1b56e56cb9cd3p-50, t, -0x1.a72d095215776p-45);
    q = f64_fma(q, t, 0x1.26ece5472d209p-40);
    q = f64_fma(q, t, -0x1.fe633ddedaa4ap-37);
    q = f64_fma(q, t, 0x1.3380d43612646p-33);
    q = f64_fma(q, t, -0x1.11d792dbbee9dp-30);
    q = f64_fma(q, t, 0x1.73ca32f9bca05p-28);
    q = f64_fma(q, t, -0x1.82fa0e970663ap-26);
    q = f64_fma(q, t, 0x1.28ea73ffce099p-24);
    q = f64_fma(q, t, -0x1.0fff92f4fb979p-23);
    q = f64_fma(q, t, -0x1.c36dd120b7326p-24);
    q = f64_fma(q, t, 0x1.0f74278130fc5p-19);
    q = f64_fma(q, t, -0x1.417cc5afb442fp-17);
    q = f64_fma(q, t, 0x1.c764d5042ec92p-16);
    q = f64_fma(q, t, -0x1.b8c35511b2316p-16);
    q = f64_fma(q, t, -0x1.f1b488b8b4181p-13);
    q = f64_fma(q, t, 0x1.033f68e4f2e7ep-9);
    q = f64_fma(q, t, -0x1.48c9d405eeecep-7);
    q = f64_fma(q, t, 0x1.5477f09c891fap-5);
    q = f64_fma(q, t, 0x1.afabc11a29095p-1);
    q = f64_fma(q, t, 0x1.51c9b0006c23cp+1);
    q = f64_fma(q, t, 0x1.d97fbf27aa2a1p+0);
    double y = a < 1.0 ? small : -f64_expm1(-q);
    return f64_with_sign(a < 6.0 || a != a ? y : 1.0, x);
}

#endif
