/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two versions of a loop, where sizes that only a run can tell decide which of them is faster:
 * blocks of iterations where an iteration stacks a short row, for calls cost more than what they
 * do, and the loop where it stacks a long one, for blocks are copied once more (loop versioning).
 *
 *     r = Loop(n, _, x) { .. }   ->   r = If(size of a row < 2048 and n > 7)
 *                                           { blocks (strip_mine.h) } { Loop(n, _, x) { .. } }
 *
 * The same where all iterations at once are best but for very many of them, of which blocks take
 * less memory:
 *
 *     r = Loop(n, _, x) { .. }   ->   r = If(n < 65536) { all at once } { blocks }
 *
 * A pass that reads the file again learns from the If which sizes each of them is for
 * (branch_sizes.h).
 */
#ifndef TSSA_PASSES_LOOPS_VERSIONS_H
#define TSSA_PASSES_LOOPS_VERSIONS_H

#include "passes/loops/batch.h"
#include "passes/loops/choice.h"

/* The loop is one of two versions. */
bool versions_has(const struct ir_op *loop);

/* The file may grow by as much as a second body takes; what folding leaves of that is the bound. */
bool versions_fit(const struct pass_context *pass, const struct loop *loop);

/* Whether blocks pay, before the loop, where the batch stands; *question is NULL where no value
 * tells the sizes. */
tssa_status *versions_ask(struct batch *batch, const struct loop *loop,
                          const struct choice_rows *rows, struct ir_value **question);

/*
 * Puts what was made behind `begun` (NULL: all that stands before the loop), which leaves
 * `results`, and the loop into the branches. The loop is marked as kept; `trips` is the number of
 * its iterations.
 */
tssa_status *versions_create(struct pass_context *pass, const struct loop *loop,
                             struct ir_value *question, struct ir_value *trips,
                             const struct ir_op *begun, struct ir_value *const *results);

/* All iterations at once, and blocks of them: both stand before the loop. */
struct versions_few {
    const struct ir_op *begun,
        *last; /* all at once: what stands behind `begun` (or NULL), up to `last` */
    struct ir_value *const *at_once,
        *const *in_blocks; /* what they leave, for each result of the loop */
    bool some; /* without an iteration all at once could fail: then it is a matter of blocks */
};

/* Puts them into the branches of a question for the number of iterations, that of the batch. The
 * loop goes. */
tssa_status *versions_split(struct batch *batch, const struct loop *loop,
                            const struct versions_few *few);

#endif
