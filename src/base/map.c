/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash map. Entries lie in insertion order in an array; an open-addressing table of indices
 * finds them. Removing marks the entry, and rebuilding drops the marked ones.
 */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"

#define FIRST_SLOTS 16

void map_init(struct map *map, const tssa_allocator *allocator)
{
    *map = (struct map){.allocator = allocator};
}

void map_free(struct map *map)
{
    allocator_free(map->allocator, map->entries);
    allocator_free(map->allocator, map->slots);
    map_init(map, map->allocator);
}

bool map_copy(struct map *copy, const struct map *map)
{
    const tssa_allocator *allocator = copy->allocator;
    map_free(copy);
    if (map->live == 0)
        return true;
    uint32_t *slots = allocator_alloc(allocator, map->slot_count * sizeof *slots);
    struct map_entry *entries = allocator_alloc(allocator, map->capacity * sizeof *entries);
    if (!slots || !entries) {
        allocator_free(allocator, slots);
        allocator_free(allocator, entries);
        return false;
    }
    memcpy(slots, map->slots, map->slot_count * sizeof *slots);
    memcpy(entries, map->entries, map->count * sizeof *entries);
    *copy = *map;
    copy->allocator = allocator;
    copy->slots = slots;
    copy->entries = entries;
    return true;
}

/* The live entry of a key, or NULL. */
static struct map_entry *find(const struct map *map, const void *key, size_t size, uint64_t hash)
{
    if (map->slot_count == 0)
        return NULL;
    size_t mask = map->slot_count - 1;
    for (size_t i = hash & mask; map->slots[i]; i = (i + 1) & mask) {
        struct map_entry *entry = &map->entries[map->slots[i] - 1];
        if (entry->hash == hash && entry->key && entry->key_size == size &&
            (size == 0 || memcmp(entry->key, key, size) == 0))
            return entry;
    }
    return NULL;
}

static void take_slot(struct map *map, uint64_t hash, uint32_t index)
{
    size_t mask = map->slot_count - 1;
    size_t i = hash & mask;
    while (map->slots[i])
        i = (i + 1) & mask;
    map->slots[i] = index + 1;
}

/* Makes room for at least as many entries as live now, and drops the removed ones. */
static bool rebuild(struct map *map)
{
    size_t slot_count = map->slot_count ? map->slot_count : FIRST_SLOTS;
    if (map->live > map->capacity / 2)
        slot_count *= 2;
    if (slot_count > UINT32_MAX / 2)
        return false;
    size_t capacity = slot_count / 4 * 3;
    uint32_t *slots = allocator_calloc(map->allocator, slot_count, sizeof *slots);
    struct map_entry *entries = allocator_calloc(map->allocator, capacity, sizeof *entries);
    if (!slots || !entries) {
        allocator_free(map->allocator, slots);
        allocator_free(map->allocator, entries);
        return false;
    }
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++)
        if (map->entries[i].key)
            entries[count++] = map->entries[i];
    allocator_free(map->allocator, map->slots);
    allocator_free(map->allocator, map->entries);
    map->slots = slots;
    map->slot_count = slot_count;
    map->entries = entries;
    map->capacity = capacity;
    map->count = count;
    for (size_t i = 0; i < count; i++)
        take_slot(map, entries[i].hash, (uint32_t)i);
    return true;
}

void *map_get(const struct map *map, const void *key, size_t key_size)
{
    if (map->live == 0)
        return NULL;
    struct map_entry *entry = find(map, key, key_size, hash_bytes(key, key_size, 0));
    return entry ? entry->value : NULL;
}

bool map_put(struct map *map, const void *key, size_t key_size, void *value)
{
    if (!key)
        key = ""; /* an empty key; NULL marks removed entries */
    uint64_t hash = hash_bytes(key, key_size, 0);
    struct map_entry *entry = find(map, key, key_size, hash);
    if (entry) {
        entry->value = value;
        return true;
    }
    if (map->count == map->capacity && !rebuild(map))
        return false;
    map->entries[map->count] = (struct map_entry){key, key_size, hash, value};
    take_slot(map, hash, (uint32_t)map->count);
    map->count++;
    map->live++;
    return true;
}

bool map_remove(struct map *map, const void *key, size_t key_size)
{
    struct map_entry *entry = find(map, key, key_size, hash_bytes(key, key_size, 0));
    if (!entry)
        return false;
    entry->key = NULL; /* its slot stays taken until the next rebuild */
    entry->value = NULL;
    map->live--;
    return true;
}

void *map_get_str(const struct map *map, const char *key)
{
    return map_get(map, key, strlen(key));
}

bool map_put_str(struct map *map, const char *key, void *value)
{
    return map_put(map, key, strlen(key), value);
}

const struct map_entry *map_next(const struct map *map, const struct map_entry *after)
{
    for (size_t i = after ? (size_t)(after - map->entries) + 1 : 0; i < map->count; i++)
        if (map->entries[i].key)
            return &map->entries[i];
    return NULL;
}
