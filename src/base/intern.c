/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings: a map whose values are its keys. */
#include "base/intern.h"

#include <string.h>

void intern_init(struct intern_table *table, struct arena *arena)
{
    table->arena = arena;
    map_init(&table->map, arena->allocator);
}

void intern_free(struct intern_table *table)
{
    map_free(&table->map);
}

bool intern_copy(struct intern_table *copy, const struct intern_table *table, struct arena *arena)
{
    copy->arena = arena;
    return map_copy(&copy->map, &table->map);
}

const char *intern(struct intern_table *table, const char *text, size_t size)
{
    const char *known = map_get(&table->map, text, size);
    if (known)
        return known;
    char *copy = arena_string(table->arena, text, size);
    if (!copy || !map_put(&table->map, copy, size, copy))
        return NULL;
    return copy;
}

const char *intern_str(struct intern_table *table, const char *text)
{
    return intern(table, text, strlen(text));
}

const char *intern_find(const struct intern_table *table, const char *text)
{
    return map_get_str(&table->map, text);
}
