/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp, log and atan in double for functions of float32 that are made of several: some digits more
 * than float32 has, fewer than double has. Without fused operations.
 */
#ifndef TSSA_IR_SCALAR_WIDE_H
#define TSSA_IR_SCALAR_WIDE_H

#include "ir/scalar/exact.h"

/*
 * Within 2^-50 of exp(x), relatively, for -170 <= x <= 200; infinity above, and 0 below -174, as in
 * float32. NaN for NaN. Rounded to float32, the error is below 0.5 ulp + 2^-26 ulp.
 *
 * exp(x) = 2^k exp(r), |r| <= ln(2) / 2. k is rounded by adding 1.5 * 2^52, whose lowest bits it
 * becomes; ln(2) has two parts, of which the first has trailing zeros, so that k * LN2_HIGH is
 * exact. The polynomial is Taylor's of degree 12: its remainder is below 2^-52.
 */
SCALAR_FN double wide_exp(double x)
{
    const double LOG2_E = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42fefap-1,
                 LN2_LOW = 0x1.cf79abc9e3b3ap-40, ROUNDER = 0x1.8p+52;
    double shifted = x * LOG2_E + ROUNDER, k = shifted - ROUNDER;
    double r = (x - k * LN2_HIGH) - k * LN2_LOW, r2 = r * r, r4 = r2 * r2;
    double low = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    double middle = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    double high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    double sum = low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600)));
    double y = sum * f64_of((f64_bits(shifted) + 1023) << 52);
    y = x > 200 ? (double)INFINITY : y;
    return k < -250 ? 0 : y;
}

/*
 * Within 2^-49 of log(x), relatively, for x > 0 that are no denormals of double; -infinity of 0,
 * NaN of numbers below.
 *
 * log(2^e m) = e ln(2) + 2 atanh(f), f = (m - 1) / (m + 1), sqrt(1/2) <= m < sqrt(2).
 */
SCALAR_FN double wide_log(double x)
{
    const uint64_t SQRT_HALF = 0x3fe6a09e667f3bcd, ONE = 0x3ff0000000000000;
    uint64_t above = f64_bits(x) + (ONE - SQRT_HALF);
    /* 2^52 + the biased exponent, as a double. */
    double e = f64_of((above >> 52) | 0x4330000000000000) - (0x1p+52 + 1023);
    double m = f64_of((above & 0x000fffffffffffff) + SQRT_HALF);
    double f = (m - 1) / (m + 1), z = f * f, z2 = z * z;
    double p = (0x1.5555555553926p-1 + z * 0x1.999999a2a63c6p-2) +
               z2 * ((0x1.2492416a45426p-2 + z * 0x1.c72280298930fp-3) +
                     z2 * (0x1.732b1179cd09ep-3 + z * 0x1.5885062da9401p-3));
    double y = e * 0x1.62e42fefa39efp-1 + (2 * f + f * z * p);
    y = x < (double)INFINITY ? y : x;
    y = x < 0 ? (double)NAN : y;
    return x == 0 ? -(double)INFINITY : y;
}

/*
 * Within 2^-39 of atan(y / x), relatively, for x, y >= 0 that are not both 0.
 *
 * From atan(t) = pi/4 + atan((t - 1) / (t + 1)) and atan(t) = pi/2 - atan(1 / t), arguments of the
 * polynomial are at most tan(pi/8).
 */
SCALAR_FN double wide_atan2(double y, double x)
{
    const double TAN_PI_8 = 0.41421356237309503;
    int large = y * TAN_PI_8 > x, small = y <= x * TAN_PI_8;
    double above = small ? y : large ? -x : y - x, below = small ? x : large ? y : y + x;
    double base = small ? 0 : large ? 0x1.921fb54442d18p+0 : 0x1.921fb54442d18p-1;
    double t = above / below, z = t * t, z2 = z * z;
    double p = (-0x1.5555554efd81ap-2 + z * 0x1.99999216a1bb3p-3) +
               z2 * ((-0x1.2490c6e52f806p-3 + z * 0x1.c6d270dc3505ap-4) +
                     z2 * ((-0x1.70873e4b8b041p-4 + z * 0x1.1e6fa6eb1bd2dp-4) +
                           z2 * -0x1.36ee12fbf573ap-5));
    return base + (t + t * z * p);
}

#endif
