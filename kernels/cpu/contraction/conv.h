/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU's convolutions share: the reference computation. */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_H

#include "device/conv.h"

/* Of 8-bit integers; what is subtracted from x, and per output channel from w. */
struct conv_zeros {
    double x;
    const double *w;
};

/* One row of sums of one output channel, of computed_in(x's type), to elements `out` of the
 * result's type. */
typedef void (*conv_finish)(const void *context, int64_t channel, const void *sums, int64_t count,
                            void *out);

/*
 * y[n][o][...] = finish(bias[o] + sum of (x - zeros.x) * (w - zeros.w[o])). Sums are over input
 * channels, and of each over the kernel's positions in row-major order, of products, as of an axis
 * that is not the innermost one (ir/reduction.def); the bias comes last. DOUBLE and 8-bit integers,
 * for which that is exact, are computed in double, narrower floats in float32. `zeros` NULL: there
 * are none.
 */
tssa_status *conv_reference(struct kernel_args *args, const struct conv_job *job,
                            const struct conv_zeros *zeros, struct tensor *y, conv_finish finish,
                            const void *context);

/* sums[i] += bias[channel], in the type FLOAT or DOUBLE. */
void conv_add_bias(const struct tensor *bias, int64_t channel, tssa_dtype dtype, void *sums,
                   int64_t count);

#endif
