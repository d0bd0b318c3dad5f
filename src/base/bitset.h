/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed-size set of small integers, in an arena that owns its words. Not thread-safe. */
#ifndef TSSA_BASE_BITSET_H
#define TSSA_BASE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct bitset {
    uint64_t *words;
    size_t size; /* in bits */
};

/* All clear; false when memory runs out. */
bool bitset_init(struct bitset *set, struct arena *arena, size_t size);
bool bitset_or(struct bitset *into, const struct bitset *from); /* true when `into` changed */
size_t bitset_count(const struct bitset *set);

static inline bool bitset_has(const struct bitset *set, size_t bit)
{
    return set->words[bit / 64] >> (bit % 64) & 1;
}
static inline void bitset_add(struct bitset *set, size_t bit)
{
    set->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}
static inline void bitset_remove(struct bitset *set, size_t bit)
{
    set->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

#endif
