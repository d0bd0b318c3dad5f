/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sine, cosine and tangent of double. |x| = n pi/2 + r, |r| <= pi/4 or little more, r in two parts:
 * by fused multiply-adds with pi/2 in three parts below 2^27, from there on by the digits of 2/pi
 * that matter. Polynomials are minimax; errors are in docs/numerics.md, and
 * tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F64_TRIG_H
#define TSSA_IR_SCALAR_F64_TRIG_H

#include "ir/scalar/exact.h"

struct f64_angle {
    uint64_t quarter; /* n, of which the lowest two bits count */
    double high, low; /* r */
};

#define F64_PI_2_A 0x1.921fb54442d18p+0
#define F64_PI_2_B 0x1.1a62633145c07p-54
#define F64_PI_2_C -0x1.f1976b7ed8fbcp-110

/* a < 2^27: its product with the first part of pi/2 is subtracted exactly. */
SCALAR_FN struct f64_angle f64_small_angle(double a)
{
    double shifted = f64_fma(a, 0x1.45f306dc9c883p-1, 0x1.8p+52), n = shifted - 0x1.8p+52;
    double rest = f64_fma(n, -F64_PI_2_A, a), product = n * F64_PI_2_B;
    double product_low = f64_fma(n, F64_PI_2_B, -product), high = rest - product;
    double low = ((rest - high) - product) - product_low;
    struct f64_angle angle = {f64_bits(shifted), high, f64_fma(n, -F64_PI_2_C, low)};
    return angle;
}

