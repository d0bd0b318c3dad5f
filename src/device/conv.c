/* SPDX-License-Identifier: Apache-2.0 */
#include "device/conv.h"

#include <inttypes.h>
#include <string.h>

tssa_status *conv_decode(const struct ir_op *op, struct conv_attrs *attrs)
{
    attrs->groups = ir_attr_int(op, "group", 1);
    if (attrs->groups < 1)
        return ERROR(TSSA_MALFORMED, "group is %" PRId64, attrs->groups);
    return window_decode(op, &attrs->window);
}

tssa_status *conv_resolve(const struct conv_attrs *attrs, struct conv_job *job, int64_t *dims)
{
    const struct tensor *x = job->x, *w = job->w, *bias = job->bias;
    if (x->rank < 3 || w->rank != x->rank)
        return ERROR(TSSA_RUNTIME, "the input (rank %d) and the weights (rank %d) do not fit",
                     x->rank, w->rank);
    if (x->dims[1] % attrs->groups || w->dims[0] % attrs->groups ||
        w->dims[1] != x->dims[1] / attrs->groups)
        return ERROR(TSSA_RUNTIME,
                     "%" PRId64 " input channels in %" PRId64
                     " groups do not fit weights of %" PRId64 " times %" PRId64,
                     x->dims[1], attrs->groups, w->dims[0], w->dims[1]);
    if (bias && (bias->rank != 1 || bias->dims[0] != w->dims[0]))
        return ERROR(TSSA_RUNTIME, "the bias does not have %" PRId64 " elements", w->dims[0]);
    job->groups = attrs->groups;
    job->batch = dims[0] = x->dims[0];
    job->in_channels = x->dims[1];
    job->out_channels = dims[1] = w->dims[0];
    TRY(window_resolve(&attrs->window, x->rank - 2, x->dims + 2, w->dims + 2, &job->window));
    memcpy(dims + 2, job->window.out, (size_t)job->window.rank * sizeof *dims);
    return NULL;
}

static int64_t bits_of(float number)
{
    int32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

bool conv_problem(const struct conv_job *job, tssa_dtype dtype, struct library_problem *problem)
{
    const struct window *w = &job->window;
    struct conv_problem *conv = &problem->conv;
    if (w->rank > CONV_MAX_RANK)
        return false;
    problem->kind = LIBRARY_CONV;
    problem->dtype = dtype;
    problem->threads = 0;
    *conv = (struct conv_problem){.rank = w->rank,
                                  .batch = job->batch,
                                  .groups = job->groups,
                                  .in_channels = job->in_channels,
                                  .out_channels = job->out_channels,
                                  .biased = job->bias != NULL,
                                  .x_last = job->x_last,
                                  .y_last = job->y_last,
                                  .added = job->added != NULL,
                                  .after = job->after,
                                  .a = bits_of(job->a),
                                  .b = bits_of(job->b),
                                  .winograd = job->winograd};
    for (int i = 0; i < w->rank; i++) {
        conv->in[i] = w->in[i];
        conv->out[i] = w->out[i];
        conv->kernel[i] = w->kernel[i];
        conv->stride[i] = w->stride[i];
        conv->dilation[i] = w->dilation[i];
        conv->pad_begin[i] = w->pad_begin[i];
        conv->pad_end[i] = w->pad_end[i];
    }
    return true;
}
