/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inverse circular functions of double. Polynomials are minimax; errors are in docs/numerics.md,
 * and tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F64_INVERSE_H
#define TSSA_IR_SCALAR_F64_INVERSE_H

#include "ir/scalar/exact.h"

/*
 * From atan(t) = pi/4 + atan((t - 1) / (t + 1)) and atan(t) = pi/2 - atan(1 / t), arguments of the
 * polynomial are at most tan(pi/8).
 */
SCALAR_FN double f64_atan(double x)
{
    const double TAN_PI_8 = 0x1.a827999fcef32p-2;
    double a = f64_abs(x) > 0x1p+64 ? 0x1p+64 : f64_abs(x);
    int small = a <= TAN_PI_8, large = a * TAN_PI_8 > 1.0;
    double above = small ? a : large ? -1.0 : a - 1.0, below = small ? 1.0 : large ? a : a + 1.0;
    double base = small ? 0.0 : large ? 0x1.921fb54442d18p+0 : 0x1.921fb54442d18p-1;
    double base_low = small ? 0.0 : large ? 0x1.1a62633145c07p-54 : 0x1.1a62633145c07p-55;
    double t = above / below, z = t * t;
    /* What t was rounded by, its operands included. */
    double above_low = small || large ? 0.0 : a - (above + 1.0);
    double below_low = small || large ? 0.0 : a - (below - 1.0);
    double t_low = (f64_fma(-t, below, above) + f64_fma(-t, below_low, above_low)) / below;
    double p = f64_fma(-0x1.25a364585addep-6, z, 0x1.37effc2e3bc05p-5);
    p = f64_fma(p, z, -0x1.9cdd3480ca409p-5);
    p = f64_fma(p, z, 0x1.df11a1ec9f2f6p-5);
    p = f64_fma(p, z, -0x1.10ebe1868a94ap-4);
    p = f64_fma(p, z, 0x1.3b111cb9c5febp-4);
    p = f64_fma(p, z, -0x1.745cf90fb7471p-4);
    p = f64_fma(p, z, 0x1.c71c70e7c96d8p-4);
    p = f64_fma(p, z, -0x1.24924922b17ebp-3);
    p = f64_fma(p, z, 0x1.99999999958f9p-3);
    p = f64_fma(p, z, -0x1.555555555553dp-2);
    double y = base + (t + (f64_fma(t * z, p, base_low) + t_low));
    return f64_with_sign(y, x);
}

/* (asin(s) - s) / s, where z = s^2 <= 1/4. */
SCALAR_FN double f64_asin_rest(double z)
{
    double p = f64_fma(0x1.0be59e920dd48p-5, z, -0x1.59fabbdb69e80p-6);
    p = f64_fma(p, z, 0x1.65053d9a4e68ap-6);
    p = f64_fma(p, z, 0x1.e14faeb7a25abp-9);
    p = f64_fma(p, z, 0x1.618b90cde55e4p-7);
    p = f64_fma(p, z, 0x1.757763344b6aap-7);
    p = f64_fma(p, z, 0x1.ca2149f35b525p-7);
    p = f64_fma(p, z, 0x1.1c49ddbe4ba2dp-6);
    p = f64_fma(p, z, 0x1.6e8bdfead18bdp-6);
    p = f64_fma(p, z, 0x1.f1c71a8b7064cp-6);
    p = f64_fma(p, z, 0x1.6db6db722bf21p-5);
    p = f64_fma(p, z, 0x1.333333332df07p-4);
    p = f64_fma(p, z, 0x1.5555555555578p-3);
    return z * p;
}

/* Beyond 1/2: pi/2 - 2 asin(sqrt((1 - x) / 2)). NaN beyond 1. */
SCALAR_FN double f64_asin(double x)
{
    double a = f64_abs(x), far = 0.5 * (1.0 - a);
    int near = a <= 0.5;
    double z = near ? a * a : far, s = near ? a : sqrt(far);
    double rest = s * f64_asin_rest(z);
    double s_low = s > 0.0 ? f64_fma(-s, s, z) / (2.0 * s) : 0.0; /* of the root */
    double first = 0x1.921fb54442d18p+0 - 2.0 * s,
           first_low = (0x1.921fb54442d18p+0 - first) - 2.0 * s;
    double twice = first + (first_low - (2.0 * (rest + s_low) - 0x1.1a62633145c07p-54));
    return f64_with_sign(near ? s + rest : twice, x);
}

SCALAR_FN double f64_acos(double x)
{
    double a = f64_abs(x), far = 0.5 * (1.0 - a);
    int near = a <= 0.5;
    double z = near ? a * a : far, s = near ? x : sqrt(far);
    double rest = s * f64_asin_rest(z);
    double middle = 0x1.921fb54442d18p+0 - (s - (0x1.1a62633145c07p-54 - rest));
    double twice = 2.0 * (s + rest);
    double end = x < 0.0 ? 0x1.921fb54442d18p+1 - (twice - 0x1.1a62633145c07p-53) : twice;
    return near ? middle : end;
}

#endif
