/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of BOOL. */
#define T uint8_t
#define T_DTYPE TSSA_BOOL
#define T_TABLE ew_loops_bool
#define T_IS_UNSIGNED
#define T_IS_BOOL
#define T_LOWEST 0
#define T_HIGHEST 1
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
