/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan whose runs write rubbish over memory that the plan says is dead: that of a result and of a step's
 * scratch memory before the step runs, and that of a value after the last step that may read it. What lies on
 * something that is still in use, or is read too late, then shows in the bits.
 */
#ifndef TSSA_TESTS_POISON_H
#define TSSA_TESTS_POISON_H

#include "runtime/executor.h"

/* Both places of what takes turns in a loop, results that take the memory of an operand not. One thread. */
void poison_plan(struct plan *plan);
/* Before the plan is freed. */
void poison_forget(const struct plan *plan);
/* How many bytes were written over since the program began. */
uint64_t poison_bytes(void);

#endif
