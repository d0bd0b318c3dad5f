/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer pool: gaps between buffers, by address. */
#include "base/pool.h"

#include <string.h>

/* A header that fills one cache line: one that lay across two cost a tenth of a small loop's
 * iteration. */
struct pool_block {
    struct buffer buffer; /* first: the pool gets it back as a buffer */
    union {
        size_t begin;            /* where it lies, or NOWHERE */
        struct pool_block *next; /* of the spare ones */
    };
};
_Static_assert(sizeof(struct pool_block) <= TENSOR_ALIGNMENT, "a block's header fits in one line");

#define NOWHERE ((size_t)PTRDIFF_MAX) /* behind every chunk's end */
#define FIRST_ROOM 16                 /* gaps */
#define MOST_TRIED 32                 /* spare ones */

/* What is free of a chunk is no memory to AddressSanitizer, nor is what lies between buffers. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define BETWEEN TENSOR_ALIGNMENT
#define HIDE(memory, size) ASAN_POISON_MEMORY_REGION(memory, size)
#define SHOW(memory, size) ASAN_UNPOISON_MEMORY_REGION(memory, size)
#else
#define BETWEEN 0
#define HIDE(memory, size) ((void)(memory), (void)(size))
#define SHOW(memory, size) ((void)(memory), (void)(size))
#endif

const size_t pool_between = BETWEEN;

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

static void note_held(struct pool *pool)
{
    if (pool_held(pool) > pool->peak_held)
        pool->peak_held = pool_held(pool);
}

/* ---- The chunk ------------------------------------------------------------------------------- */

/* No buffer lies in the chunk, nor behind its end. */
static bool is_empty(const struct pool *pool)
{
    return pool->n_gaps <= 1 && (pool->n_gaps == 0 || pool->gaps->begin == 0);
}

/* A run without one is as good, and takes longer. */
static void take_chunk(struct pool *pool)
{
    struct buffer chunk;
    if (buffer_take_memory(&chunk, pool->allocator, space_of(pool), pool->wanted)) {
        pool->chunk = chunk.data;
        pool->size = pool->wanted;
        if (!chunk.space)
            HIDE(pool->chunk, pool->size);
        note_held(pool);
    }
    pool->wanted = 0;
}

static void give_chunk_back(struct pool *pool)
{
    if (!pool->chunk)
        return;
    if (pool->space.allocate) {
        pool->space.release(pool->space.user, pool->chunk, pool->size);
    } else {
        SHOW(pool->chunk, pool->size);
        allocator_free(pool->allocator, pool->chunk);
    }
    pool->chunk = NULL;
    pool->size = 0;
}

/* True: there is more memory now. */
static bool give_up_chunk(struct pool *pool)
{
    if (!pool->size || !is_empty(pool))
        return false;
    give_chunk_back(pool);
    return true;
}

/* ---- Gaps ------------------------------------------------------------------------------------ */

/* There is one more gap than there are buffers, at most. */
static bool make_room(struct pool *pool)
{
    if (pool->blocks + 2 <= pool->room)
        return true;
    const uint32_t room = pool->room ? 2 * pool->room : FIRST_ROOM;
    struct pool_gap *gaps = allocator_alloc(pool->allocator, room * sizeof *gaps);
    if (!gaps)
        return false;
    if (pool->n_gaps == 0) {
        gaps[0] = (struct pool_gap){0, SIZE_MAX};
        pool->n_gaps = 1;
    } else {
        memcpy(gaps, pool->gaps, pool->n_gaps * sizeof *gaps);
    }
    allocator_free(pool->allocator, pool->gaps);
    pool->gaps = gaps;
    pool->room = room;
    return true;
}

static void remove_gap(struct pool *pool, struct pool_gap *gap)
{
    const struct pool_gap *end = pool->gaps + pool->n_gaps--;
    memmove(gap, gap + 1, (size_t)(end - gap - 1) * sizeof *gap);
}

static const struct pool_gap *last_gap(const struct pool *pool)
{
    return pool->gaps + pool->n_gaps - 1;
}

/* Where the smallest gap begins that has so much, as the last one has. */
static size_t take_gap(struct pool *pool, size_t size)
{
    struct pool_gap *gap = pool->gaps + pool->n_gaps - 1;
    size_t least = SIZE_MAX;
    for (struct pool_gap *g = pool->gaps; least != size && g < pool->gaps + pool->n_gaps - 1; g++)
        if (g->end - g->begin >= size && g->end - g->begin < least) {
            gap = g;
            least = g->end - g->begin;
        }
    const size_t begin = gap->begin;
    gap->begin += size;
    if (gap->begin == gap->end)
        remove_gap(pool, gap);
    if (begin + size > pool->end)
        pool->end = begin + size;
    return begin;
}

