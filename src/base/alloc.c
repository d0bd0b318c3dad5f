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

/* The whole pages of the memory; NULL: there are none. */
static char *whole_pages(const void *data, size_t *size, size_t *page)
{
    *page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)data;
    const uintptr_t begin = (from + *page - 1) / *page * *page,
                    end = (from + *size) / *page * *page;
    *size = begin < end ? end - begin : 0;
    return begin < end ? (char *)begin : NULL;
}

void pages_give_back(const void *data, size_t size)
{
    size_t page;
    char *begin = whole_pages(data, &size, &page);
    if (begin)
        madvise(begin, size, MADV_DONTNEED);
}

void pages_bring(void *data, size_t size)
{
    size_t page;
    volatile char *begin = whole_pages(data, &size, &page);
#ifdef MADV_POPULATE_WRITE /* which older kernels do not know */
    if (!begin || madvise((char *)begin, size, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    for (size_t at = 0; at < size; at += page)
        begin[at] = 0;
}
