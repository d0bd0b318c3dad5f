/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/isa.h"
#include "codegen/cache.h"
#include "codegen/client.h"
#include "device/cpu/copies.h"
#include "device/cpu/functions.h"
#include "device/cpu/object.h"
#include "kernels/cpu/lib/keep.h"

/* A kernel that was compiled, or could not be. */
struct entry {
    struct entry *next;
    struct cpu_code code; /* run NULL: it could not */
    struct object object;
    char message[160];         /* then why */
    bool cached;               /* it was on disk */
    struct gir_kernel *kernel; /* right behind */
};

/* Of a context. Entries are put in front of the list, and stay as they are: it may be read at any
 * time, and in a process that was forked at any time. */
struct compiled {
    _Atomic(struct entry *) entries;
    struct codegen_client client;
};

enum codegen_level cpu_codegen_level(void)
{
    return isa_level() == ISA_V4 ? CODEGEN_V4 : isa_level() == ISA_V3 ? CODEGEN_V3 : CODEGEN_V2;
}

static struct codegen_calls calls_of(enum codegen_level of)
{
    const bool is_v4 = of == CODEGEN_V4;
    if (of == CODEGEN_V2)
        return (struct codegen_calls){.f32 = cpu_functions_f32_base,
                                      .f64 = cpu_functions_f64_base,
                                      .in = cpu_copies_in_base,
                                      .out = cpu_copies_out_base};
    return (struct codegen_calls){.f32 = is_v4 ? cpu_functions_f32_v4 : cpu_functions_f32_v3,
                                  .f64 = is_v4 ? cpu_functions_f64_v4 : cpu_functions_f64_v3,
                                  .in = cpu_copies_in_v3,
                                  .out = cpu_copies_out_v3,
                                  .kept = keep_bits};
}

/* Why this machine has no code for it; NULL: it may have. */
static const char *refuses(const struct gir_kernel *kernel)
{
    if (isa_level() < ISA_V2)
        return "kernels need SSE4.2 (x86-64-v2)";
    return isa_level() < ISA_V3 && gir_keeps(kernel)
               ? "kernels that keep elements need AVX2 (x86-64-v3)"
               : NULL;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static struct compiled *compiled_of(struct device_context *context)
{
    void *none = NULL;
    struct compiled *made, *there = atomic_load(&context->compiled);
    if (there)
        return there;
    made = allocator_calloc(context->allocator, 1, sizeof *made);
    if (!made || atomic_compare_exchange_strong(&context->compiled, &none, made))
        return made;
    allocator_free(context->allocator, made);
    return none;
}

static struct entry *find(struct compiled *compiled, const struct gir_kernel *kernel)
{
    struct entry *entry = atomic_load(&compiled->entries);
    while (entry && (entry->kernel->size != kernel->size ||
                     memcmp(entry->kernel, kernel, kernel->size) != 0))
        entry = entry->next;
    return entry;
}

/* Of an object file, or of a message where that is NULL. */
static bool add(struct device_context *context, const struct gir_kernel *kernel, const void *object,
                size_t size, const char *message, bool cached)
{
    struct compiled *compiled = compiled_of(context);
    struct entry *entry = allocator_calloc(context->allocator, 1, sizeof *entry + kernel->size);
    if (!entry)
        return false;
    entry->kernel = (struct gir_kernel *)(entry + 1);
    memcpy(entry->kernel, kernel, kernel->size);
    entry->cached = cached;
    if (object)
        message = object_load(&entry->object, object, size, CODEGEN_ENTRY);
    if (message) {
        snprintf(entry->message, sizeof entry->message, "%s", message);
    } else {
        memcpy(&entry->code.run, &entry->object.entry, sizeof entry->object.entry);
        entry->code.kept = gir_kept_bytes(kernel);
        entry->code.calls = calls_of(cpu_codegen_level());
    }
    entry->next = atomic_load(&compiled->entries);
    while (!atomic_compare_exchange_weak(&compiled->entries, &entry->next, entry))
        ;
    return true;
}

/* ---- Compiling ------------------------------------------------------------------------------- */

struct batch {
    struct device_context *context;
    struct device_compiling *asked;
    struct cache cache;
    struct codegen_job *jobs;
    uint32_t n_jobs;
};

static bool is_asked_for(const struct batch *b, const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < b->n_jobs; i++)
        if (b->jobs[i].kernel->size == kernel->size &&
            memcmp(b->jobs[i].kernel, kernel, kernel->size) == 0)
            return true;
    return false;
}

