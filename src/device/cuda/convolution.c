/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/convolution.h"

#include <stdio.h>

#include "device/cuda/card.h"
#include "device/cuda/cudnn.h"

/* Of fewer multiplications a text takes no longer, or not by enough: as of products. */
enum { FEWEST_MULTIPLICATIONS = 1 << 22 };

/* What it may use beside them, at most. */
#define MOST_WORKSPACE ((int64_t)64 << 20)

/* ---- The library ----------------------------------------------------------------------------- */

struct convolutions {
    struct cudnn cudnn;
    pthread_mutex_t lock; /* a handle has one stream at a time */
};

/* In the place of one: it was looked for, and there is none. */
static struct convolutions not_there;

static tssa_status *open_on_card(struct device_context *context, struct cudnn *cudnn)
{
    const struct cuda_card *card;
    TRY(cudnn_open(cudnn));
    TRY(cuda_enter(context, &card));
    return cudnn_use_card(cudnn);
}

static void *open_library(struct device_context *context)
{
    struct convolutions *opened = allocator_calloc(context->allocator, 1, sizeof *opened);
    tssa_status *status = opened ? open_on_card(context, &opened->cudnn) : status_out_of_memory();
    if (!status) {
        pthread_mutex_init(&opened->lock, NULL);
        return opened;
    }
    tssa_status_free(status);
    allocator_free(context->allocator, opened);
    return &not_there;
}

/* NULL: there is none. */
static struct convolutions *library_of(struct device_context *context)
{
    struct cuda_card *card = context->connected;
    struct convolutions *opened = device_context_once(context, &card->convolutions, open_library);
    return opened == &not_there ? NULL : opened;
}

void cuda_convolution_close(struct device_context *context)
{
    struct cuda_card *card = context->connected;
    struct convolutions *opened = atomic_load(&card->convolutions);
    atomic_store(&card->convolutions, NULL);
    if (!opened || opened == &not_there)
        return;
    cuda_enter_anyway(context);
    cudnn_close(&opened->cudnn);
    pthread_mutex_destroy(&opened->lock);
    allocator_free(context->allocator, opened);
}

bool cuda_convolution_is_there(char *why, size_t size)
{
    struct cudnn cudnn;
    tssa_status *status = cudnn_open(&cudnn);
    const bool there = !status;
    snprintf(why, size, "%s", there ? "" : tssa_status_message(status));
    tssa_status_free(status);
    return there;
}

/* ---- Running --------------------------------------------------------------------------------- */

struct primitive {
    struct library_primitive base;
    const tssa_allocator *allocator;
    struct convolutions *library;
    bool biased, adds;
    struct cudnn_plan plan;
    struct cudnn_made made; /* what the plan is made of, which lives as long */
};

static cuda_address address_of(struct device_place place)
{
    return (uintptr_t)place.memory + place.offset;
}

static bool lie_well(const struct cudnn_places *places)
{
    const cuda_address all = places->x | places->w | places->bias | places->added | places->y;
    return all % CUDA_OPERAND_ALIGNMENT == 0;
}

/* With a descriptor of where all of it lies, which the call has read when it returns. */
static tssa_status *run_packed(struct cudnn *cudnn, const struct cudnn_plan *plan,
                               const struct cudnn_places *places, cuda_stream stream)
{
    cudnn_descriptor pack;
    TRY(cudnn_pack(cudnn, places, &pack));
    return cudnn_run(cudnn, plan, pack, stream);
}

static tssa_status *convolve(const struct primitive *p, struct device_stream *stream,
                             const struct cudnn_places *places)
{
    struct cudnn_made made = {.n = 0};
    struct cudnn cudnn = p->library->cudnn;
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    cudnn.made = &made;
    pthread_mutex_lock(&p->library->lock);
    tssa_status *status = run_packed(&cudnn, &p->plan, places, own);
    pthread_mutex_unlock(&p->library->lock);
    cudnn_drop(&cudnn, &made);
    return status;
}

static bool run(const struct library_primitive *primitive, struct device_stream *stream,
                const struct library_call *call)
{
    const struct primitive *p = (const struct primitive *)primitive;
    const struct cudnn_places places = {
        .x = address_of(call->operands[0]),
        .w = address_of(call->operands[LIBRARY_WEIGHTS]),
        .bias = p->biased ? address_of(call->operands[LIBRARY_BIAS]) : 0,
        .added = p->adds ? address_of(call->operands[LIBRARY_ADDED]) : 0,
        .y = address_of(call->result),
        .workspace = address_of(call->scratch)};
    if (!lie_well(&places))
        return false;
    tssa_status *status = convolve(p, stream, &places);
    const bool good = !status;
    tssa_status_free(status);
    stream->counts.library_calls += good;
    return good;
}

static void release(struct library_primitive *primitive)
{
    struct primitive *p = (struct primitive *)primitive;
    cudnn_drop(&p->library->cudnn, &p->made);
    allocator_free(p->allocator, p);
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* The first proposal that keeps the type's precision, or may not, gives the same bits each time,
 * has its code, and has a plan that is content with the workspace. */
static tssa_status *choose(struct cudnn *cudnn, const struct library_problem *problem,
                           bool allow_tf32, struct cudnn_plan *plan)
{
    struct engine engines[ENGINE_LIMIT];
    size_t count;
    TRY(cudnn_engines(cudnn, problem, engines, &count));
    for (size_t i = 0; i < count; i++) {
        if (!cudnn_engine_suits(&engines[i], problem, allow_tf32) || engines[i].compiled)
            continue;
        tssa_status *status = cudnn_plan_make(cudnn, &engines[i], plan);
        const bool good = !status && plan->workspace <= MOST_WORKSPACE;
        tssa_status_free(status); /* engines that refuse are no news: the next one is asked */
        if (good)
            return NULL;
    }
    return ERROR(TSSA_UNSUPPORTED, "cuDNN proposes nothing");
}

static tssa_status *make_plan(struct device_context *context, struct primitive *p,
                              const struct library_problem *problem)
{
    struct cudnn cudnn = p->library->cudnn;
    const struct cuda_card *card;
    TRY(cuda_enter(context, &card));
    cudnn.made = &p->made;
    TRY(choose(&cudnn, problem, context->allow_tf32, &p->plan));
    p->base.scratch_bytes = (size_t)p->plan.workspace;
    return NULL;
}

bool cuda_convolution_is_worth_it(const struct conv_problem *p)
{
    double multiplications =
        (double)p->batch * (double)p->in_channels * ((double)p->out_channels / (double)p->groups);
    bool empty = multiplications == 0;
    for (int64_t i = 0; i < p->rank; i++) {
        multiplications *= (double)p->kernel[i] * (double)(p->turned ? p->in[i] : p->out[i]);
        empty |= p->in[i] == 0 || p->out[i] == 0;
    }
    return !empty && multiplications >= FEWEST_MULTIPLICATIONS;
}

struct library_primitive *cuda_convolution_make(struct device_context *context,
                                                const struct library_problem *problem)
{
    static const struct primitive_table table = {.run = run, .release = release};
    struct convolutions *library = library_of(context);
    struct primitive *made = library ? allocator_calloc(context->allocator, 1, sizeof *made) : NULL;
    if (!made)
        return NULL;
    made->base = (struct library_primitive){.table = &table, .name = "cuDNN"};
    made->allocator = context->allocator;
    made->library = library;
    made->biased = problem->conv.biased != 0;
    made->adds = problem->conv.adds != 0;
    tssa_status *status = make_plan(context, made, problem);
    if (!status)
        return &made->base;
    tssa_status_free(status);
    release(&made->base);
    return NULL;
}
