/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of INT16. */
#define T int16_t
#define T_DTYPE TSSA_INT16
#define T_TABLE ew_loops_i16
#define T_IS_SIGNED
#define T_LOWEST INT16_MIN
#define T_HIGHEST INT16_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
