/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp() for results that are rounded to float32 or less: the same arithmetic in every kernel, without
 * calls and branches, so that compilers make vectors of it.
 */
#ifndef TSSA_KERNELS_CPU_EXP_H
#define TSSA_KERNELS_CPU_EXP_H

#include <stdint.h>
#include <string.h>

/*
 * Within 2^-50 of exp(x), relatively, for |x| <= 200; beyond, exp(200) or exp(-200), which are infinity
 * and 0 in float32. NaN for NaN. Rounded to float32, the error is below 0.5 ulp + 2^-26 ulp.
 *
 * exp(x) = 2^k exp(r), |r| <= ln(2) / 2. k is rounded by adding 1.5 * 2^52, whose lowest bits it
 * becomes; ln(2) has two parts, of which the first has trailing zeros, so that k * LN2_HIGH is exact.
 * The polynomial is Taylor's of degree 12: its remainder is below 2^-52.
 */
static inline double exp_for_float(double x)
{
    const double LOG2_E = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42fefap-1,
                 LN2_LOW = 0x1.cf79abc9e3b3ap-40, ROUNDER = 0x1.8p+52;
    x = x > 200 ? 200 : x;
    x = x < -200 ? -200 : x;
    double shifted = x * LOG2_E + ROUNDER, k = shifted - ROUNDER;
    double r = (x - k * LN2_HIGH) - k * LN2_LOW, r2 = r * r, r4 = r2 * r2;
    double low = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    double middle = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    double high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    double sum = low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600)));
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

#endif