/* The high half of a product. */
SCALAR_FN uint64_t f64_high_product(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = (middle & UINT32_MAX) + a0 * b1;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The digits of 2/pi, behind 64 zeros. */
SCALAR_TABLE uint64_t f64_two_over_pi[] = {0,
                                           0xa2f9836e4e441529,
                                           0xfc2757d1f534ddc0,
                                           0xdb6295993c439041,
                                           0xfe5163abdebbc561,
                                           0xb7246e3a424dd2e0,
                                           0x06492eea09d1921c,
                                           0xfe1deb1cb129a73e,
                                           0xe88235f52ebb4484,
                                           0xe99c7026b45f7e41,
                                           0x3991d639835339f4,
                                           0x9c845f8bbdf9283b,
                                           0x1ff897ffde05980f,
                                           0xef2f118b5a0a6d1f,
                                           0x6d367ecf27cb09b7,
                                           0x4f463f669e5fea2d,
                                           0x7527bac7ebe5f17b,
                                           0x3d0739f78a5292ea,
                                           0x6bfb5fb11f8d5d08,
                                           0x56033046fc7b6bab};

/* 64 digits of 2/pi, from number `at` on: digit i, from 0, is worth 2^(-1-i); zeros before that. */
SCALAR_FN uint64_t f64_digits(int at)
{
    int from = at + 64, bit = from & 63;
    return f64_two_over_pi[from >> 6] << bit | f64_two_over_pi[(from >> 6) + 1] >> 1 >> (63 - bit);
}

/*
 * 2^27 <= a: with a = m 2^k, the digits of 2/pi above 2^(2-k) make multiples of 4 of the quarters
 * and are left out, and 192 digits after them are enough. Of the product modulo 4, two bits before
 * the point and 126 after it, the nearest integer is n and the rest a fraction of pi/2.
 */
SCALAR_FN struct f64_angle f64_large_angle(double a)
{
    uint64_t bits = f64_bits(a), m = (bits & 0x000fffffffffffff) | 0x0010000000000000;
    int k = (int)(bits >> 52) - 1075;
    k = k > 971 ? 971 : k; /* infinity and NaN */
    uint64_t first = f64_digits(k - 2), second = f64_digits(k + 62), third = f64_digits(k + 126);
    uint64_t middle = m * second, low = middle + f64_high_product(m, third);
    uint64_t high = m * first + f64_high_product(m, second) + (low < middle ? 1 : 0);
    uint64_t n = (high + 0x2000000000000000) >> 62;
    high -= n << 62;
    /* Of 126 digits behind the point: 32, 32, 32, 30, each exact. */
    double a1 = (double)((int64_t)high >> 30) * 0x1p-32;
    double a2 = (double)(int64_t)((high & 0x3fffffff) << 2 | low >> 62) * 0x1p-64;
    double a3 = (double)(int64_t)(low >> 30 & UINT32_MAX) * 0x1p-96;
    double a4 = (double)(int64_t)(low & 0x3fffffff) * 0x1p-126;
    double head = a1 + a2, tail = a2 - (head - a1) + (a3 + a4);
    double fraction = head + tail, rest = tail - (fraction - head);
    double r = fraction * F64_PI_2_A, r_low = f64_fma(fraction, F64_PI_2_A, -r);
    r_low = f64_fma(fraction, F64_PI_2_B, f64_fma(rest, F64_PI_2_A, r_low));
    struct f64_angle angle = {n, r, r_low};
    return angle;
}

SCALAR_FN struct f64_angle f64_angle_of(double a)
{
    return a >= 0x1p+27 ? f64_large_angle(a) : f64_small_angle(a);
}

/* What sin(r) is beside r. */
SCALAR_FN double f64_sin_rest(struct f64_angle x)
{
    double z = x.high * x.high;
    double p = f64_fma(0x1.5d932e5fe39cbp-33, z, -0x1.ae5e66d23d681p-26);
    p = f64_fma(p, z, 0x1.71de357871e55p-19);
    p = f64_fma(p, z, -0x1.a01a019c1269fp-13);
    p = f64_fma(p, z, 0x1.111111110f881p-7);
    p = f64_fma(p, z, -0x1.5555555555549p-3);
    return f64_fma(x.high * z, p, x.low);
}

/* 1 - r^2 / 2, rounded, and what cos(r) is beside it. */
SCALAR_FN double f64_cos_rest(struct f64_angle x, double *first)
{
    double z = x.high * x.high, halved = 0.5 * z;
    double half_low = 0.5 * f64_fma(x.high, x.high, -z);
    *first = 1.0 - halved;
    double p = f64_fma(-0x1.8faecf08b135ap-37, z, 0x1.1ee9ec47a19cfp-29);
    p = f64_fma(p, z, -0x1.27e4f80a769a6p-22);
    p = f64_fma(p, z, 0x1.a01a019cb26fcp-16);
    p = f64_fma(p, z, -0x1.6c16c16c15184p-10);
    p = f64_fma(p, z, 0x1.555555555554cp-5);
    double rounded = (1.0 - *first) - halved;
    return rounded + (f64_fma(z * z, p, -x.high * x.low) - half_low);
}

SCALAR_FN double f64_sin_reduced(struct f64_angle x)
{
    return x.high + f64_sin_rest(x);
}

SCALAR_FN double f64_cos_reduced(struct f64_angle x)
{
    double first, rest = f64_cos_rest(x, &first);
    return first + rest;
}

/* NaN of infinities and NaN. */
SCALAR_FN double f64_sin(double x)
{
    struct f64_angle angle = f64_angle_of(f64_abs(x));
    double y = angle.quarter & 1 ? f64_cos_reduced(angle) : f64_sin_reduced(angle);
    uint64_t sign = (angle.quarter & 2) << 62 ^ (f64_bits(x) & 0x8000000000000000);
    y = f64_abs(x) < 0x1p-26 ? f64_abs(x) : y;
    return f64_abs(x) < (double)INFINITY ? f64_of(f64_bits(y) ^ sign) : (double)NAN;
}

SCALAR_FN double f64_cos(double x)
{
    struct f64_angle angle = f64_angle_of(f64_abs(x));
    double y = angle.quarter & 1 ? f64_sin_reduced(angle) : f64_cos_reduced(angle);
    uint64_t sign = ((angle.quarter + 1) & 2) << 62;
    return f64_abs(x) < (double)INFINITY ? f64_of(f64_bits(y) ^ sign) : (double)NAN;
}

/* The quotient, mended by what its operands and itself were rounded by. */
SCALAR_FN double f64_tan(double x)
{
    struct f64_angle angle = f64_angle_of(f64_abs(x));
    double s_rest = f64_sin_rest(angle), s = angle.high + s_rest;
    double c_first, c_rest = f64_cos_rest(angle, &c_first), c = c_first + c_rest;
    double s_low = s_rest - (s - angle.high), c_low = c_rest - (c - c_first);
    int odd = (angle.quarter & 1) != 0;
    double above = odd ? -c : s, above_low = odd ? -c_low : s_low;
    double below = odd ? s : c, below_low = odd ? s_low : c_low;
    double q = above / below;
    double missing = f64_fma(-q, below, above) + f64_fma(-q, below_low, above_low);
    double y = q + missing / below;
    y = f64_abs(x) < 0x1p-27 ? f64_abs(x) : y;
    uint64_t sign = f64_bits(x) & 0x8000000000000000;
    return f64_abs(x) < (double)INFINITY ? f64_of(f64_bits(y) ^ sign) : (double)NAN;
}

#endif
