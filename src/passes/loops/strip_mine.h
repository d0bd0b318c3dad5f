/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop all of whose iterations at once would need too much memory is strip-mined (Loveman, 1977):
 * it becomes a Loop over blocks of iterations, each of which is small enough for a cache.
 *
 *     y, r = Loop(n, _, x) { (i, c, t): ... return(c, t', row) }
 *
 *     y, R = Loop(ceil(n / b), _, x) { (j, c, t): iterations j * b up to min((j + 1) * b, n)
 *                                                 return(c, t', rows of a whole block) }
 *     r = Reshape(R, [-1, ...])[0 : n]
 *
 * The last block is as long as what remains, so that nothing is computed twice. Scan outputs must
 * have one shape: the rows of a last block that is shorter are followed by copies of its last one,
 * which are cut off. How long blocks are is a number where an iteration has a known size, and is
 * computed from shapes where not. The new Loop is marked (in_blocks), so that passes leave it as it
 * is.
 */
#ifndef TSSA_PASSES_LOOPS_STRIP_MINE_H
#define TSSA_PASSES_LOOPS_STRIP_MINE_H

#include "passes/analysis/loops.h"
#include "passes/loops/batch.h"

/*
 * How many iterations a block has. 0: not known; then so many bytes are to be in `total`, which is
 * those of all values that are made for all iterations, whether they live at once or not; `each` is
 * those of one more iteration, and may be NULL.
 */
struct block_size {
    int64_t iterations, bytes;
    const struct dim *total, *each;
};

struct strip {
    struct pass_context *pass;
    struct loop loop;
    struct ir_cloner *shared, *stacked; /* as for batch_init */
    /*
     * Makes the iterations of a block before batch->before, which is the return of `block`, whose
     * parameters from the third on are what they are given: *done, and what stands for the results
     * of the loop.
     */
    tssa_status *(*compute)(void *user, struct ir_block *block, struct batch *batch,
                            struct ir_value **results, bool *done);
    void *user;
};

/* All before the loop, where the batch stands; it is taken back with the batch when not *done. */
tssa_status *strip_mine(const struct strip *strip, struct batch *batch,
                        const struct block_size *size, struct ir_value **results, bool *done);

#endif
