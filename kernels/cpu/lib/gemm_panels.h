/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of one row by a matrix that is a constant, as a recurrent loop has them. They take as
 * long as it takes to read the matrix: so it is copied once, to panels of columns, each k rows of
 * GEMM_PANEL_BYTES one behind the other, which are read from the first byte to the last, and by the
 * next product from the last panel to the first: of weights that just exceed a cache, it then has
 * the last ones. The order of sums is that of gemm_rows.h, and no library is asked.
 */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_PANELS_H
#define TSSA_KERNELS_CPU_LIB_GEMM_PANELS_H

#include "kernels/cpu/lib/gemm.h"

/*
 * Operand 1 of a MatMul or a Gemm where a copy of it, in an order in which it is read faster, may
 * be worth its memory: a constant matrix that nobody else reads, of float32, of up to 16 MiB of
 * two-byte floats, or of another type one that a cache holds. Else NULL.
 */
const struct tensor *gemm_weights(const struct ir_op *op);

/*
 * Copies gemm_weights of float32 or double where operand 0 is one row in every run. *panels is
 * given back with gemm_panels_drop; NULL: it is not worth it.
 */
tssa_status *gemm_panels_make(const struct kernel_setup *setup, const struct ir_op *op,
                              struct gemm_transposed transposed, struct gemm_panels **panels);
/* For as long as the step's cache, operand 1 is held (kernel.packs) unless there are panels, which
 * are read in its place. */
void gemm_panels_hold(struct library_cache *cache, const struct ir_op *op,
                      const struct gemm_panels *panels);
/* `panels` may be NULL. */
void gemm_panels_drop(struct device_context *context, struct gemm_panels *panels);

/* Of one row whose matrix is in panels; threads share these. */
void gemm_panels_run(const struct team *team, tssa_dtype dtype, const struct gemm *gemm);

#endif
