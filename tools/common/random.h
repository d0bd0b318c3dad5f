/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random tensors, the same on every machine: xoshiro256** (Blackman and Vigna, 2018) and
 * nothing but exactly rounded arithmetic.
 */
#ifndef TSSA_TOOLS_RANDOM_H
#define TSSA_TOOLS_RANDOM_H

#include <stdint.h>

#include "base/value.h"

struct random {
    uint64_t state[4];
};

/* Streams of one seed are independent. */
void random_seed(struct random *random, uint64_t seed, uint64_t stream);
uint64_t random_next(struct random *random);

#define RANDOM_INTEGERS 4

enum random_floats {
    RANDOM_NORMAL, /* near to normal, mean 0 and deviation 1 */
    RANDOM_UNIT,   /* from 0 to 1: scores, colours */
    RANDOM_WIDE,   /* near to normal, deviation 100: coordinates */
    RANDOM_ZEROS   /* as RANDOM_NORMAL, but half of them are zeros, of either sign */
};

/* All zero: what random_fill gives. */
struct random_style {
    enum random_floats floats;
    int64_t integers; /* integers are below this; 0: RANDOM_INTEGERS */
    /* an integer that is a tensor by itself, a trip count, say, is from half of this to this; 0:
     * as others */
    int64_t single;
};

/*
 * Fills a tensor. Floats are near to normal, mean 0 and deviation 1 (the sum of twelve uniform
 * numbers, so never beyond 6); integers are 0 to 3, which many a model takes as indices; strings
 * are "s0" to "s3".
 */
void random_fill(struct random *random, struct tensor *tensor);
void random_fill_style(struct random *random, const struct random_style *style,
                       struct tensor *tensor);

#endif
