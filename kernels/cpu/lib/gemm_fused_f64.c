/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of DOUBLE by fused multiply-adds. */
#define T double
#define T_BYTES 8
#define T_DTYPE TSSA_DOUBLE
#define T_FMA f64_fma
#define T_MULTIPLY gemm_fused_f64
#include "kernels/cpu/lib/gemm_fused_loops.h"
