/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random arithmetic on integers of every type, next to where they wrap around, as text of the IR:
 * of constants, sizes, what only a run knows and, in a loop, the iteration's number and a counter
 * that is carried.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_INTEGERS_H
#define TSSA_TESTS_COMMON_RANDOM_INTEGERS_H

#include <stdint.h>

#define RANDOM_INTEGERS_MAX_OUTPUTS 30

/*
 * The same text for the same seed, to be freed. Inputs: %z: f32[N, M] and %s: i64[]. Outputs: most
 * of what is computed, in scan outputs where that is in the body of the loop, which is the only
 * one.
 */
char *random_integers(uint64_t seed);

#endif
