/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of DOUBLE. */
#define T double
#define T_DTYPE TSSA_DOUBLE
#define T_ROWS gemm_rows_f64
#define T_PANELS gemm_panels_f64
#include "kernels/cpu/lib/gemm_rows_loops.h"
