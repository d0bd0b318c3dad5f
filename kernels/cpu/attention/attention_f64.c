/* SPDX-License-Identifier: Apache-2.0 */
/* Attention loops of DOUBLE. */
#include "ir/scalar/f64_exp.h"

#define T double
#define T_DTYPE TSSA_DOUBLE
#define T_TANH f64_tanh
#define T_FMA f64_fma
#define T_MULTIPLY gemm_fused_f64
#define T_LOOPS attention_loops_f64
#include "kernels/cpu/attention/attention_loops.h"
