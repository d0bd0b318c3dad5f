/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where results lie in the slab: see placement.h. They are laid out in the order in which they are
 * computed, each in the smallest room that is free then. When there is time, and that leaves more
 * than a little unused, those of the step that needs most are placed first instead, and then the
 * largest, each in the smallest gap that is free all its life; and some more orders are tried.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/placement.h"

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Of an entry with dims that shrink where others grow, the most of all symbols tells too little. */
static size_t placed_size(const struct plan *plan, const int64_t *symbols,
                          const struct layout *layout, uint32_t i)
{
    const struct plan_placed *placed = &plan->placed[i];
    const size_t alignment = layout->alignment;
    size_t bytes = placed->type ? plan_type_size(plan, symbols, plan->n_symbols, placed->type)
                                : layout->scratch[placed->scratch];
    if (bytes > PTRDIFF_MAX / 2 - alignment) /* there may be two of it */
        return SIZE_MAX;
    if (layout->wanted[i] > bytes)
        bytes = layout->wanted[i];
    return (bytes + alignment - 1) / alignment * alignment;
}

/* An entry with memory of its own, or a part. */
static bool takes_room(const struct plan *plan, const struct layout *layout, uint32_t i)
{
    return !plan->placed[i].back && plan->placed[i].space == layout->space &&
           layout->sizes[i] != SIZE_MAX && layout->sizes[i] != 0 && !layout->left[i];
}

/* The entry in whose place it lies. */
static uint32_t top_of(const struct plan *plan, const struct layout *layout, uint32_t i)
{
    return plan->n_parts ? layout->tops[i] : i;
}

static uint32_t first_of(const struct plan *plan, const struct layout *layout, uint32_t i)
{
    return plan->n_parts ? layout->firsts[i] : plan->placed[i].first;
}

bool placement_needs_room(const struct plan *plan, const struct layout *layout, uint32_t i)
{
    return takes_room(plan, layout, i) && top_of(plan, layout, i) == i;
}

/* ---- In the order of execution --------------------------------------------------------------- */

/* A stretch of the slab: in use until step `last`, or free (last == FREE). Neighbours are kept in
 * order of address, so that free stretches merge. */
#define FREE UINT32_MAX
struct stretch {
    size_t offset, size;
    uint32_t last;
};
typedef VEC(struct stretch) stretches;

/* Marks what ended before `now` as free and merges free neighbours. */
static void retire(stretches *list, uint32_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct stretch s = list->data[i];
        if (s.last < now)
            s.last = FREE;
        if (s.last == FREE && kept && list->data[kept - 1].last == FREE)
            list->data[kept - 1].size += s.size;
        else
            list->data[kept++] = s;
    }
    list->count = kept;
}

/* The smallest free stretch that fits; the last one may grow; else a new one at the end. */
static bool take(stretches *list, size_t size, uint32_t last, size_t *offset)
{
    size_t best = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const struct stretch *s = &list->data[i];
        if (s->last == FREE && s->size >= size &&
            (best == list->count || s->size < list->data[best].size))
            best = i;
    }
    if (!vec_reserve(list, 1))
        return false;
    if (best == list->count) {
        const struct stretch *end = list->count ? &list->data[list->count - 1] : NULL;
        bool grows = end && end->last == FREE;
        size_t at = grows ? end->offset : end ? end->offset + end->size : 0, top;
        if (!size_add(at, size, &top) || top > PTRDIFF_MAX)
            return false;
        if (grows)
            list->count--;
        assert(list->data); /* reserved above */
        list->data[list->count++] = (struct stretch){at, size, last};
        *offset = at;
        return true;
    }
    struct stretch *s = &list->data[best];
    struct stretch rest = {s->offset + size, s->size - size, FREE};
    *offset = s->offset;
    s->size = size;
    s->last = last;
    if (rest.size) {
        memmove(s + 2, s + 1, (list->count - best - 1) * sizeof *s);
        s[1] = rest;
        list->count++;
    }
    return true;
}

