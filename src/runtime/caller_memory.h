/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a run is computed in memory that the caller may give for the graph's outputs. It is found
 * in two ways: results that are an output and nothing else, which need no place of the plan, and
 * places of the plan whose one value leaves the run as one output; of a device's memory the latter
 * alone. Used while a plan is made.
 */
#ifndef TSSA_RUNTIME_CALLER_MEMORY_H
#define TSSA_RUNTIME_CALLER_MEMORY_H

#include "runtime/plan.h"
#include "runtime/reuse.h"

/* Fills plan->results; given, per plan->outputs: whether it is one of them. */
tssa_status *caller_memory_results(struct plan *plan, const struct reuse *reuse, bool *given);
/* Fills plan->leaving, once plan->placed is there. */
tssa_status *caller_memory_leaving(struct plan *plan, struct arena *scratch);

#endif
