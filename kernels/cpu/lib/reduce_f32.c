/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction loops of FLOAT. */
#define T float
#define T_TABLE reduce_loops_f32
#define T_IS_FLOAT
#define T_IS_FLOAT32
#include "kernels/cpu/lib/reduce_loops.h"
