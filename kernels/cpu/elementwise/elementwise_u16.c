/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of UINT16. */
#define T uint16_t
#define T_DTYPE TSSA_UINT16
#define T_TABLE ew_loops_u16
#define T_IS_UNSIGNED
#define T_LOWEST 0
#define T_HIGHEST UINT16_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/elementwise/elementwise_loops.h"
