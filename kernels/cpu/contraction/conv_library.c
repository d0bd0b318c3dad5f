/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/contraction/conv_library.h"

#include <string.h>

#include "device/cpu/provider.h"
#include "kernels/cpu/contraction/conv_products.h"
#include "kernels/cpu/lib/convert.h"

static int64_t work_of(const struct conv_job *job)
{
    const struct window *w = &job->window;
    int64_t work = job->batch;
    bool counted = i64_mul(work, job->out_channels, &work) && i64_mul(work, w->out_count, &work) &&
                   i64_mul(work, job->in_channels / job->groups, &work) &&
                   i64_mul(work, w->kernel_count, &work);
    return counted ? work : INT64_MAX;
}

static void widen(const struct tensor *from, void *to)
{
    convert_elements((int64_t)tensor_count(from), from->dtype, from->data, 1, TSSA_FLOAT, to, 1,
                     &convert_default);
}

/* False: there is none, or it is not worth it. */
static bool asks_library(struct kernel_args *args, struct library_cache *cache,
                         const struct conv_job *job, struct library_problem *problem)
{
    const int64_t work = work_of(job);
    if (work < CONV_MIN_WORK || !conv_problem(job, TSSA_FLOAT, problem))
        return false;
    problem->threads = cpu_library_threads(cache->context, args->env->team, work);
    return problem->threads > 0;
}

static struct library_weights weights_of(const struct tensor *w)
{
    return (struct library_weights){
        .tensor = w,
        .widened_bytes = w->dtype == TSSA_FLOAT ? 0 : tensor_count(w) * sizeof(float),
        .widen = widen};
}

tssa_status *conv_library(struct kernel_args *args, struct library_cache *cache,
                          const struct conv_job *job, float *y, bool *done)
{
    const struct library_weights weights = weights_of(job->w);
    struct library_problem problem;
    *done = false;
    if (!asks_library(args, cache, job, &problem))
        return NULL;
    if (conv_products_takes(job)) {
        library_cache_need(cache);
        conv_products(args->env->team, job, y);
        *done = true;
        return NULL;
    }
    if (job->added && job->added->data != y)
        memcpy(y, job->added->data, tensor_count(job->added) * sizeof *y);
    struct library_call call = {
        .operands = {{job->x->data, 0}, {job->w->data, 0}, {job->bias ? job->bias->data : NULL, 0}},
        .result = {y, 0}};
    return library_compute(args, cache, &problem, &weights, &call, done);
}

tssa_status *conv_library_get_ready(struct kernel_args *args, struct library_cache *cache,
                                    const struct conv_job *job, bool *made)
{
    const struct library_weights weights = weights_of(job->w);
    struct library_problem problem;
    *made = false;
    if (!asks_library(args, cache, job, &problem))
        return NULL;
    if (!conv_products_takes(job))
        return library_get_ready(args, cache, &problem, &weights, made);
    library_cache_need(cache);
    *made = true;
    return NULL;
}