static tssa_status *place_in_order(const struct plan *plan, const struct layout *layout)
{
    stretches list = VEC_INIT(layout->allocator);
    uint32_t now = 0;
    tssa_status *status = NULL;
    for (uint32_t i = 0; !status && i < plan->n_placed; i++) {
        const uint32_t first = plan->placed[i].first, top = top_of(plan, layout, i);
        if (!takes_room(plan, layout, i) || layout->offsets[top] != SIZE_MAX)
            continue; /* with its first part */
        if (first != now)
            retire(&list, now = first);
        if (!take(&list, placement_room(plan, layout, top), plan->placed[top].last,
                  &layout->offsets[top]))
            status = status_out_of_memory();
    }
    vec_free(&list);
    return status;
}

/* ---- What is needed most first --------------------------------------------------------------- */

/* Everything is compared with everything: a large plan gets fewer tries, one with more is left as
 * it is. */
#define MOST_COMPARED 4096
#define MOST_TRIES 16

/* Comparisons that take no longer than the system takes to bring so many bytes. */
static size_t worth_comparing(size_t bytes)
{
    return bytes / 4;
}

/* For n pieces in a layout of this size. */
static size_t count_tries(const struct layout *layout, size_t n, size_t size)
{
    const size_t most =
        layout->thorough ? (size_t)MOST_COMPARED * MOST_COMPARED : worth_comparing(size);
    const size_t fit = most / (n * n + 1);
    if (fit < 1)
        return layout->thorough ? 1 : 0;
    return fit < MOST_TRIES ? fit : MOST_TRIES;
}

struct piece {
    size_t room, offset;
    uint32_t first, last, entry;
    bool at_most; /* in use during the step that needs most */
};

static int by_need(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->at_most != y->at_most)
        return x->at_most ? -1 : 1;
    if (x->room != y->room)
        return x->room > y->room ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* The smallest gap between those of `placed`, by ascending offset, that are in use when the piece
 * is. */
static size_t find_gap(const struct piece *placed, size_t count, const struct piece *piece)
{
    size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct piece *other = &placed[i];
        if (other->last < piece->first || piece->last < other->first)
            continue;
        if (other->offset > end && other->offset - end >= piece->room &&
            other->offset - end < best_size) {
            best = end;
            best_size = other->offset - end;
        }
        if (other->offset + other->room > end)
            end = other->offset + other->room;
    }
    return best == SIZE_MAX ? end : best;
}

static void insert_by_offset(struct piece *placed, size_t count, struct piece piece)
{
    size_t at = count;
    for (; at > 0 && placed[at - 1].offset > piece.offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = piece;
}

static uint32_t neediest_step(const struct plan *plan, const struct layout *layout)
{
    uint32_t step = 0;
    for (uint32_t s = 1; s < plan->n_steps; s++)
        if (layout->live[s] > layout->live[step])
            step = s;
    return step;
}

static size_t count_pieces(const struct plan *plan, const struct layout *layout)
{
    size_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        n += placement_needs_room(plan, layout, i);
    return n;
}

static void collect_pieces(const struct plan *plan, const struct layout *layout,
                           struct piece *pieces)
{
    const uint32_t step = neediest_step(plan, layout);
    size_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (placement_needs_room(plan, layout, i))
            pieces[n++] = (struct piece){.room = placement_room(plan, layout, i),
                                         .first = first_of(plan, layout, i),
                                         .last = plan->placed[i].last,
                                         .entry = i};
    for (size_t i = 0; i < n; i++)
        pieces[i].at_most = pieces[i].first <= step && step <= pieces[i].last;
}

/* Places the pieces in their order, and returns the end of the last one; `room` is for as many. */
static size_t place_pieces(struct piece *pieces, size_t n, struct piece *room)
{
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        pieces[i].offset = find_gap(room, i, &pieces[i]);
        if (pieces[i].offset + pieces[i].room > end)
            end = pieces[i].offset + pieces[i].room;
        insert_by_offset(room, i, pieces[i]);
    }
    return end;
}

/* What came to lie at the end comes first in the next try. */
static void promote(struct piece *pieces, size_t n, size_t end)
{
    size_t at = 0;
    while (at + 1 < n && pieces[at].offset + pieces[at].room != end)
        at++;
    struct piece piece = pieces[at];
    memmove(pieces + 1, pieces, at * sizeof *pieces);
    pieces[0] = piece;
}

