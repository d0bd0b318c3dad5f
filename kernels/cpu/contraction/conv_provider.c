/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/contraction/conv_provider.h"

#include <string.h>

#include "base/clock.h"
#include "kernels/cpu/lib/convert.h"

/* Below so many multiplications compiling code for them costs more than many runs of the reference. */
#define MIN_WORK 8192

void conv_provider_open(struct conv_provider *provider, const struct kernel_setup *setup,
                        bool constant)
{
    *provider = (struct conv_provider){
        .context = setup->context, .tally = setup->tally, .constant = constant};
    pthread_mutex_init(&provider->lock, NULL);
}

/* ---- What was made -------------------------------------------------------------------------------- */

static void drop(struct conv_provider *provider, struct conv_made *made)
{
    const tssa_allocator *allocator = provider->context->allocator;
    if (made->primitive)
        cpu_engine(provider->context)->provider->conv_release(made->primitive);
    if (made->packed && --made->packed->users == 0) {
        if (provider->tally)
            atomic_fetch_sub_explicit(&provider->tally->packed_bytes, made->packed->bytes,
                                      memory_order_relaxed);
        allocator_free(allocator, made->packed->data);
        allocator_free(allocator, made->packed);
    }
    *made = (struct conv_made){0};
}

void conv_provider_close(struct conv_provider *provider)
{
    for (size_t i = 0; i < CONV_SHAPES; i++)
        drop(provider, &provider->made[i]);
    pthread_mutex_destroy(&provider->lock);
}

/* The weights as the primitive wants them, in `packed`. */
static tssa_status *pack(struct kernel_args *args, const struct conv_job *job,
                         const struct cpu_provider *library, const struct conv_primitive *primitive,
                         void *packed, void *scratch, bool *done)
{
    const struct tensor *w = job->w;
    struct buffer *wide = NULL;
    if (w->dtype != TSSA_FLOAT) {
        TRY(kernel_scratch(args, tensor_count(w) * sizeof(float), &wide));
        convert_elements((int64_t)tensor_count(w), w->dtype, w->data, 1, TSSA_FLOAT, wide->data, 1,
                         &convert_default);
    }
    const void *from = wide ? wide->data : w->data;
    if (primitive->packed_bytes)
        *done = library->conv_pack(primitive, from, packed, scratch);
    else
        memcpy(packed, from, tensor_count(w) * sizeof(float));
    buffer_release(wide);
    return NULL;
}

/* Float32 weights that the primitive takes row-major are used where they are. */
static size_t packed_bytes(const struct conv_job *job, const struct conv_primitive *primitive)
{
    if (primitive->packed_bytes || job->w->dtype == TSSA_FLOAT)
        return primitive->packed_bytes;
    return tensor_count(job->w) * sizeof(float);
}

static bool share_packed(struct conv_provider *provider, const struct cpu_provider *library,
                         struct conv_made *made)
{
    for (size_t i = 0; i < CONV_SHAPES; i++) {
        const struct conv_made *other = &provider->made[i];
        if (!other->packed || !library->conv_same_packing(other->primitive, made->primitive))
            continue;
        made->packed = other->packed;
        made->packed->users++;
        return true;
    }
    return false;
}

static tssa_status *keep_packed(struct kernel_args *args, struct conv_provider *provider,
                                const struct conv_job *job, const struct cpu_provider *library,
                                struct conv_made *made)
{
    const tssa_allocator *allocator = provider->context->allocator;
    size_t bytes = packed_bytes(job, made->primitive);
    if (!provider->constant || bytes == 0 || share_packed(provider, library, made))
        return NULL;
    struct buffer *scratch;
    TRY(kernel_scratch(args, made->primitive->scratch_bytes, &scratch));
    struct conv_packed *packed = allocator_calloc(allocator, 1, sizeof *packed);
    if (packed)
        packed->data = allocator_alloc_aligned(allocator, bytes, PROVIDER_ALIGNMENT);
    bool done = true;
    tssa_status *status = packed && packed->data ? pack(args, job, library, made->primitive,
                                                        packed->data, scratch->data, &done)
                                                 : status_out_of_memory();
    buffer_release(scratch);
    if (status || !done) {
        allocator_free(allocator, packed ? packed->data : NULL);
        allocator_free(allocator, packed);
        return status;
    }
    packed->users = 1;
    packed->bytes = bytes;
    made->packed = packed;
    if (provider->tally)
        atomic_fetch_add_explicit(&provider->tally->packed_bytes, bytes, memory_order_relaxed);
    return NULL;
}

/* ---- Finding -------------------------------------------------------------------------------------- */

/* The entry of the problem, else a free one or the one that was used longest ago; NULL: all are in use. */
static struct conv_made *find(struct conv_provider *provider, const struct conv *problem)
{
    struct conv_made *oldest = NULL;
    for (size_t i = 0; i < CONV_SHAPES; i++) {
        struct conv_made *made = &provider->made[i];
        if (made->used && memcmp(&made->problem, problem, sizeof *problem) == 0)
            return made;
        if (made->runs == 0 && (!oldest || made->used < oldest->used))
            oldest = made;
    }
    return oldest;
}

