/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/slab.h"

#include <string.h>

#include "runtime/executor.h"

/* After so many runs the layout is compared with what was needed. */
#define RUNS_TO_COMPARE 16
/* After so many that need the same layout it is worth a better one. */
#define RUNS_TO_TAKE_TIME 2
/* Bytes that a run state which has run nothing may hold. */
#define MOST_READY ((size_t)16 << 20)
/* Entries of a plan for which time is taken before the first run: some milliseconds. */
#define MOST_PLACED 512

static void *array(const tssa_allocator *allocator, size_t count, size_t size)
{
    return allocator_calloc(allocator, count ? count : 1, size);
}

static void forget(int64_t *symbols, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        symbols[i] = -1;
}

static bool init_part(struct slab_part *part, enum space space, const struct plan *plan,
                      const tssa_allocator *allocator)
{
    struct layout *layout = &part->layout;
    layout->space = space;
    layout->alignment = (space == SPACE_HOST ? plan->host : plan->device)->device->alignment;
    layout->offsets = array(allocator, plan->n_placed, sizeof *layout->offsets);
    layout->sizes = array(allocator, plan->n_placed, sizeof *layout->sizes);
    layout->live = array(allocator, plan->n_steps + 2u, sizeof *layout->live);
    layout->left = array(allocator, plan->n_placed, sizeof *layout->left);
    layout->pooled = array(allocator, plan->n_steps, sizeof *layout->pooled);
    if (plan->n_parts) {
        layout->begins = array(allocator, plan->n_parts, sizeof *layout->begins);
        layout->tops = array(allocator, plan->n_placed, sizeof *layout->tops);
        layout->firsts = array(allocator, plan->n_placed, sizeof *layout->firsts);
    }
    return layout->offsets && layout->sizes && layout->live && layout->left && layout->pooled &&
           (!plan->n_parts || (layout->begins && layout->tops && layout->firsts));
}

bool slab_init(struct run *run)
{
    const struct plan *plan = run->plan;
    const tssa_allocator *allocator = run->allocator;
    struct slab *slab = &run->slab;
    for (uint32_t i = 0; i < plan->n_spaces; i++)
        if (!init_part(&slab->parts[i], (enum space)i, plan, allocator))
            return false;
    slab->symbols = array(allocator, plan->n_symbols, sizeof *slab->symbols);
    slab->most = array(allocator, plan->n_symbols, sizeof *slab->most);
    slab->scratch = array(allocator, plan->n_steps, sizeof *slab->scratch);
    slab->wanted = array(allocator, plan->n_placed, sizeof *slab->wanted);
    if (!slab->symbols || !slab->most || !slab->scratch || !slab->wanted)
        return false;
    forget(slab->symbols, plan->n_symbols);
    forget(slab->most, plan->n_symbols);
    memcpy(slab->scratch, plan->scratch, plan->n_steps * sizeof *slab->scratch);
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (!plan->placed[i].type)
            run->scratch[plan->placed[i].scratch].missed = &run->env.missed;
    return true;
}

static void free_memory(struct slab_part *part, struct device_stream *stream)
{
    if (part->memory)
        stream->context->device->release(stream, part->memory, part->size);
    part->memory = NULL;
    part->size = 0;
}

void slab_free(struct run *run)
{
    struct slab *slab = &run->slab;
    for (uint32_t i = 0; i < run->plan->n_spaces; i++) {
        free_memory(&slab->parts[i], run->streams[i]);
        allocator_free(run->allocator, slab->parts[i].layout.offsets);
        allocator_free(run->allocator, slab->parts[i].layout.sizes);
        allocator_free(run->allocator, slab->parts[i].layout.live);
        allocator_free(run->allocator, slab->parts[i].layout.left);
        allocator_free(run->allocator, slab->parts[i].layout.pooled);
        allocator_free(run->allocator, slab->parts[i].layout.begins);
        allocator_free(run->allocator, slab->parts[i].layout.tops);
        allocator_free(run->allocator, slab->parts[i].layout.firsts);
    }
    allocator_free(run->allocator, slab->symbols);
    allocator_free(run->allocator, slab->most);
    allocator_free(run->allocator, slab->scratch);
    allocator_free(run->allocator, slab->wanted);
}

size_t slab_size(const struct slab *slab)
{
    return slab->parts[SPACE_HOST].size + slab->parts[SPACE_DEVICE].size;
}

size_t slab_live(const struct slab *slab, uint32_t step)
{
    const size_t *there = slab->parts[SPACE_DEVICE].layout.live;
    return slab->parts[SPACE_HOST].layout.live[step] + (there ? there[step] : 0);
}

/* ---- What the layout is for ------------------------------------------------------------------ */

static void forget_wanted(struct run *run)
{
    memset(run->slab.wanted, 0, run->plan->n_placed * sizeof *run->slab.wanted);
}

