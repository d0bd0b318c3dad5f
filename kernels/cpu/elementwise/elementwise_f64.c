/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of DOUBLE. */
#define T double
#define T_DTYPE TSSA_DOUBLE
#define T_TABLE ew_loops_f64
#define T_IS_FLOAT
#include "kernels/cpu/elementwise/elementwise_loops.h"
