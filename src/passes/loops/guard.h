/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Loop that may make no iteration behind a branch that asks first. In that branch it makes one at
 * least (ir_loop_runs sees it), so that what could fail may be moved in front of it:
 *
 *     r = Loop(n, c, x) { .. }     ->     r = If(n > 0 and c) { Loop(n, true, x) { .. } } { x }
 */
#ifndef TSSA_PASSES_LOOPS_GUARD_H
#define TSSA_PASSES_LOOPS_GUARD_H

#include "passes/analysis/loops.h"

/* What the loop leaves without an iteration can be said. Not so of what is stacked from rows of a
 * size that only a run tells. */
bool guard_has_form(const struct loop *loop);

/*
 * The If before the loop, whose results are in the place of the loop's from now on; `trips` is what
 * loop_make_trips gave, or NULL for a loop that only its condition ends. Its else_branch is
 * complete, its then_branch an empty return: operand j is to be what result kept[j] of the loop
 * was; `kept` has room for all of them, and those that nobody uses are left out. The If is to be
 * inferred then.
 */
tssa_status *guard_create(const struct loop *loop, struct ir_value *trips, struct ir_op **branch,
                          uint32_t *kept);

/* All of it, for the loop as it is: it goes into the branch. */
tssa_status *guard_loop(const struct loop *loop);

#endif