/* Keeps what is there unless it finds something smaller than `size`, that of the layout. */
static tssa_status *place_by_need(const struct plan *plan, const struct layout *layout, size_t size,
                                  size_t enough)
{
    const size_t n = count_pieces(plan, layout);
    const size_t most = n > MOST_COMPARED ? 0 : count_tries(layout, n, size);
    if (most == 0)
        return NULL;
    struct piece *pieces = allocator_calloc(layout->allocator, 2 * n + 1, sizeof *pieces);
    TRY_ALLOC(pieces);
    collect_pieces(plan, layout, pieces);
    qsort(pieces, n, sizeof *pieces, by_need);
    for (size_t tries = 0; tries < most && size > enough; tries++) {
        const size_t end = place_pieces(pieces, n, pieces + n);
        for (size_t i = 0; end < size && i < n; i++)
            layout->offsets[pieces[i].entry] = pieces[i].offset;
        size = end < size ? end : size;
        promote(pieces, n, end);
    }
    allocator_free(layout->allocator, pieces);
    return NULL;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* The end of the last one. */
static size_t end_of(const struct plan *plan, const struct layout *layout)
{
    size_t end = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (placement_needs_room(plan, layout, i) &&
            layout->offsets[i] + placement_room(plan, layout, i) > end)
            end = layout->offsets[i] + placement_room(plan, layout, i);
    return end;
}

static void compute_sizes(const struct plan *plan, const int64_t *symbols,
                          const struct layout *layout)
{
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        const uint32_t back = plan->placed[i].back;
        layout->sizes[i] = back ? layout->sizes[i - back] : placed_size(plan, symbols, layout, i);
        layout->offsets[i] = SIZE_MAX;
        layout->left[i] = 0;
    }
    for (uint32_t i = 0; plan->n_parts && i < plan->n_placed; i++) {
        layout->tops[i] = i;
        layout->firsts[i] = plan->placed[i].first;
    }
}

/* live[s]: of all that is in use during step s. Returns the most of them. */
static size_t compute_live(const struct plan *plan, const struct layout *layout)
{
    size_t now = 0, most = 0, *live = layout->live; /* first: changes, modulo 2^64 */
    memset(live, 0, (plan->n_steps + 2u) * sizeof *live);
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (placement_needs_room(plan, layout, i)) {
            live[first_of(plan, layout, i)] += placement_room(plan, layout, i);
            live[plan->placed[i].last + 1] -= placement_room(plan, layout, i);
        }
    for (uint32_t s = 0; s <= plan->n_steps; s++) {
        live[s] = now += live[s];
        most = now > most ? now : most;
    }
    return most;
}

/* Of entries that lie in the place of others. */
static void finish_places(const struct plan *plan, const struct layout *layout)
{
    for (uint32_t p = 0; p < plan->n_parts; p++) {
        const uint32_t entry = plan->parts[p].entry;
        if (layout->begins[p] != SIZE_MAX)
            layout->offsets[entry] = layout->offsets[layout->tops[entry]] + layout->begins[p];
    }
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        const uint32_t back = plan->placed[i].back;
        layout->offsets[i] = layout->offsets[i - back];
        layout->sizes[i] = layout->sizes[i - back];
        layout->left[i] = layout->left[i - back];
    }
}

tssa_status *placement_compute(const struct plan *plan, const int64_t *symbols,
                               const struct layout *layout, size_t *slab_size)
{
    compute_sizes(plan, symbols, layout);
    size_t live = compute_live(plan, layout);
    if (plan->n_parts) {
        placement_join(plan, symbols, layout, live);
        live = compute_live(plan, layout);
    }
    if (layout->thorough) {
        placement_leave(plan, layout);
        live = compute_live(plan, layout);
    }
    TRY(place_in_order(plan, layout));
    *slab_size = end_of(plan, layout);
    if (layout->thorough || (*slab_size > layout->room && live <= layout->room)) {
        /* what wastes little, or fits in what is there */
        const size_t enough = layout->thorough ? live + live / 32 : layout->room;
        TRY(place_by_need(plan, layout, *slab_size, enough));
        *slab_size = end_of(plan, layout);
    }
    finish_places(plan, layout);
    return NULL;
}