/* The first gap that begins behind. */
static struct pool_gap *gap_behind(const struct pool *pool, size_t begin)
{
    struct pool_gap *gap = pool->gaps;
    uint32_t count = pool->n_gaps - 1; /* before the last one, which does */
    while (count) {
        const uint32_t half = count / 2;
        if (gap[half].begin < begin) {
            gap += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return gap;
}

static void give_gap_back(struct pool *pool, size_t begin, size_t end)
{
    struct pool_gap *behind = gap_behind(pool, begin);
    const bool before = behind > pool->gaps && behind[-1].end == begin;
    if (behind->begin != end) {
        if (before) {
            behind[-1].end = end;
            return;
        }
        memmove(behind + 1, behind, (size_t)(pool->gaps + pool->n_gaps - behind) * sizeof *behind);
        pool->n_gaps++;
        *behind = (struct pool_gap){begin, end};
    } else if (before) {
        behind[-1].end = behind->end;
        remove_gap(pool, behind);
    } else {
        behind->begin = begin;
    }
}

/* ---- Headers --------------------------------------------------------------------------------- */

static struct pool_block *take_header(struct pool *pool)
{
    struct pool_block *block = pool->headers;
    if (!block)
        return allocator_alloc_aligned(pool->allocator, sizeof *block, TENSOR_ALIGNMENT);
    pool->headers = block->next;
    return block;
}

static void give_header_back(struct pool *pool, struct pool_block *block)
{
    block->next = pool->headers;
    pool->headers = block;
}

/* Gives back all but the first `keep` spare ones. */
static void shrink_headers(struct pool *pool, uint32_t keep)
{
    struct pool_block **link = &pool->headers;
    while (*link && keep) {
        link = &(*link)->next;
        keep--;
    }
    struct pool_block *block = *link;
    *link = NULL;
    while (block) {
        struct pool_block *next = block->next;
        allocator_free(pool->allocator, block);
        block = next;
    }
}

/* ---- Who leaves ------------------------------------------------------------------------------ */

static bool is_leaver(struct pool *pool, uint32_t take)
{
    if (pool->next_leaver == pool->leavers.count || pool->leavers.takes[pool->next_leaver] != take)
        return false;
    pool->next_leaver++;
    return true;
}

static void remember(struct pool_leavers *leavers, uint32_t take)
{
    if (leavers->count == POOL_LEAVERS)
        return;
    uint32_t i = leavers->count++;
    for (; i > 0 && leavers->takes[i - 1] > take; i--)
        leavers->takes[i] = leavers->takes[i - 1];
    leavers->takes[i] = take;
}

/* ---- Memory of their own, once more ---------------------------------------------------------- */

static void free_spare(struct pool *pool, struct pool_block **link)
{
    struct pool_block *block = *link;
    *link = block->next;
    pool->apart_bytes -= block->buffer.size;
    if (!block->buffer.space)
        SHOW(block->buffer.data, block->buffer.size);
    buffer_free_memory(&block->buffer);
    give_header_back(pool, block);
}

static void free_oldest_spare(struct pool *pool)
{
    struct pool_block **link = &pool->spare;
    while ((*link)->next)
        link = &(*link)->next;
    free_spare(pool, link);
}

static void free_spares(struct pool *pool)
{
    while (pool->spare)
        free_spare(pool, &pool->spare);
}

static void keep_spare(struct pool *pool, struct pool_block *block)
{
    if (!block->buffer.space)
        HIDE(block->buffer.data, block->buffer.size);
    block->next = pool->spare;
    pool->spare = block;
}

/* Among the latest; sizes of iterations are the same, or nothing helps. */
static bool take_spare(struct pool *pool, struct buffer *buffer, size_t size)
{
    struct pool_block **link = &pool->spare;
    for (uint32_t i = 0; *link && i < MOST_TRIED; i++, link = &(*link)->next) {
        struct pool_block *spare = *link;
        if (spare->buffer.size != size)
            continue;
        *link = spare->next;
        buffer->data = spare->buffer.data;
        buffer->offset = 0;
        buffer->size = size;
        buffer->allocator = pool->allocator;
        buffer->space = spare->buffer.space;
        if (!buffer->space)
            SHOW(buffer->data, size);
        give_header_back(pool, spare);
        return true;
    }
    return false;
}

void pool_clear(struct pool *pool)
{
    const struct buffer_space space = pool->space;
    const bool poisons = pool->poisons;
    free_spares(pool);
    shrink_headers(pool, 0);
    give_chunk_back(pool);
    allocator_free(pool->allocator, pool->gaps);
    if (space.allocate)
        pool_init_in(pool, pool->allocator, &space);
    else
        pool_init(pool, pool->allocator);
    pool->poisons = poisons;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static bool is_apart(const struct pool *pool, const struct pool_block *block)
{
    return block->begin + block->buffer.size > pool->size;
}

static void free_place(struct pool *pool, const struct pool_block *block)
{
    if (block->begin != NOWHERE)
        give_gap_back(pool, block->begin, block->begin + block->buffer.size + BETWEEN);
}

static void place_in_chunk(const struct pool *pool, struct buffer *buffer, size_t begin,
                           size_t size)
{
    buffer->allocator = pool->allocator;
    buffer->space = space_of(pool);
    buffer->size = size;
    if (buffer->space) {
        buffer->data = pool->chunk;
        buffer->offset = begin;
    } else {
        buffer->data = (char *)pool->chunk + begin;
        buffer->offset = 0;
        SHOW(buffer->data, size);
    }
}

static bool place_apart(struct pool *pool, struct pool_block *block, size_t size)
{
    struct buffer *buffer = &block->buffer;
    if (take_spare(pool, buffer, size))
        return true;
    while (pool->spare && pool_held(pool) + size > pool->most_bytes + POOL_SPARE)
        free_oldest_spare(pool);
    bool placed = buffer_take_memory(buffer, pool->allocator, space_of(pool), size);
    if (!placed && pool->spare) {
        free_spares(pool);
        placed = buffer_take_memory(buffer, pool->allocator, space_of(pool), size);
    }
    if (placed) {
        pool->apart_bytes += size;
        note_held(pool);
    }
    return placed;
}

/* For a buffer that leaves, where nothing else is in the chunk and little of it goes to waste: both
 * would be held at one time. */
static bool take_whole_chunk(struct pool *pool, struct pool_block *block, size_t size)
{
    if (!is_empty(pool) || pool->size < size || pool->size - size > size / 16)
        return false;
    place_in_chunk(pool, &block->buffer, 0, pool->size);
    pool->apart_bytes += pool->size;
    pool->chunk = NULL;
    pool->size = 0;
    return true;
}

static bool place(struct pool *pool, struct pool_block *block, size_t size)
{
    block->begin = NOWHERE;
    if (is_leaver(pool, pool->take))
        return take_whole_chunk(pool, block, size) || place_apart(pool, block, size);
    if (is_empty(pool)) {
        if (pool->wanted)
            take_chunk(pool);
        if (pool->size < size)
            give_chunk_back(pool);
    }
    block->begin = take_gap(pool, size + BETWEEN);
    block->buffer.size = size;
    if (!is_apart(pool, block)) {
        place_in_chunk(pool, &block->buffer, block->begin, size);
        return true;
    }
    if (place_apart(pool, block, size))
        return true;
    free_place(pool, block);
    return false;
}

struct buffer *pool_alloc(struct pool *pool, size_t size)
{
    if (!make_room(pool) || size > NOWHERE - 3 * TENSOR_ALIGNMENT - last_gap(pool)->begin)
        return NULL;
    size = size ? (size + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT
                : TENSOR_ALIGNMENT;
    struct pool_block *block = take_header(pool);
    if (!block)
        return NULL;
    if (!place(pool, block, size) && !(give_up_chunk(pool) && place(pool, block, size))) {
        give_header_back(pool, block);
        return NULL;
    }
    struct buffer *buffer = &block->buffer;
    atomic_init(&buffer->references, 1);
    buffer->pool = pool;
    buffer->take = pool->take++;
    pool->takes++;
    if (++pool->blocks > pool->most)
        pool->most = pool->blocks;
    pool->used_bytes += buffer->size;
    if (pool->used_bytes > pool->most_bytes)
        pool->most_bytes = pool->used_bytes;
    if (pool->used_bytes > pool->peak_bytes)
        pool->peak_bytes = pool->used_bytes;
    return buffer;
}

static void drop(struct pool *pool, struct pool_block *block)
{
    free_place(pool, block);
    pool->blocks--;
    pool->used_bytes -= block->buffer.size;
}

void pool_take_back(struct pool *pool, struct buffer *buffer)
{
    struct pool_block *block = (struct pool_block *)buffer;
    if (pool->poisons)
        memset(buffer->data, POOL_POISON, buffer->size);
    const bool apart = is_apart(pool, block);
    drop(pool, block);
    if (apart) {
        keep_spare(pool, block);
        return;
    }
    if (!buffer->space)
        HIDE(buffer->data, buffer->size);
    give_header_back(pool, block);
}

bool buffer_leave_pool(struct buffer *buffer)
{
    struct pool *pool = buffer->pool;
    struct pool_block *block = (struct pool_block *)buffer;
    if (!pool)
        return true;
    remember(&pool->left, buffer->take);
    if (!is_apart(pool, block))
        return false;
    pool->apart_bytes -= buffer->size;
    drop(pool, block);
    buffer->pool = NULL;
    return true;
}

/* The chunk is as long as the run needed it, or longer by a little: one of the length that it
 * should have is taken when there is something to put into it. */
static void fit_chunk(struct pool *pool)
{
    const bool fits = pool->end <= pool->size && pool->size - pool->end <= pool->size / 16;
    if (fits || !is_empty(pool))
        return;
    give_chunk_back(pool);
    pool->wanted = pool->end;
}

void pool_trim(struct pool *pool)
{
    free_spares(pool);
    shrink_headers(pool, pool->most - pool->blocks);
    pool->most = pool->blocks;
    fit_chunk(pool);
    pool->end = pool->n_gaps ? last_gap(pool)->begin : 0;
    pool->leavers = pool->left;
    pool->left.count = 0;
    pool->next_leaver = 0;
    pool->take = 0;
    pool->most_bytes = pool->peak_bytes = pool->used_bytes;
    pool->peak_held = pool_held(pool);
}
