/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sine, cosine and tangent of float32. |x| = n pi/2 + r, |r| <= pi/4 or little more, r in two
 * parts: by fused multiply-adds with pi/2 in three parts below 2^17, from there on by the digits of
 * 2/pi that matter. Errors are in docs/numerics.md; tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F32_TRIG_H
#define TSSA_IR_SCALAR_F32_TRIG_H

#include "ir/scalar/exact.h"

struct f32_angle {
    uint32_t quarter; /* n, of which the lowest two bits count */
    float high, low;  /* r */
};

#define F32_PI_2_A 0x1.921fb6p+0f
#define F32_PI_2_B -0x1.777a5cp-25f
#define F32_PI_2_C -0x1.ee59dap-50f

/* a < 2^17: its product with the first part of pi/2 is subtracted exactly. */
SCALAR_FN struct f32_angle f32_small_angle(float a)
{
    float shifted = f32_fma(a, 0x1.45f306p-1f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    float rest = f32_fma(n, -F32_PI_2_A, a), product = n * F32_PI_2_B;
    float product_low = f32_fma(n, F32_PI_2_B, -product), high = rest - product;
    float low = ((rest - high) - product) - product_low;
    struct f32_angle angle = {f32_bits(shifted), high, f32_fma(n, -F32_PI_2_C, low)};
    return angle;
}

/* Four words of the digits of 2/pi, as choices between constants: processors are slow at looking
 * up. */
#define F32_CHOICE(word, a, b, c, d)                                                               \
    ((word) < 2 ? ((word) < 1 ? (a) : (b)) : (word) < 3 ? (c) : (d))
/* 32 digits from number `bit` of a word and the next one on. */
#define F32_DIGITS(bit, word, next) ((word) << (bit) | (next) >> 1 >> (31 - (bit)))

SCALAR_FN uint32_t f32_high_product(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/*
 * 2^15 <= a: with a = m 2^k, the digits of 2/pi above 2^(2-k) make multiples of 4 of the quarters
 * and are left out, and 96 digits after them are enough. Of the product modulo 4, two bits before
 * the point and 62 after it, the nearest integer is n and the rest a fraction of pi/2, made of
 * three exact floats.
 */
SCALAR_FN struct f32_angle f32_large_angle(float a)
{
    uint32_t bits = f32_bits(a), m = (bits & 0x7fffff) | 0x800000, at = ((bits >> 23) - 142) & 127;
    at = at > 112 ? 112 : at; /* infinity and NaN */
    uint32_t word = at >> 5, bit = at & 31;
    /* After ten zeros: bit i of these, from 0, is worth 2^(9-i). */
    const uint32_t A = 0x0028be60, B = 0xdb939105, C = 0x4a7f09d5, D = 0xf47d4d37, E = 0x7036d8a5,
                   F = 0x664f10e4, G = 0x107f9458;
    uint32_t w0 = F32_CHOICE(word, A, B, C, D), w1 = F32_CHOICE(word, B, C, D, E),
             w2 = F32_CHOICE(word, C, D, E, F), w3 = F32_CHOICE(word, D, E, F, G);
    uint32_t second_digits = F32_DIGITS(bit, w1, w2);
    uint32_t middle = m * second_digits;
    uint32_t low = middle + f32_high_product(m, F32_DIGITS(bit, w2, w3));
    uint32_t high =
        m * F32_DIGITS(bit, w0, w1) + f32_high_product(m, second_digits) + (low < middle ? 1 : 0);
    uint32_t n = (high + 0x20000000) >> 30;
    high -= n << 30;
    float first = (float)((int32_t)high >> 8) * 0x1p-22f;
    float second = (float)(int32_t)((high & 0xff) << 16 | low >> 16) * 0x1p-46f;
    float third = (float)(int32_t)(low & 0xffff) * 0x1p-62f;
    float fraction = first + second, rest = second - (fraction - first) + third;
    float r = fraction * F32_PI_2_A;
    float r_low = f32_fma(fraction, F32_PI_2_A, -r);
    r_low = f32_fma(fraction, F32_PI_2_B, f32_fma(rest, F32_PI_2_A, r_low));
    struct f32_angle angle = {n, r, r_low};
    return angle;
}

SCALAR_FN struct f32_angle f32_angle_of(float a)
{
    struct f32_angle small = f32_small_angle(a), large = f32_large_angle(a);
    int is_large = a >= 0x1p+17f;
    struct f32_angle angle = {is_large ? large.quarter : small.quarter,
                              is_large ? large.high : small.high, is_large ? large.low : small.low};
    return angle;
}

SCALAR_FN float f32_sin_reduced(struct f32_angle x)
{
    float r2 = x.high * x.high;
    float p = f32_fma(r2, 0x1.7c2d52p-19f, -0x1.a05956p-13f);
    p = f32_fma(p, r2, 0x1.111174p-7f);
    p = f32_fma(p, r2, -0x1.555556p-3f);
    return x.high + f32_fma(x.high * r2, p, x.low);
}

/* The square's rounding would show near pi/4. */
SCALAR_FN float f32_cos_reduced(struct f32_angle x)
{
    float r2 = x.high * x.high, r2_low = f32_fma(x.high, x.high, -r2);
    float p = f32_fma(r2, 0x1.99e0ecp-16f, -0x1.6c0c1ap-10f);
    p = f32_fma(p, r2, 0x1.55554ap-5f);
    p = f32_fma(p, r2, -0.5f);
    return 1.0f + f32_fma(r2, p, f32_fma(r2_low, -0.5f, -x.high * x.low));
}

/* Of |x| as an angle, where it is a number. */
SCALAR_FN float f32_sin_of(struct f32_angle angle, float x)
{
    float y = angle.quarter & 1 ? f32_cos_reduced(angle) : f32_sin_reduced(angle);
    uint32_t sign = (angle.quarter & 2) << 30 ^ (f32_bits(x) & 0x80000000);
    return f32_of(f32_bits(y) ^ sign);
}

SCALAR_FN float f32_cos_of(struct f32_angle angle)
{
    float y = angle.quarter & 1 ? f32_sin_reduced(angle) : f32_cos_reduced(angle);
    uint32_t sign = ((angle.quarter + 1) & 2) << 30;
    return f32_of(f32_bits(y) ^ sign);
}

/* NaN of infinities and NaN. */
SCALAR_FN float f32_sin(float x)
{
    float y = f32_sin_of(f32_angle_of(f32_abs(x)), x);
    return f32_abs(x) < INFINITY ? y : NAN;
}

SCALAR_FN float f32_cos(float x)
{
    float y = f32_cos_of(f32_angle_of(f32_abs(x)));
    return f32_abs(x) < INFINITY ? y : NAN;
}

/*
 * In double, as a quotient of sine and cosine in float32 is up to 3 units off: six steps of
 * Lambert's continued fraction r / (1 - r^2 / (3 - r^2 / (5 - ...))), 2^-40 of the tangent.
 */
SCALAR_FN float f32_tan_of(struct f32_angle angle, float x)
{
    double r = (double)angle.high + (double)angle.low, z = r * r;
    double above = r * (135135 - z * (17325 - z * (378 - z)));
    double below = 135135 - z * (62370 - z * (3150 - z * 28));
    int odd = (angle.quarter & 1) != 0;
    float y = (float)((odd ? -below : above) / (odd ? above : below));
    uint32_t sign = f32_bits(x) & 0x80000000;
    return f32_of(f32_bits(y) ^ sign);
}

SCALAR_FN float f32_tan(float x)
{
    float y = f32_tan_of(f32_angle_of(f32_abs(x)), x);
    return f32_abs(x) < INFINITY ? y : NAN;
}

/* The bits of the largest number below 2^17. */
#define F32_TRIG_NEAR 0x47ffffff

/* The bits of f32_sin, f32_cos and f32_tan for |x| < 2^17. */
SCALAR_FN float f32_sin_near(float x)
{
    return f32_sin_of(f32_small_angle(f32_abs(x)), x);
}

SCALAR_FN float f32_cos_near(float x)
{
    return f32_cos_of(f32_small_angle(f32_abs(x)));
}

SCALAR_FN float f32_tan_near(float x)
{
    return f32_tan_of(f32_small_angle(f32_abs(x)), x);
}

#endif
