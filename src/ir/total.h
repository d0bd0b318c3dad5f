/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ops cannot fail: what may be computed where the model would not have computed it (before a
 * loop that may not run, before a branch that may not be taken). Memory aside, which is never
 * certain.
 */
#ifndef TSSA_IR_TOTAL_H
#define TSSA_IR_TOTAL_H

#include "ir/ir.h"

/*
 * The op is pure and succeeds in every run, as far as types and known elements prove it: false when
 * in doubt. Also false for what is no error in tssa but in other runtimes (integers divided by
 * zero), and for ops with blocks, but for an If with nothing but such ops in its branches.
 */
bool ir_op_is_total(const struct ir_op *op);

/* The loop (Loop, Scan) makes one iteration at least, whenever it is come to: it stands in the
 * then_branch of an If that asks whether its trip count is positive, say. */
bool ir_loop_runs(const struct ir_op *op);

#endif
