/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mask keeps, one behind the other. A mask is bytes, of which those that are not 0 keep;
 * who calls has counted how many do. Nothing is written behind so many, nor read behind the mask.
 */
#ifndef TSSA_KERNELS_CPU_LIB_KEEP_H
#define TSSA_KERNELS_CPU_LIB_KEEP_H

#include <stddef.h>
#include <stdint.h>

/* Entry b: the numbers of the bits that are set in b, the lowest first, a byte for each. */
extern const uint64_t keep_bits[256];

/* How many of n bytes are not 0. */
int64_t keep_count(const uint8_t *mask, int64_t n);

/* Of n rows of so many bytes, not 0, those that are kept: `kept` of them. */
void keep_rows(const uint8_t *mask, int64_t n, const char *from, size_t size, char *to,
               int64_t kept);

/* Of the numbers first, first + 1, ..., n of them, those that are kept. There is room for `room` of
 * them, of which so many are wanted at most; returns how many there are. */
int64_t keep_numbers(const uint8_t *mask, int64_t n, int64_t first, int64_t *to, int64_t room);

#endif
