/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_context: the allocator with its limit, and the thread team. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "api/options.h"
#include "base/plugin.h"
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

/* ---- Telling --------------------------------------------------------------------------------- */

void context_log(struct tssa_context *context, tssa_log_level level, const char *format, ...)
{
    char message[512];
    va_list arguments;
    if (!context->log)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    context->log(context->log_user, level, message);
}

/* Warns that a plugin did not open, why, and what the effect is. */
static void miss_plugin(struct tssa_context *context, const char *plugin, const char *effect)
{
    char why[256];
    if (!context->log)
        return;
    plugin_problem(plugin, why, sizeof why);
    context_log(context, TSSA_LOG_WARNING, "%s: %s", why, effect);
}

/* ---------------------------------------------------------------------------------------------- */

static tssa_status *check_options(const tssa_context_options *options)
{
    if (options->threads < 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_context_create: %d threads", options->threads);
    if (options->allocator && (!options->allocator->allocate || !options->allocator->release))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_context_create: the allocator has no %s function",
                     options->allocator->allocate ? "release" : "allocate");
    return NULL;
}

static bool copy_text(struct tssa_context *context, const char *text)
{
    const size_t size = strlen(text) + 1;
    context->cache = allocator_alloc(&context->source, size);
    if (context->cache)
        memcpy(context->cache, text, size);
    return context->cache != NULL;
}

tssa_status *tssa_context_create(const tssa_context_options *given, tssa_context **out)
{
    tssa_context_options options;
    if (!out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_context_create: context is NULL");
    TRY(OPTIONS_READ(tssa_context_options, given, &options));
    TRY(check_options(&options));
    tssa_allocator source = options.allocator ? *options.allocator : allocator_default;
    struct tssa_context *context = allocator_calloc(&source, 1, sizeof *context);
    TRY_ALLOC(context);
    context->source = source;
    context->allocator = (tssa_allocator){context, limited_allocate, limited_release};
    context->memory_limit = options.memory_limit ? options.memory_limit : physical_memory();
    context->log = options.log;
    context->log_user = options.log_user;
    if (options.kernel_cache && !copy_text(context, options.kernel_cache)) {
        allocator_free(&source, context);
        return status_out_of_memory();
    }
    team_open(&context->team, options.threads ? options.threads : core_count());
    device_context_open(&context->device, device_find(NULL), &context->allocator, &context->team);
    context->device.cache = context->cache;
    if (context->team.threads > 1 && !context->team.parallel_for)
        miss_plugin(context, TEAM_PLUGIN, "kernels run on one thread");
    *out = context;
    return NULL;
}

void tssa_context_free(tssa_context *context)
{
    if (!context)
        return;
    tssa_allocator source = context->source;
    device_context_close(&context->device);
    allocator_free(&source, context->cache);
    allocator_free(&source, context);
}

size_t tssa_context_memory_peak(const tssa_context *context)
{
    return context
               ? atomic_load_explicit(&((tssa_context *)context)->memory_peak, memory_order_relaxed)
               : 0;
}

const char *tssa_version(void)
{
    return TSSA_VERSION;
}

size_t tssa_context_memory_used(const tssa_context *context)
{
    return context
               ? atomic_load_explicit(&((tssa_context *)context)->memory_used, memory_order_relaxed)
               : 0;
}

void tssa_context_memory_restart_peak(tssa_context *context)
{
    if (context)
        atomic_store_explicit(&context->memory_peak, tssa_context_memory_used(context),
                              memory_order_relaxed);
}
