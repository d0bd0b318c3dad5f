/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: chunks that double in size, large objects in chunks of their own. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)4096)
#define LARGEST_CHUNK ((size_t)1 << 20)

struct arena_chunk {
    struct arena_chunk *older;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *arena, const tssa_allocator *allocator)
{
    *arena = (struct arena){.allocator = allocator};
}

void arena_clear(struct arena *arena)
{
    struct arena_chunk *chunk = arena->chunks;
    while (chunk) {
        struct arena_chunk *older = chunk->older;
        allocator_free(arena->allocator, chunk);
        chunk = older;
    }
    arena_init(arena, arena->allocator);
}

static struct arena_chunk *new_chunk(struct arena *arena, size_t data_size)
{
    size_t bytes;
    if (!size_add(sizeof(struct arena_chunk), data_size, &bytes))
        return NULL;
    struct arena_chunk *chunk = allocator_alloc(arena->allocator, bytes);
    if (chunk)
        arena->bytes += bytes;
    return chunk;
}

/* How far `p` is below the next multiple of `alignment`. */
static size_t padding(const char *p, size_t alignment)
{
    return (size_t)(-(uintptr_t)p & (alignment - 1));
}

/* An object that would waste most of a chunk; the newest chunk keeps being filled. */
static char *alloc_large(struct arena *arena, size_t size, size_t alignment)
{
    size_t room;
    if (!size_add(size, alignment, &room))
        return NULL;
    struct arena_chunk *chunk = new_chunk(arena, room);
    if (!chunk)
        return NULL;
    if (arena->chunks) {
        chunk->older = arena->chunks->older;
        arena->chunks->older = chunk;
    } else {
        chunk->older = NULL;
        arena->chunks = chunk;
    }
    return chunk->data + padding(chunk->data, alignment);
}

/* By a chunk as long as all before it, within bounds. Large objects do not count: there may be
 * nothing but these. */
static bool refill(struct arena *arena)
{
    const size_t bytes = arena->filled < FIRST_CHUNK     ? FIRST_CHUNK
                         : arena->filled > LARGEST_CHUNK ? LARGEST_CHUNK
                                                         : arena->filled;
    const size_t room = bytes - sizeof(struct arena_chunk);
    struct arena_chunk *chunk = new_chunk(arena, room);
    if (!chunk)
        return false;
    chunk->older = arena->chunks;
    arena->chunks = chunk;
    arena->next = chunk->data;
    arena->end = chunk->data + room;
    arena->filled += bytes;
    return true;
}

/* Not zeroed. */
static char *alloc_raw(struct arena *arena, size_t size, size_t alignment)
{
    if (size == 0)
        size = 1; /* distinct pointers */
    size_t skip = padding(arena->next, alignment);
    size_t left = (size_t)(arena->end - arena->next);
    if (skip > left || size > left - skip) {
        if (size > FIRST_CHUNK / 4 || alignment > FIRST_CHUNK / 4)
            return alloc_large(arena, size, alignment);
        if (!refill(arena))
            return NULL;
        skip = padding(arena->next, alignment);
    }
    char *memory = arena->next + skip;
    arena->next = memory + size;
    return memory;
}

void *arena_alloc_aligned(struct arena *arena, size_t size, size_t alignment)
{
    char *memory = alloc_raw(arena, size, alignment);
    return memory ? memset(memory, 0, size) : NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return arena_alloc_aligned(arena, size, alignof(max_align_t));
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return size_mul(count, size, &bytes) ? arena_alloc(arena, bytes) : NULL;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    char *memory = alloc_raw(arena, size, alignof(max_align_t));
    if (memory && size)
        memcpy(memory, data, size);
    return memory;
}

char *arena_string(struct arena *arena, const char *text, size_t size)
{
    size_t room;
    char *copy = size_add(size, 1, &room) ? alloc_raw(arena, room, 1) : NULL;
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char small[256];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (size < 0)
        return NULL;
    if ((size_t)size < sizeof small)
        return arena_string(arena, small, (size_t)size);
    char *text = alloc_raw(arena, (size_t)size + 1, 1);
    if (text) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)size + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}
