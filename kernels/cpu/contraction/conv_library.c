/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/contraction/conv_library.h"

#include <string.h>

#include "device/cpu/provider.h"
#include "kernels/cpu/lib/convert.h"

/*
 * Below so many multiplications compiling code for them costs more than many runs of the reference.
 */
#define MIN_WORK 8192

static int64_t work_of(const struct conv_job *job)
{
    const struct window *w = &job->window;
    int64_t work = job->batch;
    bool counted = i64_mul(work, job->out_channels, &work) && i64_mul(work, w->out_count, &work) &&
                   i64_mul(work, job->in_channels / job->groups, &work) &&
                   i64_mul(work, w->kernel_count, &work);
    return counted ? work : INT64_MAX;
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
                                  .biased = job->bias != NULL};
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

static void widen(const struct tensor *from, void *to)
{
    convert_elements((int64_t)tensor_count(from), from->dtype, from->data, 1, TSSA_FLOAT, to, 1,
                     &convert_default);
}

tssa_status *conv_library(struct kernel_args *args, struct library_cache *cache,
                          const struct conv_job *job, float *y, bool *done)
{
    const struct tensor *w = job->w;
    struct library_problem problem;
    *done = false;
    if (work_of(job) < MIN_WORK || !conv_problem(job, TSSA_FLOAT, &problem))
        return NULL;
    problem.threads =
        cpu_library_threads(cache->context, args->env->team ? args->env->team->threads : 1);
    if (!problem.threads)
        return NULL;
    const struct library_weights weights = {
        .tensor = w,
        .widened_bytes = w->dtype == TSSA_FLOAT ? 0 : tensor_count(w) * sizeof(float),
        .widen = widen};
    struct library_call call = {
        .operands = {{job->x->data, 0}, {w->data, 0}, {job->bias ? job->bias->data : NULL, 0}},
        .result = {y, 0}};
    return library_compute(args, cache, &problem, &weights, &call, done);
}
