/* SPDX-License-Identifier: Apache-2.0 */
/* What the pooling operators share: attributes, windows, and a walk over these. */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_H

#include "device/window.h"
#include "kernels/cpu/lib/reduce.h"

struct pool_state {
    struct window_attrs attrs;
    double p; /* of LpPool */
    bool include_pad, column_major;
    bool channels_last; /* IR_CHANNELS_LAST, of MaxPool and AveragePool */
};

/* Of MaxPool, AveragePool and LpPool. */
tssa_status *pool_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                          const void **result);
/* The attribute p of the Lp pools, which must be positive. */
tssa_status *pool_power(const struct ir_op *op, double *p);

/* One call of an operator with windows. */
struct pool_job {
    const struct pool_state *state;
    struct window window;
    const struct tensor *in;
    struct tensor *out;          /* NULL: not wanted */
    int64_t dims[TSSA_MAX_RANK]; /* of the result */
    int64_t planes, cost;        /* cost: scalar steps of a plane */
};

/* Resolves the windows and makes the first result. */
tssa_status *pool_begin(struct kernel_args *args, struct pool_job *job);

/* One tap of n neighbouring windows: elements in, in + step, ... of a plane belong to results out,
 * out + 1, ... */
typedef void (*pool_tap)(const void *context, int64_t in, int64_t step, int64_t out, int64_t n);
/* All taps of a row of the kernel have been applied. */
typedef void (*pool_row_end)(const void *context);

/*
 * All taps of all windows of a plane, in the kernel's row-major order, without those in the
 * padding. `row_end` (may be NULL) is not called of rows that lie in the padding for all windows.
 */
void pool_apply_taps(const struct window *window, pool_tap fn, pool_row_end row_end,
                     const void *context);

/* out = a row of ir/reduction.def over all spatial axes of `in`. */
void pool_reduce(const struct kernel_args *args, enum reduction_row row, const struct tensor *in,
                 struct tensor *out);

#endif
