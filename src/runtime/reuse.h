/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which results take the memory of a value that came before. One lies where an operand of its op
 * lay, as the op table (ir/memory.h) or the kernel allows, when the step is the last to read that
 * memory, under whatever name. And what an If's branches return as one result lies in one place:
 * only one of them runs. What a loop carries on lies where what it was given lay, if that is read
 * no more when the first iteration makes it.
 *
 * And which memory may be a part of what is joined (is_joined in device/kernel.h): that which lives
 * until the step that joins it, in the same block, and no longer.
 */
#ifndef TSSA_RUNTIME_REUSE_H
#define TSSA_RUNTIME_REUSE_H

#include "runtime/lifetime.h"

struct reuse {
    /*
     * Per value id: the result whose memory that of the value becomes, if both are placed; NULL: of
     * none. A step's result that comes later, or is returned by a branch that stands later.
     */
    const struct ir_value **next;
    /* Per plan->inputs: the value whose memory, all of it, is the operand, and may lie where that
     * belongs in result 0 of its step, if both are placed; NULL: none. Each value once. */
    const struct ir_value **parts;
    bool joins; /* there are any */
    /* Per value id: of what a Loop carries into its body, the result that it is updated to in each
     * iteration, in place where it is memory of the run; NULL: none. */
    const struct ir_value **updates;
};

/* In the scratch arena. */
tssa_status *reuse_find(const struct lifetimes *lifetimes, struct arena *scratch,
                        struct reuse *reuse);

#endif
