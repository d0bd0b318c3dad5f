/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of INT32. */
#define T int32_t
#define INDEX int32_t
#define T_TABLE arg_loops_i32
#define T_IS_SIGNED
#define T_LOWEST INT32_MIN
#define T_HIGHEST INT32_MAX
#define T_WIDE uint32_t
#include "kernels/cpu/reduction/arg_loops.h"
