/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: many small objects with one lifetime. Not thread-safe.
 * Every function returns NULL when memory runs out; callers check (TRY_ALLOC).
 */
#ifndef TSSA_BASE_ARENA_H
#define TSSA_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/alloc.h"

struct arena_chunk;

struct arena {
    const tssa_allocator *allocator;
    struct arena_chunk *chunks; /* newest first */
    char *next, *end;           /* free bytes of the newest chunk */
    size_t bytes;               /* taken from the allocator so far */
    size_t filled;              /* of these, in chunks that many objects share */
};

/* Takes no memory yet. */
void arena_init(struct arena *arena, const tssa_allocator *allocator);
/* Frees everything; the arena may be used again. */
void arena_clear(struct arena *arena);

/* Aligned to max_align_t; zeroed. */
void *arena_alloc(struct arena *arena, size_t size);
/* Checks count * size. */
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);
void *arena_alloc_aligned(struct arena *arena, size_t size, size_t alignment);
void *arena_copy(struct arena *arena, const void *data, size_t size);
/* NUL-terminated. */
char *arena_string(struct arena *arena, const char *text, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))

#endif
