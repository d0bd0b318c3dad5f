/* SPDX-License-Identifier: Apache-2.0 */
/* What the pooling operators with and without windows share. */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_H

#include "device/kernel.h"
#include "kernels/cpu/lib/reduce.h"

/* The attribute p of the Lp pools, which must be positive. */
tssa_status *pool_power(const struct ir_op *op, double *p);
/* |x| ^ p in place, and the p-th root of a sum of those. */
void pool_raise(double *x, int64_t n, double p);
double pool_root(double sum, double p);

/* out = a row of ir/reduction.def over all spatial axes of `in`. */
void pool_reduce(const struct kernel_args *args, enum reduction_row row, const struct tensor *in,
                 struct tensor *out);

#endif
