/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for sizes that are known only while a run is under way. Freed buffers are kept by size class
 * and handed out again; pool_trim gives back what the last runs did not use. One pool belongs to one
 * run at a time and is not thread-safe, but a buffer may leave the run (buffer_leave_pool) and then be
 * released anywhere.
 */
#ifndef TSSA_BASE_POOL_H
#define TSSA_BASE_POOL_H

#include "base/value.h"

#define POOL_CLASSES 96

struct pool {
    const tssa_allocator *allocator;
    struct pool_block *free[POOL_CLASSES]; /* four classes per power of two */
    size_t free_bytes;                     /* cached */
    size_t used_bytes, peak_bytes;         /* handed out; the most since the last trim */
};

void pool_init(struct pool *pool, const tssa_allocator *allocator);
/* No buffer of the pool may be alive. */
void pool_clear(struct pool *pool);
/* NULL when memory runs out (after giving the cache back and trying again). */
struct buffer *pool_alloc(struct pool *pool, size_t size);
/* Called by buffer_release. */
void pool_take_back(struct pool *pool, struct buffer *buffer);
/* The buffer's memory goes to the allocator, not to the pool, when it is released. */
void buffer_leave_pool(struct buffer *buffer);
/* Gives cached memory back until used + cached is at most the peak since the last trim. */
void pool_trim(struct pool *pool);

#endif
