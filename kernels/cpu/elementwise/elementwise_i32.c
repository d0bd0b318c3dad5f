/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of INT32. */
#define T int32_t
#define T_DTYPE TSSA_INT32
#define T_TABLE ew_loops_i32
#define T_IS_SIGNED
#define T_BY_LEVEL
#define T_LOWEST INT32_MIN
#define T_HIGHEST INT32_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
