/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a matrix and a vector, where what each result sums lies side by side. */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_DOTS_H
#define TSSA_KERNELS_CPU_LIB_GEMM_DOTS_H

#include "kernels/cpu/lib/gemm.h"

/* Is it one of those, of one column, or of one row by a turned matrix, and short enough? */
bool gemm_dots_takes(const struct gemm *gemm);

/* Results [begin, end) of `context`, a struct gemm that is taken, of float32. Each is a sum of
 * products, rounded each, in the order of ir/reduction.def for the innermost axis. */
void gemm_dots_f32(void *context, int64_t begin, int64_t end);

#endif
