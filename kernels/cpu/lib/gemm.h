/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for MatMul, Gemm and whatever else is one. */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_H
#define TSSA_KERNELS_CPU_LIB_GEMM_H

#include "device/cpu/provider.h"
#include "device/device.h"

/*
 * Computes `gemm` on elements of `dtype`. Floats sum in double and round once (float32 through the
 * provider where there is one: then in float); integers wrap.
 */
tssa_status *gemm_compute(struct kernel_args *args, struct device_context *context,
                          tssa_dtype dtype, const struct gemm *gemm);

/* How many multiplications; INT64_MAX where they cannot be counted. */
int64_t gemm_work(const struct gemm *gemm);
/* The same as gemm_compute, for loops over many products, which are parallel themselves: of types that
 * gemm_has_loop, which need no memory. */
bool gemm_has_loop(tssa_dtype dtype);
void gemm_on_this_thread(struct device_context *context, tssa_dtype dtype, const struct gemm *gemm);

/* numpy's matmul, with broadcasting of the leading axes: the result's shape, and its elements. */
tssa_status *matmul_shape(const struct tensor *a, const struct tensor *b, int *rank, int64_t *dims);
tssa_status *matmul_compute(struct kernel_args *args, struct device_context *context,
                            const struct tensor *a, const struct tensor *b, void *out);

#endif
