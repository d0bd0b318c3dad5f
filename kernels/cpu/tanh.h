/* SPDX-License-Identifier: Apache-2.0 */
/* tanh() for results that are rounded to float32 or less, of which compilers make vectors; as exp.h. */
#ifndef TSSA_KERNELS_CPU_TANH_H
#define TSSA_KERNELS_CPU_TANH_H

#include <math.h>

#include "kernels/cpu/exp.h"

/*
 * Within 2^-43 of tanh(x), relatively; 1 or -1 for infinities, -0 for -0, NaN for NaN. Rounded to float32,
 * the error is below 0.5 ulp + 2^-19 ulp.
 *
 * Large arguments: (exp(2x) - 1) / (exp(2x) + 1). Small ones, where the difference would cancel: six steps of
 * Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))), whose relative error is about
 * x^14 / (3 * 5 * 7 * 9 * 11 * 13)^2 / 15, that is 2^-43.8 for x = 0.75.
 */
static inline double tanh_for_float(double x)
{
    double magnitude = fabs(x), x2 = x * x, e = exp_for_float(2 * magnitude);
    double small_above = magnitude * (135135 + x2 * (17325 + x2 * (378 + x2)));
    double small_below = 135135 + x2 * (62370 + x2 * (3150 + x2 * 28));
    int is_small = magnitude < 0.75;
    double above = is_small ? small_above : e - 1, below = is_small ? small_below : e + 1;
    return copysign(above / below, x);
}

#endif
