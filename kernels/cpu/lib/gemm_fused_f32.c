/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of FLOAT by fused multiply-adds. */
#define T float
#define T_BYTES 4
#define T_DTYPE TSSA_FLOAT
#define T_FMA f32_fma
#define T_MULTIPLY gemm_fused_f32
#include "kernels/cpu/lib/gemm_fused_loops.h"
