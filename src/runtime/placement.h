/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory plan. Results are placed at offsets of one slab per run, such that results whose
 * lifetimes overlap never share bytes. Everything else (values of unknown rank, strings, graph
 * outputs, values that enter a sequence) comes from the pool.
 *
 * What is joined (Concat) is computed where it belongs in the whole, if what the inputs' symbols
 * say tells all sizes, nobody else reads it later, and no step needs more memory than without: the
 * whole is in use from its first part on. Else it is copied there (runtime/joined.c).
 */
#ifndef TSSA_RUNTIME_PLACEMENT_H
#define TSSA_RUNTIME_PLACEMENT_H

#include "runtime/plan.h"

/* Fills plan->placed and plan->results. */
tssa_status *placement_analyse(struct plan *plan, struct arena *scratch);

/* Where the entries of plan->placed lie. */
struct layout {
    const tssa_allocator *allocator; /* for what is needed on the way */
    size_t *offsets;                 /* per entry; SIZE_MAX: nowhere, or in another space */
    size_t *sizes;                   /* per entry; SIZE_MAX: not known */
    size_t *live;     /* per step, for the end, and one more: bytes of all that is in use then */
    uint32_t *left;   /* per entry: not 0: it lies nowhere, and is left to the pool (left.c) */
    size_t *pooled;   /* per step: bytes of the pool in use then, at most, of the watched runs */
    size_t chunk;     /* bytes that the pool holds at most */
    bool thorough;    /* takes its time, and less memory */
    size_t room;      /* bytes of the slab that is there: what would fit in them is made to fit */
    enum space space; /* of the entries that it is for */
    size_t alignment; /* of their places */
    const size_t *wanted;  /* per entry: bytes that it was too small for, or 0 */
    const size_t *scratch; /* per step: bytes of its scratch memory */
    /*
     * Where the plan has parts; else NULL. Per part: bytes from where the place of `tops` begins,
     * SIZE_MAX: it has a place of its own. Per entry: the one in whose place it lies, mostly
     * itself, and the first step in which that is in use.
     */
    size_t *begins;
    uint32_t *tops, *firsts;
};

/*
 * The layout for one binding of plan->symbols (less than 0: not bound), and the size of the slab.
 * Entries without elements, those whose size overflows, and those whose size is not known lie
 * nowhere.
 */
tssa_status *placement_compute(const struct plan *plan, const int64_t *symbols,
                               const struct layout *layout, size_t *slab_size);

/* ---- Between layout.c, joined.c and left.c --------------------------------------------------- */

/* Bytes that an entry without `back` takes of the slab, if it has a place of its own. */
static inline size_t placement_room(const struct plan *plan, const struct layout *layout,
                                    uint32_t entry)
{
    return layout->sizes[entry] * (plan->placed[entry].turns ? 2 : 1);
}
/* An entry with memory of its own, in the space that the layout is for. */
bool placement_needs_room(const struct plan *plan, const struct layout *layout, uint32_t entry);
/* Decides what lies in the place of what. All the rest but offsets is there, of entries on their
 * own; `most`: the most of `live`. */
void placement_join(const struct plan *plan, const int64_t *symbols, const struct layout *layout,
                    size_t most);
/* Decides what is left to the pool. All the rest but offsets is there; `pooled` is changed. */
void placement_leave(const struct plan *plan, const struct layout *layout);

#endif