/* From memory or the disk; else it becomes a job. */
static tssa_status *look_up(struct batch *b, const struct gir_kernel *kernel)
{
    const tssa_allocator *allocator = b->context->allocator;
    const char *why = refuses(kernel);
    size_t size;
    if (find(compiled_of(b->context), kernel) || is_asked_for(b, kernel))
        return NULL;
    if (why)
        return add(b->context, kernel, NULL, 0, why, false) ? NULL : status_out_of_memory();
    void *object = cache_read(&b->cache, allocator, cache_subject_of(kernel), &size);
    if (!object) {
        b->jobs[b->n_jobs++].kernel = kernel;
        return NULL;
    }
    const bool good = add(b->context, kernel, object, size, NULL, true);
    allocator_free(allocator, object);
    return good ? NULL : status_out_of_memory();
}

static void keep(const struct batch *b, const struct codegen_job *job)
{
    char *problem = b->asked->cache_problem;
    if (!problem[0])
        cache_write(&b->cache, b->context->allocator, cache_subject_of(job->kernel), &job->maker,
                    job->object, job->size, problem, sizeof b->asked->cache_problem);
}

static tssa_status *take(const struct batch *b)
{
    bool good = true;
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        const struct codegen_job *job = &b->jobs[i];
        if (job->object)
            keep(b, job);
        if (job->object || job->message[0])
            good &= add(b->context, job->kernel, job->object, job->size, job->message, false);
        allocator_free(b->context->allocator, job->object);
    }
    if (b->n_jobs)
        cache_trim(&b->cache, b->context->allocator, CACHE_MOST_BYTES);
    return good ? NULL : status_out_of_memory();
}

/* A process opens LLVM, which takes as long as some kernels: each has work for several times that
 * (measured: 15 ms to open it, 4 to 10 for a plain kernel, 27 to 32 for one of whole rows). */
static struct codegen_share share_for(const struct batch *b)
{
    const struct team *team = b->context->team;
    uint32_t work = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++)
        work += b->jobs[i].kernel->whole_rows ? 5 : 1;
    const uint32_t threads = team ? (uint32_t)team->threads : 1, worth = work / 5;
    uint32_t processes = threads < b->n_jobs ? threads : b->n_jobs;
    processes = processes < worth ? processes : worth;
    return (struct codegen_share){.processes = processes ? (int)processes : 1,
                                  .processors = team ? &team->processors : NULL};
}

static tssa_status *compile(struct batch *b)
{
    for (uint32_t i = 0; i < b->asked->n; i++)
        TRY(look_up(b, b->asked->kernels[i].kernel));
    if (b->n_jobs)
        b->asked->stopped =
            !codegen_compile(&compiled_of(b->context)->client, b->context->allocator, b->jobs,
                             b->n_jobs, cpu_codegen_level(), share_for(b), b->asked->stop);
    return take(b);
}

static void answer(struct device_context *context, struct device_kernel *asked)
{
    const struct entry *entry = find(compiled_of(context), asked->kernel);
    asked->code = entry && entry->code.run ? &entry->code : NULL;
    asked->cached = entry && entry->cached;
    if (entry && !entry->code.run)
        memcpy(asked->message, entry->message, sizeof asked->message);
}

tssa_status *cpu_compile(struct device_context *context, struct device_compiling *asked)
{
    struct batch b = {.context = context, .asked = asked, .cache = {.folder = -1}};
    asked->stopped = false;
    asked->cache_problem[0] = '\0';
    TRY_ALLOC(compiled_of(context));
    b.jobs = allocator_calloc(context->allocator, asked->n + 1u, sizeof *b.jobs);
    TRY_ALLOC(b.jobs);
    if (context->cache)
        cache_open(&b.cache, context->cache, cpu_codegen_level(), asked->cache_problem,
                   sizeof asked->cache_problem);
    tssa_status *status = compile(&b);
    for (uint32_t i = 0; i < asked->n; i++)
        answer(context, &asked->kernels[i]);
    cache_close(&b.cache);
    allocator_free(context->allocator, b.jobs);
    return status;
}

void cpu_compile_close(struct device_context *context)
{
    struct compiled *compiled = atomic_load(&context->compiled);
    struct entry *next;
    if (!compiled)
        return;
    codegen_client_close(&compiled->client);
    for (struct entry *entry = atomic_load(&compiled->entries); entry; entry = next) {
        next = entry->next;
        if (entry->code.run)
            object_unload(&entry->object);
        allocator_free(context->allocator, entry);
    }
    allocator_free(context->allocator, compiled);
    atomic_store(&context->compiled, NULL);
}
