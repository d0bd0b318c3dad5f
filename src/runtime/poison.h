/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For debugging: runs write over memory that the plan says is dead. That is the place of a result
 * and a step's scratch memory before the step runs, the place of a value after the last step that
 * may read it, and what goes back to the pool. What lies on something that is still in use, or is
 * read too late, then shows in the results: as NaN in floats, as -1 in integers.
 */
#ifndef TSSA_RUNTIME_POISON_H
#define TSSA_RUNTIME_POISON_H

#include "runtime/plan.h"

/*
 * Before the plan's first run, by who made it; TSSA_OUT_OF_MEMORY. Both places are written over of
 * what takes turns in a loop; not those of results that take the memory of a value, and not in a
 * space that is not the host's.
 */
tssa_status *poison_plan(struct plan *plan);

#endif
