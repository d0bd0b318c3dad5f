/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory plan. Results are placed at offsets of one slab per run, such that results whose
 * lifetimes overlap never share bytes. Everything else (values of unknown rank, strings, graph
 * outputs, values that enter a sequence) comes from the pool.
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
    bool thorough;    /* takes its time, and less memory */
    enum space space; /* of the entries that it is for */
    size_t alignment; /* of their places */
    const size_t *wanted;  /* per entry: bytes that it was too small for, or 0 */
    const size_t *scratch; /* per step: bytes of its scratch memory */
};

/*
 * The layout for one binding of plan->symbols (less than 0: not bound), and the size of the slab.
 * Entries without elements, those whose size overflows, and those whose size is not known lie
 * nowhere.
 */
tssa_status *placement_compute(const struct plan *plan, const int64_t *symbols,
                               const struct layout *layout, size_t *slab_size);

#endif
