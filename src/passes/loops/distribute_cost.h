/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to run a loop as several, one after the other, against the loop as it is. */
#ifndef TSSA_PASSES_LOOPS_DISTRIBUTE_COST_H
#define TSSA_PASSES_LOOPS_DISTRIBUTE_COST_H

#include "passes/analysis/recurrence.h"
#include "passes/loops/choice.h"
#include "passes/loops/strip_mine.h"

struct split {
    const struct pass_context *pass;
    const struct loop *loop;
    const struct recurrences *found;
    const uint32_t *stage; /* by component: the loop that it goes to */
    uint32_t n_stages;
    /* the last loop only writes, and coalesce takes it on: what it takes is not known here */
    bool writes;
};

struct split_cost {
    /* CHOICE_ALL: whole loops; CHOICE_BLOCKS: loops for a block, in a loop over blocks */
    struct choice choice;
    struct block_size size; /* of blocks; `each` is what they stack in an iteration */
};

tssa_status *split_cost_find(const struct split *split, struct split_cost *cost);

#endif