/* Makes slab->symbols what the run needs; false: they are that already. */
static bool update_inputs(struct run *run)
{
    struct slab *slab = &run->slab;
    const size_t bytes = run->plan->n_input_symbols * sizeof *slab->symbols;
    if (bytes == 0 || memcmp(slab->symbols, run->symbols, bytes) == 0)
        return false;
    memcpy(slab->symbols, run->symbols, bytes);
    forget_wanted(run);
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
    if (shrinks) {
        memcpy(slab->symbols + first, slab->most + first, (end - first) * sizeof *slab->most);
        forget_wanted(run);
    }
    forget(slab->most + first, end - first);
    slab->runs = 0;
    return shrinks;
}

/* What results and scratch memory had too little of. */
static bool grow_missed(struct run *run)
{
    struct slab *slab = &run->slab;
    if (!run->env.missed && !run->device_env.missed)
        return false;
    for (uint32_t i = 0; i < run->plan->n_steps; i++)
        if (run->scratch[i].most > slab->scratch[i]) {
            slab->scratch[i] = run->scratch[i].most;
            run->scratch[i].most = 0; /* it was a guess */
        }
    run->env.missed = run->device_env.missed = false;
    return true;
}

/* What the first run missed was guessed, and other inputs may have needed more. */
static void fit_scratch(struct run *run)
{
    struct slab *slab = &run->slab;
    for (uint32_t i = 0; !slab->fitted && i < run->plan->n_steps; i++)
        slab->scratch[i] = run->scratch[i].most;
    slab->fitted = true;
}

/* ---- The layout ------------------------------------------------------------------------------ */

/* A place of the host is a pointer, one of a device a handle and an offset. */
static struct kernel_place place_at(const struct slab_part *part, size_t offset, size_t size)
{
    if (offset == SIZE_MAX) /* nowhere */
        return (struct kernel_place){.data = NULL};
    if (part->layout.space == SPACE_HOST)
        return (struct kernel_place){.data = (char *)part->memory + offset, .size = size};
    return (struct kernel_place){.data = part->memory, .offset = offset, .size = size};
}

static struct kernel_place place_of(const struct run *run, uint32_t i)
{
    const struct slab_part *part = &run->slab.parts[run->plan->placed[i].space];
    struct kernel_place place = place_at(part, part->layout.offsets[i], part->layout.sizes[i]);
    if (part->layout.left[i])
        return place;
    while (run->plan->placed[i].back)
        i -= run->plan->placed[i].back;
    place.wanted = &run->slab.wanted[i];
    return place;
}

static void set_places(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->n_placed; i++) {
        const struct plan_placed *placed = &run->plan->placed[i];
        const struct kernel_place place = place_of(run, i);
        if (placed->type) {
            run->places[placed->output] = place;
        } else {
            run->scratch[placed->scratch].memory = place.data;
            run->scratch[placed->scratch].size = place.size;
        }
    }
}

static struct pool *pool_of(struct run *run, const struct slab_part *part)
{
    return part->layout.space == SPACE_HOST ? &run->pool : &run->device_pool;
}

/*
 * The old memory and what the pool keeps go first: what the one held the other holds from now on.
 */
static tssa_status *resize(struct run *run, struct slab_part *part, size_t size)
{
    struct device_stream *stream = run->streams[part->layout.space];
    if (size <= part->size && size >= (part->layout.thorough ? part->size : part->size / 2))
        return NULL;
    free_memory(part, stream);
    pool_clear(pool_of(run, part));
    if (size == 0)
        return NULL;
    part->memory = stream->context->device->allocate(stream, size);
    TRY_ALLOC(part->memory);
    part->size = size;
    return NULL;
}

static tssa_status *compute_layout(struct run *run, struct slab_part *part, bool thorough,
                                   size_t *size)
{
    part->layout.allocator = run->allocator;
    part->layout.thorough = thorough;
    part->layout.scratch = run->slab.scratch;
    part->layout.wanted = run->slab.wanted;
    part->layout.chunk = pool_chunk(pool_of(run, part));
    part->layout.room = part->size;
    return placement_compute(run->plan, run->slab.symbols, &part->layout, size);
}

static tssa_status *lay_out(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->n_spaces; i++) {
        struct slab_part *part = &run->slab.parts[i];
        size_t size;
        TRY(compute_layout(run, part, run->slab.thorough, &size));
        TRY(resize(run, part, size));
    }
    set_places(run);
    return NULL;
}

/* Sizes that need not come together, in this run, may be what is too much. */
static tssa_status *lay_out_inputs_only(struct run *run)
{
    const uint32_t first = run->plan->n_input_symbols, count = run->plan->n_symbols - first;
    forget(run->slab.symbols + first, count);
    forget(run->slab.most + first, count);
    forget_wanted(run);
    memset(run->slab.scratch, 0, run->plan->n_steps * sizeof *run->slab.scratch);
    return lay_out(run);
}

