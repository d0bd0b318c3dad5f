/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which results take the memory of a value that came before. One lies where an operand of its op
 * lay, as the op table (ir/memory.h) or the kernel allows, when the step is the last to read that
 * memory, under whatever name. And what an If's branches return as one result lies in one place:
 * only one of them runs. What a loop carries on lies where what it was given lay, if that is read
 * no more when the first iteration makes it.
 */
#ifndef TSSA_RUNTIME_REUSE_H
#define TSSA_RUNTIME_REUSE_H

#include "runtime/lifetime.h"

/*
 * next[id]: the result whose memory that of the value becomes, if both are placed; NULL: of none. A
 * step's result that comes later, or is returned by a branch that stands later. In the scratch
 * arena.
 */
tssa_status *reuse_find(const struct lifetimes *lifetimes, struct arena *scratch,
                        const struct ir_value ***next);

#endif
