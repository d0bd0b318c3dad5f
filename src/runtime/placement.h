/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory plan. Results whose size a run knows before it computes them are placed at offsets of one slab
 * per run, such that results whose lifetimes overlap never share bytes. Everything else (results that tell
 * a size, strings, values that leave their block or enter a sequence) comes from the pool.
 */
#ifndef TSSA_RUNTIME_PLACEMENT_H
#define TSSA_RUNTIME_PLACEMENT_H

#include "runtime/plan.h"

/* Fills plan->placed and plan->results. */
tssa_status *placement_analyse(struct plan *plan, struct arena *scratch);

/*
 * Offsets for one binding of plan->symbols (less than 0: not bound), one per plan->placed entry (SIZE_MAX:
 * not placed, because its size overflows or is not known), and the size of the slab.
 */
tssa_status *placement_compute(const struct plan *plan, const int64_t *symbols,
                               const tssa_allocator *allocator, size_t *offsets, size_t *sizes,
                               size_t *slab_size);

#endif
