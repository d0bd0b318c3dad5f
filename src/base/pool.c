/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer pool: a list of free blocks per size class, four classes per power of two. */
#include "base/pool.h"

#include <string.h>

#define SMALLEST ((size_t)256)
#define SMALLEST_LOG2 8

/* A header that fills one cache line: one that lay across two cost a tenth of a small loop's
 * iteration. */
struct pool_block {
    struct buffer buffer; /* first: the pool gets it back as a buffer */
    struct pool_block *next;
};
_Static_assert(sizeof(struct pool_block) <= TENSOR_ALIGNMENT, "a block's header fits in one line");

/* The class of a size, which is rounded up to the class's; POOL_CLASSES for what is too large to
 * keep. */
static int size_class(size_t *size)
{
    if (*size <= SMALLEST) {
        *size = SMALLEST;
        return 0;
    }
    /* Between 2^e and 2^(e+1) lie the classes of 5, 6, 7 and 8 quarters of 2^e. */
    int e = 63 - __builtin_clzll(*size - 1);
    size_t quarter = (*size - 1) >> (e - 2) & 3;
    int bin = 4 * (e - SMALLEST_LOG2) + (int)quarter + 1;
    if (bin >= POOL_CLASSES)
        return POOL_CLASSES;
    *size = (quarter + 5) << (e - 2);
    return bin;
}

/* What is no buffer has the address of its buffer in the line in front. */
static void *cached_allocate(void *user, size_t size, size_t alignment)
{
    size_t bytes;
    struct buffer *buffer =
        alignment <= TENSOR_ALIGNMENT && size_add(size, TENSOR_ALIGNMENT, &bytes)
            ? pool_alloc(user, bytes)
            : NULL;
    if (!buffer)
        return NULL;
    *(struct buffer **)buffer->data = buffer;
    return (char *)buffer->data + TENSOR_ALIGNMENT;
}

static void cached_release(void *user, void *memory)
{
    (void)user;
    buffer_release(*(struct buffer **)(void *)((char *)memory - TENSOR_ALIGNMENT));
}

void pool_init(struct pool *pool, const tssa_allocator *allocator)
{
    *pool =
        (struct pool){.allocator = allocator, .cached = {pool, cached_allocate, cached_release}};
}

void pool_init_in(struct pool *pool, const tssa_allocator *allocator,
                  const struct buffer_space *space)
{
    *pool = (struct pool){.allocator = allocator, .space = *space};
}

static const struct buffer_space *space_of(const struct pool *pool)
{
    return pool->space.allocate ? &pool->space : NULL;
}

/* Gives back all but the first `keep` blocks of a class. */
static void shrink(struct pool *pool, int bin, uint32_t keep)
{
    struct pool_block **link = &pool->free[bin];
    while (*link && keep) {
        link = &(*link)->next;
        keep--;
    }
    struct pool_block *block = *link;
    *link = NULL;
    while (block) {
        struct pool_block *next = block->next;
        pool->free_bytes -= block->buffer.size;
        buffer_free(&block->buffer);
        block = next;
    }
}

static void shrink_all(struct pool *pool)
{
    for (int bin = 0; bin < POOL_CLASSES; bin++)
        shrink(pool, bin, 0);
}

void pool_clear(struct pool *pool)
{
    const struct buffer_space space = pool->space;
    const bool poisons = pool->poisons;
    shrink_all(pool);
    if (space.allocate)
        pool_init_in(pool, pool->allocator, &space);
    else
        pool_init(pool, pool->allocator);
    pool->poisons = poisons;
}

static struct pool_block *take_block(struct pool *pool, size_t size)
{
    struct pool_block *block =
        allocator_alloc_aligned(pool->allocator, sizeof *block, TENSOR_ALIGNMENT);
    if (block && buffer_take_memory(&block->buffer, pool->allocator, space_of(pool), size))
        return block;
    allocator_free(pool->allocator, block);
    return NULL;
}

/* A new one; the second try is without anything cached. */
static struct pool_block *new_block(struct pool *pool, size_t size)
{
    struct pool_block *block = take_block(pool, size);
    if (!block && pool->free_bytes) {
        shrink_all(pool);
        block = take_block(pool, size);
    }
    return block;
}

struct buffer *pool_alloc(struct pool *pool, size_t size)
{
    int bin = size_class(&size);
    struct pool_block *block = bin < POOL_CLASSES ? pool->free[bin] : NULL;
    if (block) {
        pool->free[bin] = block->next;
        pool->free_bytes -= size;
    } else {
        block = new_block(pool, size);
        if (!block)
            return NULL;
    }
    atomic_init(&block->buffer.references, 1);
    block->buffer.pool = pool;
    block->next = NULL;
    pool->takes++;
    if (bin < POOL_CLASSES && ++pool->used[bin] > pool->peak[bin])
        pool->peak[bin] = pool->used[bin];
    pool->used_bytes += block->buffer.size;
    if (pool->used_bytes > pool->peak_bytes)
        pool->peak_bytes = pool->used_bytes;
    if (pool->used_bytes + pool->free_bytes > pool->peak_held)
        pool->peak_held = pool->used_bytes + pool->free_bytes;
    return &block->buffer;
}

void pool_take_back(struct pool *pool, struct buffer *buffer)
{
    size_t size = buffer->size;
    int bin = size_class(&size);
    pool->used_bytes -= buffer->size;
    if (pool->poisons)
        memset(buffer->data, POOL_POISON, buffer->size);
    struct pool_block *block = (struct pool_block *)buffer;
    if (bin == POOL_CLASSES) {
        buffer_free(&block->buffer);
        return;
    }
    pool->used[bin]--;
    block->next = pool->free[bin];
    pool->free[bin] = block;
    pool->free_bytes += buffer->size;
}

void buffer_leave_pool(struct buffer *buffer)
{
    struct pool *pool = buffer->pool;
    if (!pool)
        return;
    size_t size = buffer->size;
    int bin = size_class(&size);
    if (bin < POOL_CLASSES)
        pool->used[bin]--;
    pool->used_bytes -= buffer->size;
    buffer->pool = NULL;
}

void pool_trim(struct pool *pool)
{
    for (int bin = 0; bin < POOL_CLASSES; bin++) {
        if (pool->free[bin])
            shrink(pool, bin, pool->peak[bin] - pool->used[bin]);
        pool->peak[bin] = pool->used[bin];
    }
    pool->peak_bytes = pool->used_bytes;
    pool->peak_held = pool->used_bytes + pool->free_bytes;
}
