/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions as any device computes them: attributes decoded once, operands checked against each
 * other, sizes resolved in a run.
 */
#ifndef TSSA_DEVICE_CONV_H
#define TSSA_DEVICE_CONV_H

#include "device/library.h"
#include "device/window.h"
#include "ir/convolve.h"

struct conv_attrs {
    struct window_attrs window;
    int64_t groups;
};

struct conv_job {
    struct window window;
    int64_t batch, groups, in_channels, out_channels; /* channels of all groups together */
    const struct tensor *x, *w, *bias;                /* bias may be NULL */
    /* Channels are the last axis of x, of y, whose dims here are channels first all the same. */
    bool x_last, y_last;
    const struct tensor *added; /* to the sums; NULL: nothing */
    enum convolve_after after;  /* what is done to them then, with the numbers */
    float a, b;
    bool winograd; /* as convolve allows it */
};

tssa_status *conv_decode(const struct ir_op *op, struct conv_attrs *attrs);

/* Checks x, w and bias, which the caller has set, and resolves sizes. dims: of the result, of x's
 * rank. */
tssa_status *conv_resolve(const struct conv_attrs *attrs, struct conv_job *job, int64_t *dims);

/* A resolved job of this type, for no host's threads; false: it has too many axes. */
bool conv_problem(const struct conv_job *job, tssa_dtype dtype, struct library_problem *problem);

#endif
