/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for sizes that are known only while a run is under way. Freed buffers are kept by size
 * class and handed out again; pool_trim gives back those that the last run had no use for, class by
 * class, so that runs which are all alike take nothing from the allocator. One pool belongs to one
 * run at a time and is not thread-safe, but a buffer may leave the run (buffer_leave_pool) and then
 * be released anywhere.
 *
 * What is no buffer but lives in a run (a loop's small arrays, sequences) comes from the pool as
 * well, through pool.cached, which is an allocator like any other.
 */
#ifndef TSSA_BASE_POOL_H
#define TSSA_BASE_POOL_H

#include "base/value.h"

#define POOL_CLASSES 96
#define POOL_POISON 0xff /* what dead memory is filled with, where somebody asks for it */

struct pool {
    const tssa_allocator *allocator;
    struct buffer_space space;             /* of its buffers; allocate NULL: the host's */
    tssa_allocator cached;                 /* takes from the pool; of the host's memory alone */
    struct pool_block *free[POOL_CLASSES]; /* four classes per power of two */
    uint32_t used[POOL_CLASSES], peak[POOL_CLASSES]; /* handed out; the most since the last trim */
    size_t free_bytes;                               /* cached */
    size_t used_bytes, peak_bytes;                   /* as used and peak, over all classes */
    size_t peak_held; /* the most of used and cached together since the last trim */
    uint64_t takes;   /* how often memory was handed out */
    bool poisons;     /* what is taken back is written over; of the host's memory alone */
};

/* The pool may not be moved afterwards. */
void pool_init(struct pool *pool, const tssa_allocator *allocator);
/* Of a space's memory, for what is the device's alone: its buffers do not leave the pool. */
void pool_init_in(struct pool *pool, const tssa_allocator *allocator,
                  const struct buffer_space *space);
/* No buffer of the pool may be alive, and nothing that pool.cached gave. */
void pool_clear(struct pool *pool);
/* NULL when memory runs out (after giving the cache back and trying again). */
struct buffer *pool_alloc(struct pool *pool, size_t size);
/* Called by buffer_release. */
void pool_take_back(struct pool *pool, struct buffer *buffer);
/* The buffer's memory goes to the allocator, not to the pool, when it is released. */
void buffer_leave_pool(struct buffer *buffer);
/* Gives back the buffers that were not in use at once with the others of their class since the last
 * trim. */
void pool_trim(struct pool *pool);

#endif
