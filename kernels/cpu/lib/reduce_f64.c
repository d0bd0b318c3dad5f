/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction loops of DOUBLE. */
#define T double
#define T_TABLE reduce_loops_f64
#define T_IS_FLOAT
#include "kernels/cpu/lib/reduce_loops.h"
