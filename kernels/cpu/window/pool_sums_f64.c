/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of windows of DOUBLE. */
#include "ir/scalar/f64_pow.h"

#define T double
#define T_DTYPE TSSA_DOUBLE
#define T_ABS fabs
#define T_SQRT sqrt
#define T_POW f64_pow
#define T_LOOPS pool_sum_loops_f64
#include "kernels/cpu/window/pool_sum_loops.h"
