/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a few rows by a matrix that no near cache holds, as decoders of text have them: one
 * row for each sequence, and all the weights of the network. They take as long as it takes to read
 * the matrix. So it is read once, from where it lies, some of its rows at a time, each along a
 * stretch of columns; the sums of these columns stay in a near cache meanwhile. (Tiles
 * whose sums are registers read a few neighbours of every row of the matrix, each of which lies in
 * another page: at half the speed. A copy in panels would be read as fast, but lies in memory
 * beside the weights and takes longer to make than many runs.)
 *
 * The order of sums is that of gemm_rows.h, but terms are added by fused multiply-adds, which takes
 * half the time from four rows on; and no library is asked.
 */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_STREAMS_H
#define TSSA_KERNELS_CPU_LIB_GEMM_STREAMS_H

#include "kernels/cpu/lib/gemm.h"

/* By its sizes, and by the machine, which has up to 8 rows or 16, or none without the instruction
 * for fused multiply-adds. */
bool gemm_streams_takes(tssa_dtype dtype, const struct gemm *gemm);
/* What it takes; threads share the columns. */
void gemm_streams_run(const struct team *team, const struct gemm *gemm);

#endif
