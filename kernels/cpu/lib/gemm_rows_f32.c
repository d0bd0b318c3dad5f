/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of FLOAT. */
#define T float
#define T_DTYPE TSSA_FLOAT
#define T_ROWS gemm_rows_f32
#define T_PANELS gemm_panels_f32
#include "kernels/cpu/lib/gemm_rows_loops.h"
