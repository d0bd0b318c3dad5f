/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization loops of DOUBLE. */
#define T double
#define T_DTYPE TSSA_DOUBLE
#define T_SQRT sqrt
#define T_LOOPS normalize_loops_f64
#include "kernels/cpu/normalization/normalize_loops.h"
