/* SPDX-License-Identifier: Apache-2.0 */
#include "device/library_cache.h"

#include <string.h>

#include "base/clock.h"
#include "ir/copies.h"

void library_shelf_open(struct library_shelf *shelf)
{
    pthread_mutex_init(&shelf->lock, NULL);
    shelf->first = NULL;
}

void library_shelf_close(struct library_shelf *shelf)
{
    pthread_mutex_destroy(&shelf->lock);
}

void library_cache_open(struct library_cache *cache, const struct kernel_setup *setup,
                        bool constant)
{
    *cache = (struct library_cache){.context = setup->context,
                                    .tally = setup->tally,
                                    .graph = setup->graph,
                                    .constant = constant && setup->context->device->is_host};
    pthread_mutex_init(&cache->lock, NULL);
    library_shelf_open(&cache->own);
    cache->shelf = &cache->own;
    cache->plan_shelf = setup->shelf;
}

/* ---- Weights that are held ------------------------------------------------------------------- */

void library_cache_hold(struct library_cache *cache, const struct tensor *weights)
{
    cache->held = ir_copies_hold(cache->graph, weights->data);
    cache->weights = cache->held ? weights : NULL;
    cache->known = weights->data;
    if (cache->plan_shelf)
        cache->shelf = cache->plan_shelf;
}

void library_cache_hold_own(struct library_cache *cache, const struct tensor *weights)
{
    library_cache_hold(cache, weights);
    cache->shelf = &cache->own;
}

/* Under the lock, or where nobody else has the cache. */
static void hold_weights(struct library_cache *cache)
{
    if (cache->weights && !cache->held)
        cache->held = ir_copies_hold(cache->graph, cache->weights->data);
}

static void drop_weights(struct library_cache *cache)
{
    if (cache->held)
        ir_copies_drop(cache->graph, cache->weights->data);
    cache->held = false;
}

static void need_weights(struct library_cache *cache)
{
    hold_weights(cache);
    atomic_store_explicit(&cache->in_need, true, memory_order_release);
}

