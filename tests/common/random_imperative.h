/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random imperative programs as text of the IR: views of every kind, views of views, writes through
 * them, nested loops and branches, rebinding. Arithmetic is exact or the same in every order.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_IMPERATIVE_H
#define TSSA_TESTS_COMMON_RANDOM_IMPERATIVE_H

#include <stdint.h>

#include "base/value.h"

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

#define RANDOM_IMPERATIVE_INPUTS (3 + RANDOM_IMPERATIVE_TENSORS)

/* Inputs of a program, which stay where they are. */
struct random_imperative_inputs {
    int64_t n, k;
    bool c;
    float data[RANDOM_IMPERATIVE_TENSORS][256];
    struct value values[RANDOM_IMPERATIVE_INPUTS];
    const struct value *pointers[RANDOM_IMPERATIVE_INPUTS];
};

/* For so many iterations. */
void random_imperative_inputs(struct random_imperative_inputs *in,
                              const struct random_imperative *program, int64_t n, bool c);

#endif
