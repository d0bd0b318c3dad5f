/* SPDX-License-Identifier: Apache-2.0 */
/* Map values: keys and values side by side. They pass through models, so nothing looks keys up. */
#include "base/container.h"

struct value_map {
    atomic_uint references;
    const tssa_allocator *allocator;
    struct value keys, values;
};

static tssa_status *check_keys(const struct value *keys)
{
    bool fits = keys->kind == TSSA_KIND_TENSOR && keys->tensor.rank == 1 &&
                (dtype_is_integer(keys->tensor.dtype) || keys->tensor.dtype == TSSA_STRING);
    if (fits)
        return NULL;
    return ERROR(TSSA_INVALID_ARGUMENT,
                 "the keys of a map are a 1-D tensor of integers or strings");
}

/* Entries along the first axis; false for what has none. */
static bool entry_count(const struct value *value, size_t *count)
{
    if (value->kind == TSSA_KIND_SEQUENCE) {
        *count = sequence_length(value->sequence);
        return true;
    }
    if (value->kind != TSSA_KIND_TENSOR || value->tensor.rank == 0)
        return false;
    *count = (size_t)value->tensor.dims[0];
    return true;
}

/* Takes over both handles, also on failure. */
static tssa_status *adopt(const tssa_allocator *allocator, struct value *keys, struct value *values,
                          struct value *out)
{
    struct value_map *map = allocator_alloc(allocator, sizeof *map);
    if (!map) {
        value_release(keys);
        value_release(values);
        return status_out_of_memory();
    }
    atomic_init(&map->references, 1);
    map->allocator = allocator;
    value_move(&map->keys, keys);
    value_move(&map->values, values);
    out->kind = TSSA_KIND_MAP;
    out->map = map;
    return NULL;
}

tssa_status *value_map_create(const tssa_allocator *allocator, const struct value *keys,
                              const struct value *values, struct value *out)
{
    TRY(check_keys(keys));
    size_t key_count = (size_t)keys->tensor.dims[0], value_count;
    if (!entry_count(values, &value_count) || value_count != key_count)
        return ERROR(
            TSSA_INVALID_ARGUMENT,
            "the values of a map with %zu keys are not a tensor or sequence of %zu entries",
            key_count, key_count);
    if (value_depth(values) >= VALUE_MAX_DEPTH)
        return ERROR(TSSA_LIMIT, "values nest deeper than %d levels", VALUE_MAX_DEPTH);
    struct value own_keys, own_values;
    value_copy(&own_keys, keys);
    value_copy(&own_values, values);
    return adopt(allocator, &own_keys, &own_values, out);
}

const struct value *value_map_keys(const struct value_map *map)
{
    return &map->keys;
}

const struct value *value_map_values(const struct value_map *map)
{
    return &map->values;
}

int value_map_depth(const struct value_map *map)
{
    return value_depth(&map->values) + 1;
}

void value_map_retain(struct value_map *map)
{
    atomic_fetch_add_explicit(&map->references, 1, memory_order_relaxed);
}

void value_map_release(struct value_map *map)
{
    if (atomic_fetch_sub_explicit(&map->references, 1, memory_order_acq_rel) != 1)
        return;
    value_release(&map->keys);
    value_release(&map->values);
    allocator_free(map->allocator, map);
}

tssa_status *value_map_detach(const tssa_allocator *allocator, const struct value_map *from,
                              struct value *to)
{
    struct value keys, values;
    TRY(value_detach(allocator, &from->keys, &keys));
    tssa_status *status = value_detach(allocator, &from->values, &values);
    if (status) {
        value_release(&keys);
        return status;
    }
    return adopt(allocator, &keys, &values, to);
}
