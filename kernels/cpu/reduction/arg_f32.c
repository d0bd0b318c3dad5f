/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of FLOAT. */
#define T float
#define INDEX int32_t
#define T_TABLE arg_loops_f32
#define T_IS_FLOAT
#define T_IS_FLOAT32
#include "kernels/cpu/reduction/arg_loops.h"
