/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of UINT8. */
#define T uint8_t
#define T_DTYPE TSSA_UINT8
#define T_TABLE ew_loops_u8
#define T_IS_UNSIGNED
#define T_LOWEST 0
#define T_HIGHEST UINT8_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
