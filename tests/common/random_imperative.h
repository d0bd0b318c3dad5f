/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random imperative programs as text of the IR: views of every kind, views of views, writes through
 * them, nested loops and branches, rebinding. Arithmetic is exact or the same in every order.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_IMPERATIVE_H
#define TSSA_TESTS_COMMON_RANDOM_IMPERATIVE_H

#include <stdint.h>

#define RANDOM_IMPERATIVE_TENSORS 3
#define RANDOM_IMPERATIVE_MAX_RANK 4

/* Inputs: %n: i64[], a number of iterations; %c: bool[]; %k: i64[], 0 or 1; and f32 tensors. */
struct random_imperative {
    char *text; /* to be freed */
    int rank[RANDOM_IMPERATIVE_TENSORS];
    int64_t dims[RANDOM_IMPERATIVE_TENSORS][RANDOM_IMPERATIVE_MAX_RANK];
};

/* The same for the same seed. */
struct random_imperative random_imperative(uint64_t seed);

#endif
