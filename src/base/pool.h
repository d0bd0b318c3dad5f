/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for sizes that are known only while a run is under way. Freed buffers are kept by size class
 * and handed out again; pool_trim gives back those that the last run had no use for, class by class, so
 * that runs which are all alike take nothing from the allocator. One pool belongs to one run at a time and
 * is not thread-safe, but a buffer may leave the run (buffer_leave_pool) and then be released anywhere.
 *
 * What is no buffer but lives in a run (a loop's small arrays, sequences) comes from the pool as well,
 * through pool.cached, which is an allocator like any other.
 */
#ifndef TSSA_BASE_POOL_H
#define TSSA_BASE_POOL_H

#include "base/value.h"

#define POOL_CLASSES 96

/* Where a pool's memory comes from, if not from its allocator: a device's, of which it gives handles. */
struct pool_source {
    void *user;
    void *(*allocate)(void *user, size_t size); /* NULL: there is not so much */
    void (*release)(void *user, void *memory, size_t size);
};

struct pool {
    const tssa_allocator *allocator;
    struct pool_source source;             /* all NULL: the allocator */
    tssa_allocator cached;                 /* takes from the pool; of the host's memory alone */
    struct pool_block *free[POOL_CLASSES]; /* four classes per power of two */
    uint32_t used[POOL_CLASSES], peak[POOL_CLASSES]; /* handed out; the most since the last trim */
    size_t free_bytes;                               /* cached */
    size_t used_bytes, peak_bytes;                   /* as used and peak, over all classes */
    size_t peak_held; /* the most of used and cached together since the last trim */
};

/* The pool may not be moved afterwards. */
void pool_init(struct pool *pool, const tssa_allocator *allocator);
/* Of a source's memory. The headers of buffers, which lie beside it, are the allocator's. */
void pool_init_from(struct pool *pool, const tssa_allocator *allocator,
                    const struct pool_source *source);
/* No buffer of the pool may be alive, and nothing that pool.cached gave. */
void pool_clear(struct pool *pool);
/* NULL when memory runs out (after giving the cache back and trying again). */
struct buffer *pool_alloc(struct pool *pool, size_t size);
/* Called by buffer_release. */
void pool_take_back(struct pool *pool, struct buffer *buffer);
/* The buffer's memory goes to the allocator, not to the pool, when it is released. */
void buffer_leave_pool(struct buffer *buffer);
/* Gives back the buffers that were not in use at once with the others of their class since the last trim. */
void pool_trim(struct pool *pool);

#endif
