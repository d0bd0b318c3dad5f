/* SPDX-License-Identifier: Apache-2.0 */
/* An If that takes the place of a loop: in front of it, one branch for what stands there, one for
 * another way. */
#ifndef TSSA_PASSES_LOOPS_BRANCH_H
#define TSSA_PASSES_LOOPS_BRANCH_H

#include "passes/analysis/loops.h"

/* Gives an If both branches, empty returns of n values that are to be set. */
tssa_status *branch_make_blocks(struct ir_op *op, uint32_t n);

/*
 * The If before the loop, whose results are in the place of the loop's from now on, but for those
 * that nobody uses: result j is for result kept[j] of the loop; `kept` has room for all of them.
 * Both branches are empty returns, whose operands are to be set; then the If is to be inferred.
 * blocks[0] is the then_branch.
 */
tssa_status *branch_create(const struct loop *loop, struct ir_value *question,
                           struct ir_op **branch, uint32_t *kept);

/* Moves the ops behind `begun` (NULL: all) up to `end`, of one block, into one of the branches,
 * which returns results[kept[j]]. */
void branch_fill(struct ir_op *branch, uint32_t block, const struct ir_op *begun,
                 const struct ir_op *end, struct ir_value *const *results, const uint32_t *kept);

#endif
