/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of FLOAT that generated kernels call. */
#define T float
#define T_IS_FLOAT
#define T_IS_FLOAT32
#define T_LANES 32
#define T_BASE cpu_functions_f32_base
#define T_V3 cpu_functions_f32_v3
#define T_V4 cpu_functions_f32_v4
#include "device/cpu/functions_loops.h"
