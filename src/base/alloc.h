/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator that everything below a context takes its memory from, and checked size arithmetic.
 */
#ifndef TSSA_BASE_ALLOC_H
#define TSSA_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tssa.h"

/* aligned_alloc and free. */
extern const tssa_allocator allocator_default;

/* NULL on failure. A size of 0 gives a valid pointer. Memory is not zeroed. */
void *allocator_alloc(const tssa_allocator *allocator, size_t size);
void *allocator_alloc_aligned(const tssa_allocator *allocator, size_t size, size_t alignment);
void *allocator_calloc(const tssa_allocator *allocator, size_t count, size_t size);
void allocator_free(const tssa_allocator *allocator, void *memory);
/* Gives the whole pages of memory that stays allocated back to the system: what they hold is zero,
 * or what it was in the file that they are of, whatever the allocator (of pages that it has locked
 * or shares, nothing comes back). */
void pages_give_back(const void *data, size_t size);
/* Has the system bring the whole pages of memory in which nothing lies yet, which it does when they
 * are first written to, else. */
void pages_bring(void *data, size_t size);

/* Alignment of tensor storage: a cache line and an AVX-512 vector. */
#define TENSOR_ALIGNMENT 64

/* false on overflow; *result is written only on success. */
static inline bool size_mul(size_t a, size_t b, size_t *result)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *result = r;
    return true;
}

static inline bool size_add(size_t a, size_t b, size_t *result)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *result = r;
    return true;
}

static inline bool i64_mul(int64_t a, int64_t b, int64_t *result)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *result = r;
    return true;
}

static inline bool i64_add(int64_t a, int64_t b, int64_t *result)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *result = r;
    return true;
}

static inline bool i64_sub(int64_t a, int64_t b, int64_t *result)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return false;
    *result = r;
    return true;
}

#endif
