/* SPDX-License-Identifier: Apache-2.0 */
/* Attention loops of FLOAT. */
#include "ir/scalar/f32_exp.h"

#define T float
#define T_DTYPE TSSA_FLOAT
#define T_TANH f32_tanh
#define T_FMA f32_fma
#define T_MULTIPLY gemm_fused_f32
#define T_LOOPS attention_loops_f32
#include "kernels/cpu/attention/attention_loops.h"
