/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction loops of UINT64. */
#define T uint64_t
#define T_TABLE reduce_loops_u64
#define T_IS_UNSIGNED
#define T_LOWEST 0
#define T_HIGHEST UINT64_MAX
#define T_WIDE uint64_t
#include "kernels/cpu/lib/reduce_loops.h"
