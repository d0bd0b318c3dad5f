/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices whose terms are added by fused multiply-adds: in half the time of those of
 * gemm_rows.h, which round products, where the machine has the instruction, and in a hundred times
 * that where it has not. Otherwise the order is theirs: that of ir/reduction.def for an axis that
 * is not the innermost one, whatever the tiles and the machine's vectors.
 */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_FUSED_H
#define TSSA_KERNELS_CPU_LIB_GEMM_FUSED_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of b that lie in a panel, and to a multiple of how many of them all can be read. */
#define GEMM_FUSED_PANEL 32
#define GEMM_FUSED_ALIGNED 16

/*
 * c[m][n] = factor * (a[m][k] * b[k][n]), of FLOAT or DOUBLE. Elements of a row lie side by side,
 * and rows as many elements apart as it says; of b so do those of a panel, and the next panel
 * begins `b_panel` elements behind it. Behind the last column of b there are others, of any value,
 * until there are a multiple of GEMM_FUSED_ALIGNED; so there are of c, which are written, if
 * `c_is_whole`: else rows that do not fill vectors take longer.
 */
struct gemm_fused {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row, b_row, b_panel, c_row;
    double factor;
    bool c_is_whole;
};

void gemm_fused_f32(const struct gemm_fused *gemm);
void gemm_fused_f64(const struct gemm_fused *gemm);

#endif