void library_cache_need(struct library_cache *cache)
{
    if (!cache->weights || atomic_load_explicit(&cache->in_need, memory_order_acquire))
        return;
    pthread_mutex_lock(&cache->lock);
    need_weights(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- What was made --------------------------------------------------------------------------- */

static void forget_packed(struct library_cache *cache, struct library_packed *packed)
{
    const tssa_allocator *allocator = cache->context->allocator;
    struct library_packed **at = &cache->shelf->first;
    while (*at != packed)
        at = &(*at)->next;
    *at = packed->next;
    if (cache->tally)
        atomic_fetch_sub_explicit(&cache->tally->packed_bytes, packed->bytes, memory_order_relaxed);
    allocator_free(allocator, packed->data);
    allocator_free(allocator, packed);
}

/* Gives up what has been packed, if nobody else uses it. */
static void drop_packed(struct library_cache *cache, struct library_made *made)
{
    struct library_packed *packed = made->packed;
    if (!packed)
        return;
    pthread_mutex_lock(&cache->shelf->lock);
    struct library_made **at = &packed->users;
    while (*at != made)
        at = &(*at)->before;
    *at = made->before;
    if (!packed->users)
        forget_packed(cache, packed);
    pthread_mutex_unlock(&cache->shelf->lock);
}

static void drop(struct library_cache *cache, struct library_made *made)
{
    drop_packed(cache, made);
    if (made->primitive)
        made->primitive->table->release(made->primitive);
    made->primitive = NULL;
    made->packed = NULL;
    made->used = 0;
}

void library_cache_close(struct library_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; cache->made && i < LIBRARY_PROBLEMS; i++)
        drop(cache, &cache->made[i]);
    drop(cache, &cache->guess);
    drop_weights(cache);
    allocator_free(cache->context->allocator, cache->made);
    library_shelf_close(&cache->own);
    pthread_mutex_destroy(&cache->lock);
}

/* The weights as the primitive wants them, in `packed`. */
static tssa_status *pack(struct kernel_args *args, const struct library_weights *weights,
                         const struct library_primitive *primitive, void *packed, void *scratch,
                         bool *done)
{
    struct buffer *wide = NULL;
    if (!primitive->packed_bytes) {
        weights->widen(weights->tensor, packed);
        return NULL;
    }
    if (weights->widened_bytes) {
        TRY(kernel_scratch(args, weights->widened_bytes, &wide));
        weights->widen(weights->tensor, wide->data);
    }
    *done = primitive->table->pack(primitive, wide ? wide->data : weights->tensor->data, packed,
                                   scratch);
    buffer_release(wide);
    return NULL;
}

/* Weights that the primitive takes row-major, in their type, are used where they are. */
static size_t packed_bytes(const struct library_weights *weights,
                           const struct library_primitive *primitive)
{
    if (!weights)
        return 0;
    return primitive->packed_bytes ? primitive->packed_bytes : weights->widened_bytes;
}

/* ---- The shelf: under its lock --------------------------------------------------------------- */

static void use_packed(struct library_packed *packed, struct library_made *made)
{
    made->packed = packed;
    made->before = packed->users;
    packed->users = made;
}

static bool share_packed(const struct library_cache *cache, struct library_made *made)
{
    const struct primitive_table *table = made->primitive->table;
    for (struct library_packed *packed = cache->shelf->first; packed; packed = packed->next) {
        const struct library_primitive *other = packed->users->primitive;
        if (packed->weights != cache->known || other->table != table ||
            !table->same_packing(other, made->primitive))
            continue;
        use_packed(packed, made);
        return true;
    }
    return false;
}

static tssa_status *add_packed(struct kernel_args *args, struct library_cache *cache,
                               const struct library_weights *weights, struct library_made *made,
                               size_t bytes, void *scratch)
{
    const tssa_allocator *allocator = cache->context->allocator;
    struct library_packed *packed = allocator_calloc(allocator, 1, sizeof *packed);
    bool done = true;
    if (packed)
        packed->data = allocator_alloc_aligned(allocator, bytes, LIBRARY_ALIGNMENT);
    tssa_status *status = packed && packed->data
                              ? pack(args, weights, made->primitive, packed->data, scratch, &done)
                              : status_out_of_memory();
    if (status || !done) {
        allocator_free(allocator, packed ? packed->data : NULL);
        allocator_free(allocator, packed);
        return status;
    }
    packed->bytes = bytes;
    packed->weights = cache->known;
    packed->next = cache->shelf->first;
    cache->shelf->first = packed;
    use_packed(packed, made);
    if (cache->tally)
        atomic_fetch_add_explicit(&cache->tally->packed_bytes, bytes, memory_order_relaxed);
    return NULL;
}

static tssa_status *find_packed(struct kernel_args *args, struct library_cache *cache,
                                const struct library_weights *weights, struct library_made *made,
                                size_t bytes)
{
    const size_t needed = made->primitive->pack_scratch_bytes;
    struct buffer *scratch = NULL;
    if (share_packed(cache, made))
        return NULL;
    if (needed)
        TRY(kernel_scratch(args, needed, &scratch));
    hold_weights(cache);
    tssa_status *status =
        add_packed(args, cache, weights, made, bytes, scratch ? scratch->data : NULL);
    buffer_release(scratch);
    return status;
}

/* What was guessed is given up, after it was shared, if that is possible. */
static void end_guess(struct library_cache *cache, struct library_made *made)
{
    if (made == &cache->guess || !cache->guess.primitive)
        return;
    if (made->primitive) {
        pthread_mutex_lock(&cache->shelf->lock);
        share_packed(cache, made);
        pthread_mutex_unlock(&cache->shelf->lock);
    }
    drop(cache, &cache->guess);
}

static tssa_status *keep_packed(struct kernel_args *args, struct library_cache *cache,
                                const struct library_weights *weights, struct library_made *made)
{
    const size_t bytes = packed_bytes(weights, made->primitive);
    if (!cache->constant || bytes == 0 || made->packed)
        return NULL;
    pthread_mutex_lock(&cache->shelf->lock);
    tssa_status *status = find_packed(args, cache, weights, made, bytes);
    pthread_mutex_unlock(&cache->shelf->lock);
    if (!made->packed)
        return status;
    if (!atomic_load_explicit(&cache->in_need, memory_order_relaxed))
        drop_weights(cache);
    ir_graph_forget(cache->graph, weights->tensor->data, tensor_bytes(weights->tensor));
    return NULL;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Counts a run of it, if it is the problem's. */
static bool enter(struct library_made *made, const struct library_problem *problem)
{
    const unsigned runs = atomic_fetch_add_explicit(&made->runs, 1, memory_order_acquire);
    if (!(runs & LIBRARY_FILLING) && made->used && library_same_problem(&made->problem, problem))
        return true;
    atomic_fetch_sub_explicit(&made->runs, 1, memory_order_release);
    return false;
}

/* A free entry, else the one that was used longest ago, to be filled; NULL: all are in use. */
static struct library_made *claim(struct library_cache *cache)
{
    struct library_made *oldest = NULL;
    unsigned none = 0;
    for (size_t i = 0; i < LIBRARY_PROBLEMS; i++) {
        struct library_made *made = &cache->made[i];
        if (made->runs == 0 && (!oldest || made->used < oldest->used))
            oldest = made;
    }
    return oldest && atomic_compare_exchange_strong(&oldest->runs, &none, LIBRARY_FILLING) ? oldest
                                                                                           : NULL;
}

static tssa_status *fill(struct kernel_args *args, struct library_cache *cache,
                         const struct library_problem *problem,
                         const struct library_weights *weights, struct library_made *made)
{
    uint64_t start = clock_monotonic();
    made->problem = *problem;
    made->primitive = cache->context->device->library->make(cache->context, problem);
    end_guess(cache, made);
    tssa_status *status = made->primitive ? keep_packed(args, cache, weights, made) : NULL;
    if (made->primitive && !made->packed)
        need_weights(cache); /* which each run of it reads */
    if (cache->tally) {
        atomic_fetch_add_explicit(&cache->tally->primitives, made->primitive != NULL,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&cache->tally->nanoseconds, clock_monotonic() - start,
                                  memory_order_relaxed);
    }
    if (status)
        drop(cache, made);
    return status;
}

/* Claimed by nobody else: the first run of it is counted. */
static tssa_status *fill_claimed(struct kernel_args *args, struct library_cache *cache,
                                 const struct library_problem *problem,
                                 const struct library_weights *weights, struct library_made *made)
{
    drop(cache, made);
    tssa_status *status = fill(args, cache, problem, weights, made);
    made->used = status ? 0 : 1;
    atomic_fetch_sub_explicit(&made->runs, status ? LIBRARY_FILLING : LIBRARY_FILLING - 1,
                              memory_order_release);
    return status;
}

static tssa_status *take_locked(struct kernel_args *args, struct library_cache *cache,
                                const struct library_problem *problem,
                                const struct library_weights *weights, struct library_made *own,
                                struct library_made **result)
{
    if (!cache->made) {
        cache->made =
            allocator_calloc(cache->context->allocator, LIBRARY_PROBLEMS, sizeof *cache->made);
        TRY_ALLOC(cache->made);
    }
    for (size_t i = 0; i < LIBRARY_PROBLEMS; i++)
        if (enter(&cache->made[i], problem)) {
            *result = &cache->made[i];
            return NULL;
        }
    struct library_made *made = claim(cache);
    *result = made ? made : own;
    return made ? fill_claimed(args, cache, problem, weights, made)
                : fill(args, cache, problem, weights, own);
}

tssa_status *library_take(struct kernel_args *args, struct library_cache *cache,
                          const struct library_problem *problem,
                          const struct library_weights *weights, struct library_made *own,
                          struct library_made **made)
{
    struct library_made *latest = atomic_load_explicit(&cache->latest, memory_order_acquire);
    if (latest && enter(latest, problem)) {
        *made = latest;
        return NULL;
    }
    pthread_mutex_lock(&cache->lock);
    latest = atomic_load_explicit(&cache->latest, memory_order_relaxed);
    own->primitive = NULL;
    own->packed = NULL;
    tssa_status *status = take_locked(args, cache, problem, weights, own, made);
    if (!status && *made != own) {
        if (latest && latest->used)
            latest->used = ++cache->clock; /* until now */
        (*made)->used = ++cache->clock;
        atomic_store_explicit(&cache->latest, *made, memory_order_release);
    }
    pthread_mutex_unlock(&cache->lock);
    return status;
}

void library_give(struct library_cache *cache, struct library_made *own, struct library_made *made)
{
    if (made != own) {
        atomic_fetch_sub_explicit(&made->runs, 1, memory_order_release);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    drop(cache, own);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- Before the first run -------------------------------------------------------------------- */

static bool packs_alone(const struct library_cache *cache, const struct library_problem *problem,
                        const struct library_weights *weights)
{
    if (problem->threads <= 1 || !cache->constant || !weights)
        return true;
    return (weights->widened_bytes ? weights->widened_bytes : tensor_bytes(weights->tensor)) <=
           LIBRARY_PACKED_ALONE;
}

/* Of a run: what the primitive wants, and weights that are not kept packed. */
static bool scratch_bytes(const struct library_primitive *primitive,
                          const struct library_weights *weights, bool kept, size_t *bytes)
{
    return size_add(primitive->scratch_bytes, kept ? 0 : packed_bytes(weights, primitive), bytes);
}

static void expect_scratch(const struct kernel_args *args,
                           const struct library_primitive *primitive,
                           const struct library_weights *weights, bool kept)
{
    size_t bytes;
    if (scratch_bytes(primitive, weights, kept, &bytes))
        scratch_expect(args->scratch, bytes);
}

static struct library_primitive *make_guess(const struct kernel_args *args,
                                            const struct library_cache *cache,
                                            const struct library_problem *problem)
{
    const struct device_library *library = cache->context->device->library;
    if (!args->only_packs)
        return library->make(cache->context, problem);
    return cache->constant && library->make_packer ? library->make_packer(cache->context, problem)
                                                   : NULL;
}

/* One that nobody keeps, unless it has packed weights: for the first run, which ends it. */
static tssa_status *try_problem(struct kernel_args *args, struct library_cache *cache,
                                const struct library_problem *problem,
                                const struct library_weights *weights, bool *made)
{
    struct library_made *guess = &cache->guess;
    tssa_status *status = NULL;
    pthread_mutex_lock(&cache->lock);
    drop(cache, guess);
    guess->problem = *problem;
    guess->primitive = make_guess(args, cache, problem);
    *made = guess->primitive || args->only_packs;
    if (guess->primitive && !args->only_packs)
        expect_scratch(args, guess->primitive, weights, cache->constant);
    if (guess->primitive && packs_alone(cache, problem, weights))
        status = keep_packed(args, cache, weights, guess);
    if (!guess->packed)
        drop(cache, guess);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

tssa_status *library_get_ready(struct kernel_args *args, struct library_cache *cache,
                               const struct library_problem *problem,
                               const struct library_weights *weights, bool *made)
{
    struct library_made own, *taken;
    *made = false;
    if (args->guessed || !packs_alone(cache, problem, weights))
        return try_problem(args, cache, problem, weights, made);
    TRY(library_take(args, cache, problem, weights, &own, &taken));
    *made = taken->primitive != NULL;
    if (*made)
        expect_scratch(args, taken->primitive, weights, taken->packed != NULL);
    library_give(cache, &own, taken);
    return NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

static tssa_status *run_made(struct kernel_args *args, const struct library_weights *weights,
                             const struct library_made *made, struct library_call *call, bool *done)
{
    const struct library_primitive *primitive = made->primitive;
    struct device_place *place = &call->operands[LIBRARY_WEIGHTS];
    struct buffer *scratch = NULL;
    tssa_status *status = NULL;
    size_t bytes;
    if (!scratch_bytes(primitive, weights, made->packed != NULL, &bytes))
        return status_out_of_memory();
    if (bytes)
        TRY(kernel_scratch(args, bytes, &scratch));
    call->scratch = scratch ? (struct device_place){scratch->data, scratch->offset}
                            : (struct device_place){NULL, 0};
    *done = true;
    if (made->packed)
        *place = (struct device_place){made->packed->data, 0};
    else if (bytes > primitive->scratch_bytes) { /* in the host's memory, the only one where weights
                                                    are packed */
        *place = (struct device_place){scratch->data, primitive->scratch_bytes};
        status = pack(args, weights, primitive, (char *)scratch->data + primitive->scratch_bytes,
                      scratch->data, done);
    }
    *done = !status && *done && primitive->table->run(primitive, args->env->stream, call);
    buffer_release(scratch);
    return status;
}

tssa_status *library_compute(struct kernel_args *args, struct library_cache *cache,
                             const struct library_problem *problem,
                             const struct library_weights *weights, struct library_call *call,
                             bool *done)
{
    struct library_made own, *made;
    *done = false;
    TRY(library_take(args, cache, problem, weights, &own, &made));
    tssa_status *status = made->primitive ? run_made(args, weights, made, call, done) : NULL;
    library_give(cache, &own, made);
    return status;
}
