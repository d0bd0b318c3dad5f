/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for sizes that are known only while a run is under way. They lie in a chunk of memory,
 * each in the smallest gap that is long enough, whatever the gap was before: runs hold little more
 * than lives at one time. Where they lie does not depend on how long the chunk is,
 * so a run tells how long it should have been: what lies behind its end has memory of its own, from
 * the allocator, and the next run has a chunk that is long enough. A run like the one before takes
 * nothing from the allocator; a first run has no chunk. What it releases is there for the next
 * buffer of that size, an iteration's: up to POOL_SPARE bytes besides what lived at one time.
 *
 * A buffer may leave its run (buffer_leave_pool) and then be released anywhere: which of a run's
 * buffers do is remembered, and those have memory of their own in the next run. Apart from that, a
 * pool belongs to one run at a time and is not thread-safe.
 *
 * What is no buffer but lives in a run (a loop's small arrays, sequences) comes from the pool as
 * well, through pool.cached, which is an allocator like any other.
 */
#ifndef TSSA_BASE_POOL_H
#define TSSA_BASE_POOL_H

#include "base/value.h"

#define POOL_LEAVERS 32               /* that are remembered */
#define POOL_SPARE ((size_t)16 << 20) /* bytes */
#define POOL_POISON 0xff /* what dead memory is filled with, where somebody asks for it */

/* Bytes between neighbours: a line that AddressSanitizer watches, where there is one; else none. */
extern const size_t pool_between;

/* Buffers by their number in a run, ascending. */
struct pool_leavers {
    uint32_t takes[POOL_LEAVERS];
    uint32_t count;
};

struct pool {
    const tssa_allocator *allocator;
    struct buffer_space space; /* of its buffers; allocate NULL: the host's */
    tssa_allocator cached;     /* takes from the pool; of the host's memory alone */
    void *chunk;               /* or its handle; NULL: there is none */
    size_t size;               /* of the chunk; 0: there is none */
    size_t wanted;             /* bytes of the chunk that the next buffer brings; 0: none */
    size_t end;                /* where the last buffer ended, at most, since the last trim */
    /* What is free of an endless chunk, by address, the last one without end. */
    struct pool_gap {
        size_t begin, end;
    } * gaps;
    uint32_t n_gaps, room;
    struct pool_block *headers;  /* spare ones */
    uint32_t blocks, most;       /* buffers; the most since the last trim */
    uint32_t take;               /* buffers that were handed out since the last trim */
    struct pool_leavers leavers; /* of the run before */
    struct pool_leavers left;    /* of this run */
    uint32_t next_leaver;
    size_t used_bytes, most_bytes; /* of buffers; the most since the last trim */
    size_t peak_bytes;             /* the most since the last trim, or since somebody set it */
    size_t apart_bytes;            /* of buffers with memory of their own, spare ones included */
    struct pool_block *spare;      /* of these, who were released in this run, the latest first */
    size_t peak_held;              /* the most of pool_held since the last trim */
    uint64_t takes;                /* how often memory was handed out */
    bool poisons; /* what is taken back is written over; of the host's memory alone */
};

/* The pool may not be moved afterwards. */
void pool_init(struct pool *pool, const tssa_allocator *allocator);
/* Of a space's memory, for what is the device's alone: its buffers do not leave the pool. */
void pool_init_in(struct pool *pool, const tssa_allocator *allocator,
                  const struct buffer_space *space);
/* No buffer of the pool may be alive, and nothing that pool.cached gave. */
void pool_clear(struct pool *pool);
/* NULL when memory runs out. */
struct buffer *pool_alloc(struct pool *pool, size_t size);
/* Called by buffer_release. */
void pool_take_back(struct pool *pool, struct buffer *buffer);
/* The buffer's memory goes to the allocator, not to the pool, when it is released. False: it lies
 * between others, and what is in it must be copied, in this run. */
bool buffer_leave_pool(struct buffer *buffer);
/* A run has ended, and the next one will be like it. */
void pool_trim(struct pool *pool);

/* Bytes that are taken from the allocator, but for headers. */
static inline size_t pool_held(const struct pool *pool)
{
    return pool->size + pool->apart_bytes;
}
/* Bytes of the chunk that the next run has. */
static inline size_t pool_chunk(const struct pool *pool)
{
    return pool->wanted ? pool->wanted : pool->size;
}

#endif
