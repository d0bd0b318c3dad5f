/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/slab.h"

#include <string.h>

#include "runtime/executor.h"

/* After so many runs the layout is compared with what was needed. */
#define RUNS_TO_COMPARE 16
/* After so many that need the same layout it is worth a better one. */
#define RUNS_TO_TAKE_TIME 2

static void *array(const tssa_allocator *allocator, size_t count, size_t size)
{
    return allocator_calloc(allocator, count ? count : 1, size);
}

static void forget(int64_t *symbols, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        symbols[i] = -1;
}

bool slab_init(struct slab *slab, const struct plan *plan, const tssa_allocator *allocator)
{
    *slab = (struct slab){0};
    struct layout *layout = &slab->layout;
    layout->offsets = array(allocator, plan->n_placed, sizeof *layout->offsets);
    layout->sizes = array(allocator, plan->n_placed, sizeof *layout->sizes);
    layout->live = array(allocator, plan->n_steps + 1u, sizeof *layout->live);
    slab->symbols = array(allocator, plan->n_symbols, sizeof *slab->symbols);
    slab->most = array(allocator, plan->n_symbols, sizeof *slab->most);
    if (!layout->offsets || !layout->sizes || !layout->live || !slab->symbols || !slab->most)
        return false;
    forget(slab->symbols, plan->n_symbols);
    forget(slab->most, plan->n_symbols);
    return true;
}

static void free_memory(struct slab *slab, struct device_stream *stream)
{
    if (slab->memory)
        stream->context->device->release(stream, slab->memory, slab->size);
    slab->memory = NULL;
    slab->size = 0;
}

void slab_free(struct slab *slab, struct device_stream *stream, const tssa_allocator *allocator)
{
    free_memory(slab, stream);
    allocator_free(allocator, slab->layout.offsets);
    allocator_free(allocator, slab->layout.sizes);
    allocator_free(allocator, slab->layout.live);
    allocator_free(allocator, slab->symbols);
    allocator_free(allocator, slab->most);
}

/* ---- What the layout is for ----------------------------------------------------------------------- */

/* Makes slab->symbols what the run needs; false: they are that already. */
static bool update_inputs(struct run *run)
{
    struct slab *slab = &run->slab;
    const size_t bytes = run->plan->n_input_symbols * sizeof *slab->symbols;
    if (bytes == 0 || memcmp(slab->symbols, run->symbols, bytes) == 0)
        return false;
    memcpy(slab->symbols, run->symbols, bytes);
    return true;
}

static bool grow_others(struct run *run)
{
    struct slab *slab = &run->slab;
    bool grown = false;
    for (uint32_t i = run->plan->n_input_symbols; i < run->plan->n_symbols; i++)
        if (slab->most[i] > slab->symbols[i]) {
            slab->symbols[i] = slab->most[i];
            grown = true;
        }
    return grown;
}

static bool shrink_others(struct run *run)
{
    struct slab *slab = &run->slab;
    const uint32_t first = run->plan->n_input_symbols, end = run->plan->n_symbols;
    bool shrinks = false;
    if (++slab->runs < RUNS_TO_COMPARE)
        return false;
    for (uint32_t i = first; i < end; i++)
        shrinks |= slab->symbols[i] / 2 > (slab->most[i] > 0 ? slab->most[i] : 0);
    if (shrinks)
        memcpy(slab->symbols + first, slab->most + first, (end - first) * sizeof *slab->most);
    forget(slab->most + first, end - first);
    slab->runs = 0;
    return shrinks;
}

/* ---- The layout ----------------------------------------------------------------------------------- */

static void set_places(struct run *run)
{
    const struct slab *slab = &run->slab;
    for (uint32_t i = 0; i < run->plan->n_placed; i++) {
        bool here = slab->layout.offsets[i] != SIZE_MAX;
        run->places[run->plan->placed[i].output] = (struct kernel_place){
            .data = here ? (char *)slab->memory + slab->layout.offsets[i] : NULL,
            .size = here ? slab->layout.sizes[i] : 0};
    }
}

/* The old memory and what the pool keeps go first: what the one held the other holds from now on. */
static tssa_status *resize(struct run *run, size_t size)
{
    struct slab *slab = &run->slab;
    if (size <= slab->size && size >= (slab->layout.thorough ? slab->size : slab->size / 2))
        return NULL;
    free_memory(slab, run->stream);
    pool_clear(&run->pool);
    if (size == 0)
        return NULL;
    slab->memory = run->stream->context->device->allocate(run->stream, size);
    TRY_ALLOC(slab->memory);
    slab->size = size;
    return NULL;
}

static tssa_status *lay_out(struct run *run)
{
    struct slab *slab = &run->slab;
    size_t size;
    slab->layout.allocator = &run->pool.cached;
    TRY(placement_compute(run->plan, slab->symbols, &slab->layout, &size));
    TRY(resize(run, size));
    set_places(run);
    return NULL;
}

/* Sizes that need not come together, in this run, may be what is too much. */
static tssa_status *lay_out_inputs_only(struct run *run)
{
    const uint32_t first = run->plan->n_input_symbols, count = run->plan->n_symbols - first;
    forget(run->slab.symbols + first, count);
    forget(run->slab.most + first, count);
    return lay_out(run);
}

tssa_status *slab_prepare(struct run *run)
{
    struct slab *slab = &run->slab;
    bool changed = !slab->placed;
    changed |= update_inputs(run);
    changed |= grow_others(run);
    changed |= shrink_others(run);
    slab->alike = changed ? 0 : slab->alike + (slab->alike < RUNS_TO_TAKE_TIME);
    slab->layout.thorough = slab->alike == RUNS_TO_TAKE_TIME && !slab->thorough;
    if (!changed && !slab->layout.thorough)
        return NULL;
    slab->thorough = slab->layout.thorough;
    slab->placed = false;
    tssa_status *status = lay_out(run);
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY) {
        tssa_status_free(status);
        status = lay_out_inputs_only(run);
    }
    slab->placed = !status;
    return status;
}

void slab_take_turns(struct run *run, const struct step *loop)
{
    const struct slab *slab = &run->slab;
    for (uint32_t i = 0; i < loop->n_turns; i++) {
        const uint32_t at = loop->turns[i];
        struct kernel_place *place = &run->places[run->plan->placed[at].output];
        if (!place->data) /* it is in the pool */
            continue;
        char *first = (char *)slab->memory + slab->layout.offsets[at];
        place->data = place->data == first ? first + slab->layout.sizes[at] : first;
    }
}
