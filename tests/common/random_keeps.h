/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops, as text of the IR, that keep elements of a list where masks are true: Compress,
 * accesses by a mask and NonZero, of what is computed, read or broadcast there, by masks that are
 * computed or read; beside results that have all elements.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_KEEPS_H
#define TSSA_TESTS_COMMON_RANDOM_KEEPS_H

#include <stdint.h>

/* The same text for the same seed, to be freed. The list has A elements, or a number of them. */
char *random_keeps(uint64_t seed);

#endif
