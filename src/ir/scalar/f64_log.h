/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of double around log(): log, log1p, asinh, acosh, atanh, by log(2^e (1 + f)) = e ln(2)
 * + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2), and log(1 + f) = 2 atanh(f / (2 + f)). Polynomials
 * are minimax; errors are in docs/numerics.md, and tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F64_LOG_H
#define TSSA_IR_SCALAR_F64_LOG_H

#include "ir/scalar/exact.h"

#define F64_SQRT_HALF 0x3fe6a09e667f3bcd /* its bits */

/*
 * e ln(2) + log(1 + f + low), low tiny. The products of e with the first part of ln(2) are exact.
 */
SCALAR_FN double f64_log_reduced(double e, double f, double low)
{
    double s = f / (2.0 + f), z = s * s, square = 0.5 * f * f;
    double p = f64_fma(0x1.2f0567f79854ap-3, z, 0x1.39a1ba732d990p-3);
    p = f64_fma(p, z, 0x1.74663ee92b594p-3);
    p = f64_fma(p, z, 0x1.c71c5209639dep-3);
    p = f64_fma(p, z, 0x1.24924941f10edp-2);
    p = f64_fma(p, z, 0x1.999999997fdbap-2);
    p = f64_fma(p, z, 0x1.5555555555592p-1);
    double tail = f64_fma(s, f64_fma(z, p, square), f64_fma(e, -0x1.8432a1b0e2634p-43, low));
    return f64_fma(e, 0x1.62e42fefa4000p-1, f - (square - tail));
}

/* Of a normal number x > 0 = 2^e m, sqrt(1/2) <= m < sqrt(2): m, and e as a double. */
SCALAR_FN double f64_log_argument(double x, double *e)
{
    uint64_t above = f64_bits(x) + (0x3ff0000000000000 - F64_SQRT_HALF);
    *e = f64_of(above >> 52 | 0x4330000000000000) - (0x1p+52 + 1023);
    return f64_of((above & 0x000fffffffffffff) + F64_SQRT_HALF);
}

SCALAR_FN double f64_log(double x)
{
    int tiny = x < 0x1p-1022;
    double e, m = f64_log_argument(tiny ? x * 0x1p+54 : x, &e);
    double y = f64_log_reduced(e - (tiny ? 54.0 : 0.0), m - 1.0, 0.0);
    y = x < (double)INFINITY ? y : x;
    y = x < 0.0 ? (double)NAN : y;
    return x == 0.0 ? -(double)INFINITY : y;
}

/*
 * log(1 + x + low). f = (1 + x) 2^-e - 1 = x 2^-e + (2^-e - 1): rounded once, however small x is.
 */
SCALAR_FN double f64_log1p_sum(double x, double low)
{
    uint64_t above = f64_bits(1.0 + x) + (0x3ff0000000000000 - F64_SQRT_HALF);
    uint64_t biased = above >> 52;
    double e = f64_of(biased | 0x4330000000000000) - (0x1p+52 + 1023);
    /* 2^-e is a normal number but for e = 1023 and 1024. */
    double quarter = f64_of((2046 + 2 - biased) << 52); /* 2^(2-e) */
    double f = f64_fma(0.25 * quarter, x, f64_fma(0.25, quarter, -1.0));
    double y = f64_log_reduced(e, f, 0.25 * quarter * low);
    y = f64_abs(x) < 0x1p-54 ? x : y;
    y = x < (double)INFINITY ? y : x;
    y = x < -1.0 ? (double)NAN : y;
    return x == -1.0 ? -(double)INFINITY : y;
}

SCALAR_FN double f64_log1p(double x)
{
    return f64_log1p_sum(x, 0.0);
}

/* log(a + sqrt(a^2 + 1)), as log1p of the rest; log(2a) where the square could be infinite. */
SCALAR_FN double f64_asinh(double x)
{
    double a = f64_abs(x), z = a * a;
    double rest = z / (1.0 + sqrt(z + 1.0)), sum = a + rest;
    double usual = f64_log1p_sum(sum, rest - (sum - a));
    double large = f64_log(a) + 0x1.62e42fefa39efp-1;
    return f64_with_sign(a < 0x1p+28 ? usual : large, x);
}

/* NaN below 1. */
SCALAR_FN double f64_acosh(double x)
{
    double t = x - 1.0, root = sqrt(f64_fma(t, t, 2.0 * t)), sum = root + t;
    double usual = f64_log1p_sum(sum, t - (sum - root));
    double y = x < 0x1p+28 ? usual : f64_log(x) + 0x1.62e42fefa39efp-1;
    return x < 1.0 ? (double)NAN : y;
}

/* log((1 + a) / (1 - a)) / 2; NaN beyond 1. */
SCALAR_FN double f64_atanh(double x)
{
    double a = f64_abs(x), twice = 2.0 * a;
    double y = 0.5 * f64_log1p(f64_fma(twice, a / (1.0 - a), twice));
    y = a == 1.0 ? (double)INFINITY : y;
    return a > 1.0 ? (double)NAN : f64_with_sign(y, x);
}

#endif
