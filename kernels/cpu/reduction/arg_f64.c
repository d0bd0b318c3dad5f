/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of DOUBLE. */
#define T double
#define INDEX int64_t
#define T_TABLE arg_loops_f64
#define T_IS_FLOAT
#include "kernels/cpu/reduction/arg_loops.h"
