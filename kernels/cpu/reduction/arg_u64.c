/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of UINT64. */
#define T uint64_t
#define INDEX int64_t
#define T_TABLE arg_loops_u64
#define T_IS_UNSIGNED
#define T_LOWEST 0
#define T_HIGHEST UINT64_MAX
#define T_WIDE uint64_t
#include "kernels/cpu/reduction/arg_loops.h"
