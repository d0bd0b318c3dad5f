/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of INT64. */
#define T int64_t
#define INDEX int64_t
#define T_TABLE arg_loops_i64
#define T_IS_SIGNED
#define T_LOWEST INT64_MIN
#define T_HIGHEST INT64_MAX
#define T_WIDE uint64_t
#include "kernels/cpu/reduction/arg_loops.h"