static tssa_status *fill(struct kernel_args *args, struct conv_provider *provider,
                         const struct conv_job *job, struct cpu_engine *engine,
                         const struct conv *problem, struct conv_made *made)
{
    uint64_t start = clock_monotonic();
    drop(provider, made);
    made->problem = *problem;
    made->primitive = engine->provider->conv_make(engine, problem);
    tssa_status *status =
        made->primitive ? keep_packed(args, provider, job, engine->provider, made) : NULL;
    if (provider->tally) {
        atomic_fetch_add_explicit(&provider->tally->primitives, made->primitive != NULL,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&provider->tally->nanoseconds, clock_monotonic() - start,
                                  memory_order_relaxed);
    }
    if (status)
        drop(provider, made);
    return status;
}

/* What was made for the problem, now in use: kept, or in *own where all that are kept are in use. */
static tssa_status *take(struct kernel_args *args, struct conv_provider *provider,
                         const struct conv_job *job, struct cpu_engine *engine,
                         const struct conv *problem, struct conv_made *own,
                         struct conv_made **result)
{
    tssa_status *status = NULL;
    pthread_mutex_lock(&provider->lock);
    struct conv_made *made = find(provider, problem);
    if (!made)
        made = own;
    if (!made->used || memcmp(&made->problem, problem, sizeof *problem) != 0)
        status = fill(args, provider, job, engine, problem, made);
    if (!status) {
        made->runs++;
        made->used = ++provider->clock;
    }
    pthread_mutex_unlock(&provider->lock);
    *result = made;
    return status;
}

static void give(struct conv_provider *provider, struct conv_made *own, struct conv_made *made)
{
    pthread_mutex_lock(&provider->lock);
    made->runs--;
    if (made == own)
        drop(provider, made);
    pthread_mutex_unlock(&provider->lock);
}

/* ---- Running -------------------------------------------------------------------------------------- */

static int64_t work_of(const struct conv_job *job)
{
    const struct window *w = &job->window;
    int64_t work = job->batch;
    bool counted = i64_mul(work, job->out_channels, &work) && i64_mul(work, w->out_count, &work) &&
                   i64_mul(work, job->in_channels / job->groups, &work) &&
                   i64_mul(work, w->kernel_count, &work);
    return counted ? work : INT64_MAX;
}

static struct conv problem_of(const struct kernel_args *args, const struct conv_job *job,
                              const struct cpu_provider *library)
{
    const struct window *w = &job->window;
    struct conv conv = {.rank = w->rank,
                        .batch = job->batch,
                        .groups = job->groups,
                        .in_channels = job->in_channels,
                        .out_channels = job->out_channels,
                        .biased = job->bias != NULL,
                        .threads =
                            library->threads(args->env->team ? args->env->team->threads : 1)};
    for (int i = 0; i < w->rank; i++) {
        conv.in[i] = w->in[i];
        conv.out[i] = w->out[i];
        conv.kernel[i] = w->kernel[i];
        conv.stride[i] = w->stride[i];
        conv.dilation[i] = w->dilation[i];
        conv.pad_begin[i] = w->pad_begin[i];
        conv.pad_end[i] = w->pad_end[i];
    }
    return conv;
}

static tssa_status *run_made(struct kernel_args *args, const struct conv_job *job,
                             const struct cpu_provider *library, const struct conv_made *made,
                             float *y, bool *done)
{
    const struct conv_primitive *primitive = made->primitive;
    size_t own = made->packed ? 0 : packed_bytes(job, primitive), bytes;
    struct buffer *scratch;
    if (!size_add(primitive->scratch_bytes, own, &bytes))
        return status_out_of_memory();
    TRY(kernel_scratch(args, bytes, &scratch));
    char *weights = (char *)scratch->data + primitive->scratch_bytes;
    struct conv_data data = {.x = job->x->data,
                             .weights = made->packed ? made->packed->data
                                        : own        ? weights
                                                     : job->w->data,
                             .bias = job->bias ? job->bias->data : NULL,
                             .y = y,
                             .scratch = scratch->data};
    *done = true;
    tssa_status *status =
        own ? pack(args, job, library, primitive, weights, scratch->data, done) : NULL;
    *done = !status && *done && library->conv_run(primitive, &data);
    buffer_release(scratch);
    return status;
}

tssa_status *conv_provider_run(struct kernel_args *args, struct conv_provider *provider,
                               const struct conv_job *job, float *y, bool *done)
{
    struct cpu_engine *engine = NULL;
    struct conv_made own = {0}, *made;
    *done = false;
    if (job->window.rank <= CONV_MAX_RANK && work_of(job) >= MIN_WORK)
        engine = cpu_engine(provider->context);
    if (!engine)
        return NULL;
    const struct cpu_provider *library = engine->provider;
    struct conv problem = problem_of(args, job, library);
    TRY(take(args, provider, job, engine, &problem, &own, &made));
    tssa_status *status = made->primitive ? run_made(args, job, library, made, y, done) : NULL;
    give(provider, &own, made);
    return status;
}
