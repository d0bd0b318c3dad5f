/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization loops of FLOAT. */
#define T float
#define T_DTYPE TSSA_FLOAT
#define T_SQRT sqrtf
#define T_LOOPS normalize_loops_f32
#include "kernels/cpu/normalization/normalize_loops.h"
