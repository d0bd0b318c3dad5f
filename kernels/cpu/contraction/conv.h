/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the convolutions share: operands checked against each other, and the reference computation.
 */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_H

#include "kernels/cpu/lib/window.h"

struct conv_attrs {
    struct window_attrs window;
    int64_t groups;
};

struct conv_job {
    struct window window;
    int64_t batch, groups, in_channels, out_channels; /* channels of all groups together */
    const struct tensor *x, *w, *bias;                /* bias may be NULL */
    /* Subtracted from x, and per output channel from w; NULL: nothing. */
    double x_zero;
    const double *w_zeros;
};

/* One row of sums of one output channel, of computed_in(x's type), to elements `out` of the
 * result's type. */
typedef void (*conv_finish)(const void *context, int64_t channel, const void *sums, int64_t count,
                            void *out);

tssa_status *conv_decode(const struct ir_op *op, struct conv_attrs *attrs);

/* Checks x, w and bias, which the caller has set, and resolves sizes. dims: of the result, of x's
 * rank. */
tssa_status *conv_resolve(const struct conv_attrs *attrs, struct conv_job *job, int64_t *dims);

/*
 * y[n][o][...] = finish(bias[o] + sum of (x - x_zero) * (w - w_zeros[o])). Sums are over input
 * channels, and of each over the kernel's positions in row-major order, of products, as of an axis
 * that is not the innermost one (ir/reduction.def); the bias comes last. DOUBLE and 8-bit integers,
 * for which that is exact, are computed in double, narrower floats in float32.
 */
tssa_status *conv_reference(struct kernel_args *args, const struct conv_job *job, struct tensor *y,
                            conv_finish finish, const void *context);

/* sums[i] += bias[channel], in the type FLOAT or DOUBLE. */
void conv_add_bias(const struct tensor *bias, int64_t channel, tssa_dtype dtype, void *sums,
                   int64_t count);

#endif
