/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random element-wise fuse ops, as text of the IR: one op over a space of rank 0 to 8, of
 * operands of all element types that are broadcast into it in every way, and of every row of the op
 * table.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_FUSE_H
#define TSSA_TESTS_COMMON_RANDOM_FUSE_H

#include <stdint.h>

/* The same text for the same seed, to be freed. Its symbolic dims are A, B, ...; the last one may
 * be a number. */
char *random_fuse(uint64_t seed);
/* The same with accesses of operands and lookups in them, assigns into what was computed, and
 * Concats, and some axes of the space of one size. */
char *random_maps(uint64_t seed);

#endif
