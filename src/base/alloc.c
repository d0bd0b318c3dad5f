/* SPDX-License-Identifier: Apache-2.0 */
/* The default allocator, and the calls that everything else allocates through. */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *default_allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (alignment <= alignof(max_align_t))
        return malloc(size);
    /* aligned_alloc wants a multiple of the alignment. */
    size_t rounded;
    if (!size_add(size, alignment - 1, &rounded))
        return NULL;
    return aligned_alloc(alignment, rounded & ~(alignment - 1));
}

static void default_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

const tssa_allocator allocator_default = {
    .user = NULL,
    .allocate = default_allocate,
    .release = default_release,
};

void *allocator_alloc_aligned(const tssa_allocator *allocator, size_t size, size_t alignment)
{
    /* Pointer differences inside an object must be representable. */
    if (size > PTRDIFF_MAX)
        return NULL;
    return allocator->allocate(allocator->user, size ? size : 1, alignment);
}

void *allocator_alloc(const tssa_allocator *allocator, size_t size)
{
    return allocator_alloc_aligned(allocator, size, alignof(max_align_t));
}

void *allocator_calloc(const tssa_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    if (!size_mul(count, size, &bytes))
        return NULL;
    void *memory = allocator_alloc(allocator, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void allocator_free(const tssa_allocator *allocator, void *memory)
{
    if (memory)
        allocator->release(allocator->user, memory);
}

void pages_give_back(const void *data, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data;
    const uintptr_t begin = (from + page - 1) / page * page, end = (from + size) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
