/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the caller's on the device that a recording is bound to (recorded.h): it reads inputs
 * and writes outputs there, where they would be copied otherwise. Arguments of a run are its
 * inputs, and behind them its outputs.
 *
 * Who calls again mostly has an argument at the same address, or in turn at a few. So an address is
 * bound that the argument had in one of its latest runs; one that is new may never come again, and
 * is copied. An output is bound if the device makes it in a place that nothing else may be in
 * (struct plan_leaving), and if it overlaps nothing else of the caller's there. What is not aligned
 * as the device's libraries want it is copied, too, so that the same code computes it.
 */
#ifndef TSSA_RUNTIME_BOUND_H
#define TSSA_RUNTIME_BOUND_H

#include "runtime/executor.h"

/* Of an argument. */
struct bound {
    void *memory; /* NULL: it is copied, or the device does not want it */
    size_t size;
};

/* The latest addresses of an argument, the last one first; NULL: none. */
#define BOUND_SEEN 4
struct bound_seen {
    void *memory[BOUND_SEEN];
};

uint32_t bound_arguments(const struct run *run);
/* What a recording for the run should be bound to, per argument; and notes in `seen` what it has.
 */
void bound_find(const struct run *run, struct bound_seen *seen, struct bound *wanted);
/* Has the run, of the shapes that the recording is of, all that is bound where it is bound? */
bool bound_fits(const struct run *run, const struct bound *bound);
/* Is all bound that it has on the device? */
bool bound_is_all(const struct run *run, const struct bound *bound);
/* How many arguments are bound. */
uint32_t bound_count(const struct run *run, const struct bound *bound);
/* Is all bound of the one that is wanted? Both fit the run. */
bool bound_has_all(const struct run *run, const struct bound *bound, const struct bound *wanted);
/* While a recording is made: what the device makes of outputs that are bound is made there. */
void bound_begin(struct run *run, const struct bound *bound);
void bound_end(struct run *run, const struct bound *bound);

#endif
