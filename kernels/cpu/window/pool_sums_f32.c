/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of windows of FLOAT. */
#include "ir/scalar/f32_wide.h"

#define T float
#define T_DTYPE TSSA_FLOAT
#define T_ABS fabsf
#define T_SQRT sqrtf
#define T_POW f32_pow
#define T_LOOPS pool_sum_loops_f32
#include "kernels/cpu/window/pool_sum_loops.h"
