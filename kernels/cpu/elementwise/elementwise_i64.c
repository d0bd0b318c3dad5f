/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of INT64. */
#define T int64_t
#define T_DTYPE TSSA_INT64
#define T_TABLE ew_loops_i64
#define T_IS_SIGNED
#define T_BY_LEVEL
#define T_LOWEST INT64_MIN
#define T_HIGHEST INT64_MAX
#define T_WIDE uint64_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
