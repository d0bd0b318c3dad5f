/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Powers of double: exp(y log|x|), the logarithm and the product in two parts.
 * Errors are in docs/numerics.md, and tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F64_POW_H
#define TSSA_IR_SCALAR_F64_POW_H

#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_log.h"

/* A number as the sum of two, of which the second is less than a unit of the first. */
struct f64_pair {
    double high, low;
};

/* |a| >= |b| */
SCALAR_FN struct f64_pair f64_pair_sum(double a, double b, double low)
{
    double high = a + b;
    struct f64_pair pair = {high, (b - (high - a)) + low};
    return pair;
}

SCALAR_FN struct f64_pair f64_pair_product(struct f64_pair a, struct f64_pair b)
{
    double high = a.high * b.high;
    double low = f64_fma(a.high, b.high, -high);
    struct f64_pair pair = {high, f64_fma(a.high, b.low, f64_fma(a.low, b.high, low))};
    return pair;
}

/* log(m) + e ln(2), sqrt(1/2) <= m < sqrt(2): 2 (s + s^3 / 3 + s^5 ...), s = (m - 1) / (m + 1), to
 * 2^-64 of it. */
SCALAR_FN struct f64_pair f64_log_pair(double m, double e)
{
    double f = m - 1.0, below = 2.0 + f, below_low = f - (below - 2.0);
    double quotient = f / below;
    struct f64_pair s = {quotient, (f64_fma(-quotient, below, f) - quotient * below_low) / below};
    struct f64_pair z = f64_pair_product(s, s);
    double p = f64_fma(0x1.eb1057199a607p-5, z.high, 0x1.de33887926471p-5);
    p = f64_fma(p, z.high, 0x1.1120b50eaf233p-4);
    p = f64_fma(p, z.high, 0x1.3b1362b9c787dp-4);
    p = f64_fma(p, z.high, 0x1.745d183244f61p-4);
    p = f64_fma(p, z.high, 0x1.c71c71c58084fp-4);
    p = f64_fma(p, z.high, 0x1.2492492493034p-3);
    p = f64_fma(p, z.high, 0x1.9999999999996p-3);
    struct f64_pair third = f64_pair_sum(0x1.5555555555555p-2, z.high * p, 0x1.5555555555555p-56);
    struct f64_pair cube = f64_pair_product(s, f64_pair_product(z, third));
    struct f64_pair halved = f64_pair_sum(s.high, cube.high, s.low + cube.low);
    double whole = e * 0x1.62e42fefa4000p-1, a = 2.0 * halved.high;
    double high = whole + a;
    double lost = f64_abs(whole) > f64_abs(a) ? a - (high - whole) : whole - (high - a);
    double low = lost + f64_fma(e, -0x1.8432a1b0e2634p-43, 2.0 * halved.low);
    return f64_pair_sum(high, low, 0.0);
}

/* Of numbers that are neither 0, nor infinite, nor NaN; x > 0. */
SCALAR_FN double f64_pow_finite(double x, double y)
{
    int tiny = x < 0x1p-1022;
    double e, m = f64_log_argument(tiny ? x * 0x1p+54 : x, &e);
    struct f64_pair log = f64_log_pair(m, e - (tiny ? 54.0 : 0.0));
    /* What is larger leads to 0, to 1 or to infinity all the same, without an infinite product. */
    double bounded = y > 0x1p+70 ? 0x1p+70 : y < -0x1p+70 ? -0x1p+70 : y;
    double high = bounded * log.high;
    double low = f64_fma(bounded, log.high, -high) + bounded * log.low;
    int moderate = f64_abs(high) < 800.0;
    return f64_exp_times(high, moderate ? low : 0.0, 0);
}

/* Is it an integer, and an odd one? From 2^53 on all are even. */
SCALAR_FN int f64_is_integer(double y)
{
    double a = f64_abs(y);
    return a >= 0x1p+52 || (a + 0x1p+52) - 0x1p+52 == a;
}

/*
 * As in IEEE 754: pow(x, 0) and pow(1, y) are 1 even of NaN; NaN where x is negative and y no
 * integer. Exponents 1, 2, 3, -1 and 1/2 are products, a quotient and a root: pow(x, 2) is x * x.
 */
SCALAR_FN double f64_pow(double x, double y)
{
    double a = f64_abs(x), inf = (double)INFINITY;
    int integer = f64_is_integer(y),
        odd = integer && f64_abs(y) < 0x1p+53 && !f64_is_integer(0.5 * y);
    double z = f64_pow_finite(a, y);
    double end = (a < 1.0) == (y < 0.0) ? inf : 0.0; /* of a = 0, a infinite, y infinite */
    z = a == 0.0 || a == inf || f64_abs(y) == inf ? end : z;
    z = a == 1.0 ? 1.0 : z;
    z = odd && f64_bits(x) >> 63 ? -z : z;
    z = x < 0.0 && a < inf && !integer ? (double)NAN : z;
    z = x != x || y != y ? (double)NAN : z;
    z = y == 0.0 || x == 1.0 ? 1.0 : z;
    z = y == 1.0 ? x : z;
    z = y == 2.0 ? x * x : z;
    z = y == 3.0 ? x * x * x : z;
    z = y == -1.0 ? 1.0 / x : z;
    double root = x == -inf ? inf : sqrt(x) + 0.0;
    return y == 0.5 ? root : z;
}

#endif
