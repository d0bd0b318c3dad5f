/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch memory of a step: what it needs on its way, and gives back before it ends. How much that
 * is, only the step's code knows. So it is learnt: what is not there comes from the pool, and is
 * remembered as the most that was needed at one time, for whoever lays out memory between runs.
 *
 * Buffers are stacked in it. One that was released is found free when the next is taken, and all
 * are when the step runs again. Belongs to one run at a time.
 */
#ifndef TSSA_BASE_SCRATCH_H
#define TSSA_BASE_SCRATCH_H

#include "base/pool.h"

/* Per step; lives as long as the run state. */
struct step_scratch {
    void *memory; /* aligned as tensors are */
    size_t size;
    size_t most;  /* bytes that were needed at one time, since somebody set it to 0 */
    bool *missed; /* is set when there was not enough; NULL: it has no memory, nor will have */
};

struct scratch_block;

/* Of one execution of a step; zeroed at its start. */
struct scratch_use {
    struct scratch_block *top;
    bool pooled;       /* some came from the pool */
    size_t pool_bytes; /* in use there before */
};

/* `size` bytes, released with buffer_release before the step ends; NULL when memory runs out.
 * `scratch` may be NULL: from the pool. */
struct buffer *scratch_take(struct step_scratch *scratch, struct scratch_use *use,
                            struct pool *pool, size_t size);
/* Notes what a buffer of this size will need on its own. NULL: nobody asks. */
void scratch_expect(struct step_scratch *scratch, size_t size);

#endif
