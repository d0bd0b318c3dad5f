/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact sums of products of bytes by the CPU's library. Left operands and images are INT8 or UINT8;
 * weights and right operands INT8, or UINT8 which become INT8 by what both they and their zero
 * point lose, 128.
 */
#ifndef TSSA_KERNELS_CPU_QUANTIZATION_BYTE_SUMS_H
#define TSSA_KERNELS_CPU_QUANTIZATION_BYTE_SUMS_H

#include "device/library_cache.h"
#include "kernels/cpu/contraction/conv.h"

/* An error where it is of another type. */
tssa_status *byte_sums_check(const struct tensor *tensor, const char *what);
/* Is the op's operand a constant, as weights that are kept for all runs are? */
bool byte_sums_constant(const struct ir_op *op, uint32_t operand);

/* Bytes [rows][columns] to [columns][rows]. */
void byte_sums_turn(int64_t rows, int64_t columns, const uint8_t *from, uint8_t *to);

/*
 * Of the convolutions below: where `turned`, the bytes of w lie as [in][out], and it is of one
 * element for each channel of either.
 *
 * sums[n][o][...], INT32, of a job without its bias. *done stays false where there is no library,
 * it declines, the weights' zero points are not one number, a sum might leave
 * INT32, or it is not worth it.
 */
tssa_status *byte_sums_conv(struct kernel_args *args, struct library_cache *cache,
                            const struct conv_job *job, bool turned, const struct conv_zeros *zeros,
                            int32_t *sums, bool *done);

/* The same, with its bias, and quantized (device/library.h): bytes, in y. */
tssa_status *byte_sums_quantized(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_job *job, bool turned,
                                 const struct conv_zeros *zeros,
                                 const struct library_quantizer *quantizer, void *y, bool *done);

/* For kernel.get_ready: what either would first make of a job without elements, the second one
 * where there is a quantizer; *made: it was not declined. */
tssa_status *byte_sums_get_ready(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_job *job, bool turned,
                                 const struct conv_zeros *zeros,
                                 const struct library_quantizer *quantizer, bool *made);

/*
 * The same of numpy's matmul, without more. Zero points are NULL (none), or one per row of a, and
 * per column of b, of each of its matrices.
 */
tssa_status *byte_sums_matmul(struct kernel_args *args, struct library_cache *cache,
                              const struct tensor *a, const struct tensor *b, const double *a_zeros,
                              const double *b_zeros, int32_t *sums, bool *done);

#endif
