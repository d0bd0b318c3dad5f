/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that the slab leaves to the pool. Both are held all the time, but each needs its most at
 * a time of its own: what the slab needs most of all goes, the largest first, if possible where the
 * pool needs no more for it than at another time. That costs a buffer from the pool in each
 * iteration, so it is done for more than a little only, when there is time, and for runs whose use
 * of the pool was watched.
 */
#include "runtime/placement.h"

/* Memory comes in pages: for less than one, no buffer of the pool is asked for. */
#define PAGE ((size_t)4096)

struct leaving {
    const struct plan *plan;
    const struct layout *layout;
    uint32_t step;       /* in which the slab needs most */
    size_t chunk;        /* what the pool needs most */
    size_t needed;       /* of slab and pool together, at most: the same before and after */
    uint32_t left, best; /* so many are; so many were when the least was held */
    size_t least;
};

static size_t held(const struct leaving *l)
{
    return l->layout->live[l->step] + l->chunk;
}

static void find_step(struct leaving *l)
{
    const size_t *live = l->layout->live;
    for (uint32_t s = 0; s < l->plan->n_steps; s++)
        if (live[s] > live[l->step])
            l->step = s;
}

static void begin(struct leaving *l)
{
    const struct layout *layout = l->layout;
    for (uint32_t s = 0; s < l->plan->n_steps; s++) {
        const size_t sum = layout->live[s] + layout->pooled[s];
        l->needed = sum > l->needed ? sum : l->needed;
        l->chunk = layout->pooled[s] > l->chunk ? layout->pooled[s] : l->chunk;
    }
    /* What leaves the run is not in the chunk. */
    l->chunk = l->chunk < layout->chunk ? l->chunk : layout->chunk;
    find_step(l);
    l->least = held(l);
}

/* What the pool would need most while the entry is in use. */
static size_t chunk_with(const struct leaving *l, uint32_t entry)
{
    const struct plan_placed *placed = &l->plan->placed[entry];
    size_t most = 0;
    for (uint32_t s = placed->first; s <= placed->last && s < l->plan->n_steps; s++)
        most = l->layout->pooled[s] > most ? l->layout->pooled[s] : most;
    return most + placement_room(l->plan, l->layout, entry);
}

static bool has_parts(const struct leaving *l, uint32_t entry)
{
    for (uint32_t p = 0; p < l->plan->n_parts; p++)
        if (l->plan->parts[p].entry != entry && l->layout->tops[l->plan->parts[p].entry] == entry)
            return true;
    return false;
}

static bool may_leave(const struct leaving *l, uint32_t entry)
{
    const struct plan_placed *placed = &l->plan->placed[entry];
    return placed->type && placed->first <= l->step && l->step <= placed->last &&
           placement_needs_room(l->plan, l->layout, entry) && !has_parts(l, entry);
}

/* The largest one that needs no larger chunk, or of all; n_placed: none may leave. */
static uint32_t find_largest(const struct leaving *l)
{
    uint32_t best = l->plan->n_placed;
    size_t most = 0;
    bool fits = false;
    for (uint32_t i = 0; i < l->plan->n_placed; i++) {
        if (!may_leave(l, i))
            continue;
        const size_t room = placement_room(l->plan, l->layout, i);
        const bool fit = chunk_with(l, i) <= l->chunk;
        if (fit < fits || (fit == fits && room <= most))
            continue;
        best = i;
        most = room;
        fits = fit;
    }
    return best;
}

static void leave(struct leaving *l, uint32_t entry)
{
    const struct plan_placed *placed = &l->plan->placed[entry];
    const size_t room = placement_room(l->plan, l->layout, entry), chunk = chunk_with(l, entry);
    for (uint32_t s = placed->first; s <= placed->last && s < l->plan->n_steps; s++) {
        l->layout->live[s] -= room;
        l->layout->pooled[s] += room;
    }
    l->chunk = chunk > l->chunk ? chunk : l->chunk;
    l->layout->left[entry] = ++l->left;
    find_step(l);
    if (held(l) < l->least) {
        l->least = held(l);
        l->best = l->left;
    }
}

static bool is_much(const struct leaving *l)
{
    return l->least > l->needed + l->needed / 32 + PAGE;
}

void placement_leave(const struct plan *plan, const struct layout *layout)
{
    struct leaving l = {.plan = plan, .layout = layout};
    uint32_t entry = 0;
    for (begin(&l); is_much(&l) && entry < plan->n_placed;)
        if ((entry = find_largest(&l)) < plan->n_placed)
            leave(&l, entry);
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (layout->left[i] > l.best)
            layout->left[i] = 0;
}
