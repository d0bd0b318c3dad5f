/* SPDX-License-Identifier: Apache-2.0 */
/* Bit sets on an arena. */
#include "base/bitset.h"

static size_t word_count(const struct bitset *set)
{
    return set->size / 64 + (set->size % 64 != 0);
}

bool bitset_init(struct bitset *set, struct arena *arena, size_t size)
{
    struct bitset made = {.words = NULL, .size = size};
    made.words = ARENA_ARRAY(arena, uint64_t, word_count(&made));
    if (!made.words)
        return false;
    *set = made;
    return true;
}

bool bitset_or(struct bitset *into, const struct bitset *from)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < word_count(into); i++) {
        changed |= from->words[i] & ~into->words[i];
        into->words[i] |= from->words[i];
    }
    return changed != 0;
}

size_t bitset_count(const struct bitset *set)
{
    size_t count = 0;
    for (size_t i = 0; i < word_count(set); i++)
        count += (size_t)__builtin_popcountll(set->words[i]);
    return count;
}