/* The runs before the layout that takes its time. */
bool slab_watches(const struct run *run)
{
    return run->slab.alike == RUNS_TO_TAKE_TIME - 1 && !run->slab.thorough;
}

static void forget_pooled(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->n_spaces; i++)
        memset(run->slab.parts[i].layout.pooled, 0,
               run->plan->n_steps * sizeof *run->slab.parts[i].layout.pooled);
}

tssa_status *slab_prepare(struct run *run)
{
    struct slab *slab = &run->slab;
    bool changed = !slab->placed;
    changed |= update_inputs(run);
    slab->fitted &= !changed;
    changed |= grow_others(run);
    changed |= grow_missed(run);
    changed |= shrink_others(run);
    if (changed)
        forget_pooled(run);
    slab->alike = changed || slab->early ? 0 : slab->alike + (slab->alike < RUNS_TO_TAKE_TIME);
    slab->early = false;
    const bool thorough = slab->alike == RUNS_TO_TAKE_TIME && !slab->thorough;
    if (!changed && !thorough)
        return NULL;
    if (thorough)
        fit_scratch(run);
    slab->thorough = thorough;
    slab->placed = false;
    slab->layouts++;
    tssa_status *status = lay_out(run);
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY) {
        tssa_status_free(status);
        status = lay_out_inputs_only(run);
    }
    slab->placed = !status;
    return status;
}

static tssa_status *lay_out_early(struct run *run)
{
    struct slab_part *part = &run->slab.parts[SPACE_HOST];
    size_t size;
    TRY(compute_layout(run, part, run->plan->n_placed <= MOST_PLACED, &size));
    if (size > MOST_READY)
        return NULL;
    TRY(resize(run, part, size));
    set_places(run);
    run->slab.placed = run->slab.early = true;
    run->slab.layouts++;
    if (part->memory)
        pages_bring(part->memory, part->size);
    return NULL;
}

bool slab_is_known(const struct plan *plan)
{
    return plan->n_spaces == 1 && plan->n_input_symbols == 0;
}

void slab_get_ready(struct run *run)
{
    if (slab_is_known(run->plan))
        tssa_status_free(lay_out_early(run)); /* the run's to report */
}

static bool lies_on_device(const struct run *run, const struct plan_leaving *leaving)
{
    return run->plan->placed[leaving->entry].space == SPACE_DEVICE;
}

static void offer(struct run *run, const struct plan_leaving *leaving, const struct value *given)
{
    struct kernel_place *place = &run->places[run->plan->placed[leaving->entry].output];
    if (given->kind != TSSA_KIND_TENSOR || run->outputs_there[leaving->exit])
        *place = (struct kernel_place){.data = NULL};
    else if (leaving->there)
        *place =
            (struct kernel_place){.data = given->tensor.data, .size = tensor_bytes(&given->tensor)};
    else
        *place = place_of(run, leaving->entry);
}

void slab_offer(struct run *run, const struct value *outputs)
{
    for (uint32_t i = 0; i < run->plan->n_leaving; i++) {
        const struct plan_leaving *leaving = &run->plan->leaving[i];
        if (!lies_on_device(run, leaving))
            offer(run, leaving, &outputs[leaving->exit]);
    }
}

bool slab_can_bind(const struct run *run, uint32_t exit, size_t size)
{
    const struct plan *plan = run->plan;
    bool any = false;
    for (uint32_t i = 0; i < plan->n_leaving; i++) {
        const struct plan_leaving *leaving = &plan->leaving[i];
        if (leaving->exit != exit || !leaving->there || !lies_on_device(run, leaving))
            continue;
        any = true;
        if (plan_type_size(plan, run->slab.symbols, plan->n_symbols,
                           plan->placed[leaving->entry].type) != size)
            return false;
    }
    return any;
}

void slab_bind(struct run *run, uint32_t exit, void *memory, size_t size)
{
    for (uint32_t i = 0; i < run->plan->n_leaving; i++) {
        const struct plan_leaving *leaving = &run->plan->leaving[i];
        if (leaving->exit == exit && leaving->there && lies_on_device(run, leaving))
            run->places[run->plan->placed[leaving->entry].output] =
                memory ? (struct kernel_place){.data = memory, .size = size}
                       : place_of(run, leaving->entry);
    }
}

void slab_take_turns(struct run *run, const struct step *loop)
{
    for (uint32_t i = 0; i < loop->n_turns; i++) {
        const uint32_t at = loop->turns[i];
        const struct plan_placed *placed = &run->plan->placed[at];
        const struct slab_part *part = &run->slab.parts[placed->space];
        struct kernel_place *place = &run->places[placed->output];
        if (!place->data) /* it is in the pool */
            continue;
        const size_t size = part->layout.sizes[at];
        const struct kernel_place first = place_of(run, at);
        const bool is_first = place->data == first.data && place->offset == first.offset;
        *place = is_first ? place_at(part, part->layout.offsets[at] + size, size) : first;
        place->wanted = first.wanted;
    }
}
