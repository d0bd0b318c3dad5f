/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the first run of a plan would make of shapes that are known before it: primitives of a
 * library, and constant weights as these want them (kernel.get_ready).
 */
#ifndef TSSA_RUNTIME_READY_H
#define TSSA_RUNTIME_READY_H

#include "runtime/plan.h"

/*
 * Goes through the steps in the order of runs, those of all subgraphs included, and stops after so
 * many nanoseconds: the rest is made by the first run, which computes the same. What scratch memory
 * the kernels expect to need it notes in plan->scratch. No threads are started, so that a process
 * may be forked until it has run something. Before the first run, by one thread. Errors: out of
 * memory.
 */
tssa_status *plan_get_ready(struct plan *plan, uint64_t nanoseconds);

#endif
