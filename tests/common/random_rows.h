/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops with rows, as text of the IR: one op of element-wise ops and of ops that have
 * rows, of the same last axes, with operands that have the row, one element of it, or none of its
 * axes.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_ROWS_H
#define TSSA_TESTS_COMMON_RANDOM_ROWS_H

#include <stdint.h>

/* The same text for the same seed, to be freed. Its symbolic dims are A, B, ..., and H, the row's
 * length. */
char *random_rows(uint64_t seed);
/* The same, of operands that accesses permute and reshape, and of shapes that are the same in every
 * run. */
char *random_planes(uint64_t seed);

#endif
