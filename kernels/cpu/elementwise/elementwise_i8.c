/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of INT8. */
#define T int8_t
#define T_DTYPE TSSA_INT8
#define T_TABLE ew_loops_i8
#define T_IS_SIGNED
#define T_LOWEST INT8_MIN
#define T_HIGHEST INT8_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
