/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops that are a loop, as text of the IR: a Loop or Scan of which an iteration is one
 * fuse op of element-wise ops and accesses, of what is carried, of what is the same in all
 * iterations, of what each reads by its number, and of that number.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_LOOPS_H
#define TSSA_TESTS_COMMON_RANDOM_LOOPS_H

#include <stdint.h>

/* The same text for the same seed, to be freed. Its symbolic dims are A, B, ..., and H, as many
 * iterations as there are, or more. */
char *random_loops(uint64_t seed);

#endif
