/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from byte strings to pointers. Keys are borrowed: they must outlive the map and not
 * change. Insertion order is kept for iteration, so that output is deterministic. Not thread-safe;
 * many threads may read a map that nobody changes.
 */
#ifndef TSSA_BASE_MAP_H
#define TSSA_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct map_entry {
    const void *key;
    size_t key_size;
    uint64_t hash;
    void *value;
};

struct map {
    const tssa_allocator *allocator;
    struct map_entry *entries; /* in insertion order; removed ones have key == NULL */
    size_t count;              /* entries used, removed ones included */
    size_t live;
    size_t capacity;
    uint32_t *slots; /* index + 1 into entries; open addressing, power of two */
    size_t slot_count;
};

void map_init(struct map *map, const tssa_allocator *allocator);
void map_free(struct map *map);
/* A map of the same entries, in their order; `copy` is initialized. False when memory runs out: it
 * is empty then. */
bool map_copy(struct map *copy, const struct map *map);
/* NULL when absent. */
void *map_get(const struct map *map, const void *key, size_t key_size);
/* Replaces; false when memory runs out. `value` must not be NULL. */
bool map_put(struct map *map, const void *key, size_t key_size, void *value);
bool map_remove(struct map *map, const void *key, size_t key_size);

/* Keys that are NUL-terminated strings. */
void *map_get_str(const struct map *map, const char *key);
bool map_put_str(struct map *map, const char *key, void *value);

/* for (const struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e)) */
const struct map_entry *map_next(const struct map *map, const struct map_entry *after);

#endif
