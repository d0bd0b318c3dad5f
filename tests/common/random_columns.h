/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops with columns, as text of the IR: one op of element-wise ops, accesses and
 * triangles over a space, and of reductions of one axis of it that is not the innermost one, and
 * then of elements of what these have come to; or of these without reductions.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_COLUMNS_H
#define TSSA_TESTS_COMMON_RANDOM_COLUMNS_H

#include <stdint.h>

/* The same text for the same seed, to be freed. Its symbolic dims are A, B, ..., and H, what is
 * reduced. */
char *random_columns(uint64_t seed);

#endif
