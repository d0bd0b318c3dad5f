/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to compute all iterations of a loop at once, against the loop: in bytes that live at once,
 * and in time. Every size that only a run can tell is tried small and large, and what is chosen must hold
 * for all of them: never more than half as much memory again as the loop plus the budget, and never slower.
 */
#ifndef TSSA_PASSES_BATCH_COST_H
#define TSSA_PASSES_BATCH_COST_H

#include "ir/cost.h"
#include "passes/batch.h"
#include "passes/loops.h"

/* Of temporaries, where the pipeline says nothing else; and of a block, which is to stay in a cache. */
#define BATCH_BUDGET (INT64_C(32) << 20)
#define BATCH_BLOCK_BYTES (INT64_C(1) << 20)

enum batch_way {
    BATCH_ALL,    /* all iterations at once */
    BATCH_BLOCKS, /* a loop over blocks of iterations */
    BATCH_LEAVE   /* nothing is won, or something lost: each iteration does enough as it is */
};

struct batch_cost {
    enum batch_way way;
    bool
        known; /* all sizes are; else the figures are of those that speak most against all at once */
    double all, may; /* bytes that live at once, of all iterations; what they may be */
    double row;      /* the same of one iteration */
    double seconds_all, seconds_loop;
    /*
     * Of blocks: how many iterations. 0: not known; then so many bytes are to be in `total`, which is those
     * of all values that are made for all iterations, whether they live at once or not; `each` is those of
     * one more iteration, and may be NULL.
     */
    int64_t block, block_bytes;
    const struct dim *total, *each;
};

/* Seconds that the work takes, of one thread of an interpreter, while so many bytes live. */
double batch_cost_seconds(const struct cost_work *work, double live);

/*
 * batch->before is the loop, everything made for all iterations stands between batch->mark and it, and
 * results[] are what it leaves. Sets how it should be done.
 */
tssa_status *batch_cost_find(const struct batch *batch, const struct loop *loop,
                             struct ir_value *const *results, struct batch_cost *cost);

#endif
