/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of DOUBLE that generated kernels call. */
#define T double
#define T_IS_FLOAT
#define T_LANES 16
#define T_BASE cpu_functions_f64_base
#define T_V3 cpu_functions_f64_v3
#define T_V4 cpu_functions_f64_v4
#include "device/cpu/functions_loops.h"
