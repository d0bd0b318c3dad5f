/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to compute all iterations of a loop at once, against the loop, in bytes that live
 * at once and in time: which of the two is better, or blocks of iterations.
 */
#ifndef TSSA_PASSES_LOOPS_BATCH_COST_H
#define TSSA_PASSES_LOOPS_BATCH_COST_H

#include "passes/loops/choice.h"
#include "passes/loops/strip_mine.h"

struct batch_cost {
    struct choice choice;
    struct block_size size; /* of blocks */
};

/*
 * batch->before is the loop, everything made for all iterations stands between batch->mark and it,
 * and results[] are what it leaves. Sets how it should be done; a loop that fits, all at once.
 */
tssa_status *batch_cost_find(const struct batch *batch, const struct loop *loop,
                             struct ir_value *const *results, struct batch_cost *cost);

#endif
