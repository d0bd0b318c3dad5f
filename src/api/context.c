/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_context: the allocator with its limit, and the thread team. */
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "base/status.h"

/* In front of every allocation; its size is remembered here, so that releasing can be counted. */
struct header {
    size_t size;   /* header and padding included */
    size_t offset; /* from the start of the allocation to the caller's memory */
};

static size_t header_space(size_t alignment)
{
    return alignment > sizeof(struct header) ? alignment : sizeof(struct header);
}

static bool reserve(struct tssa_context *context, size_t size)
{
    size_t used =
        atomic_fetch_add_explicit(&context->memory_used, size, memory_order_relaxed) + size;
    if (used < size || used > context->memory_limit) {
        atomic_fetch_sub_explicit(&context->memory_used, size, memory_order_relaxed);
        return false;
    }
    size_t peak = atomic_load_explicit(&context->memory_peak, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&context->memory_peak, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return true;
}

static void *limited_allocate(void *user, size_t size, size_t alignment)
{
    struct tssa_context *context = user;
    size_t total;
    if (alignment < sizeof(struct header))
        alignment = sizeof(struct header);
    size_t space = header_space(alignment);
    if (!size_add(size, space, &total) || !reserve(context, total))
        return NULL;
    char *start = context->source.allocate(context->source.user, total, alignment);
    if (!start) {
        atomic_fetch_sub_explicit(&context->memory_used, total, memory_order_relaxed);
        return NULL;
    }
    struct header *header = (struct header *)(start + space) - 1;
    header->size = total;
    header->offset = space;
    return start + space;
}

static void limited_release(void *user, void *memory)
{
    struct tssa_context *context = user;
    if (!memory)
        return;
    const struct header *header = (const struct header *)memory - 1;
    atomic_fetch_sub_explicit(&context->memory_used, header->size, memory_order_relaxed);
    context->source.release(context->source.user, (char *)memory - header->offset);
}

static size_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;
}

static int core_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 && cores < 1024 ? (int)cores : 1;
}

tssa_status *tssa_context_create(const tssa_context_options *options, tssa_context **out)
{
    const tssa_context_options defaults = {0};
    if (!out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_context_create: context is NULL");
    if (!options)
        options = &defaults;
    if (options->threads < 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_context_create: %d threads", options->threads);
    tssa_allocator source = options->allocator ? *options->allocator : allocator_default;
    struct tssa_context *context = allocator_calloc(&source, 1, sizeof *context);
    TRY_ALLOC(context);
    context->source = source;
    context->allocator = (tssa_allocator){context, limited_allocate, limited_release};
    context->memory_limit = options->memory_limit ? options->memory_limit : physical_memory();
    team_open(&context->team, options->threads ? options->threads : core_count());
    *out = context;
    return NULL;
}

void tssa_context_free(tssa_context *context)
{
    if (!context)
        return;
    tssa_allocator source = context->source;
    allocator_free(&source, context);
}

size_t tssa_context_memory_peak(const tssa_context *context)
{
    return context
               ? atomic_load_explicit(&((tssa_context *)context)->memory_peak, memory_order_relaxed)
               : 0;
}
