/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of FLOAT. */
#define T float
#define T_DTYPE TSSA_FLOAT
#define T_TABLE ew_loops_f32
#define T_IS_FLOAT
#define T_IS_FLOAT32
#include "kernels/cpu/elementwise/elementwise_loops.h"
