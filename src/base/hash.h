/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing of bytes: XXH3 of libxxhash. The same on every machine, so that a hash may be printed. */
#ifndef TSSA_BASE_HASH_H
#define TSSA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* `data` may be NULL when `size` is 0. Chains by `seed`. */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
