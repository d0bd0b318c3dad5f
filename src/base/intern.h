/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings: equal text is the same pointer, so names compare with ==. Not thread-safe. */
#ifndef TSSA_BASE_INTERN_H
#define TSSA_BASE_INTERN_H

#include "base/arena.h"
#include "base/map.h"

struct intern_table {
    struct arena *arena; /* holds the text */
    struct map map;
};

void intern_init(struct intern_table *table, struct arena *arena);
void intern_free(struct intern_table *table);
/* A table that knows the same text, which it shares, and holds what it is given from now on in
 * `arena`; `copy` is initialized, and in any case to be freed. False when memory runs out. */
bool intern_copy(struct intern_table *copy, const struct intern_table *table, struct arena *arena);
/* NUL-terminated text that lives as long as the arena; NULL when memory runs out. Text with
 * embedded NULs must not come here (the loader refuses it). */
const char *intern(struct intern_table *table, const char *text, size_t size);
const char *intern_str(struct intern_table *table, const char *text);
/* NULL when the text was never interned. */
const char *intern_find(const struct intern_table *table, const char *text);

#endif
