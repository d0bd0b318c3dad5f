/* SPDX-License-Identifier: Apache-2.0 */
/* The reference product of matrices of floats; see gemm_rows_loops.h. */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_ROWS_H
#define TSSA_KERNELS_CPU_LIB_GEMM_ROWS_H

#include "kernels/cpu/lib/gemm.h"

/* Rows [begin, end) of the result of `context`, a struct gemm. Each element is a sum of products,
 * rounded each, in the order of ir/reduction.def for an axis that is not the innermost one. */
void gemm_rows_f32(void *context, int64_t begin, int64_t end);
void gemm_rows_f64(void *context, int64_t begin, int64_t end);

#define GEMM_PANEL_BYTES 256 /* of a row of a panel */

/* A product of one row, of b as gemm_panels.h lays it out: from the first panel to the last, or
 * the other way. */
struct gemm_sweep {
    const struct gemm *gemm;
    const void *panels;
    bool backward;
};

/* Panels [begin, end) of `context`, a struct gemm_sweep; in the same order of sums. */
void gemm_panels_f32(void *context, int64_t begin, int64_t end);
void gemm_panels_f64(void *context, int64_t begin, int64_t end);

#endif
