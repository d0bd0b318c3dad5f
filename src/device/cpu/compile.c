/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/isa.h"
#include "base/plugin.h"
#include "device/cpu/functions.h"
#include "device/cpu/object.h"

/* A kernel that was compiled, or could not be. The lock of the context guards the list; entries stay as they are. */
struct entry {
    struct entry *next;
    struct cpu_code code; /* run NULL: it could not */
    struct object object;
    char message[160];         /* then why */
    struct gir_kernel *kernel; /* right behind */
};

/* ---- The generator -------------------------------------------------------------------------------- */

static const struct codegen *open_codegen(char *message, size_t size)
{
    codegen_open get = NULL;
    void *symbol = plugin_symbol(CODEGEN_PLUGIN, CODEGEN_SYMBOL);
    if (!symbol) {
        plugin_problem(CODEGEN_PLUGIN, message, size);
        return NULL;
    }
    memcpy(&get, &symbol, sizeof symbol); /* ISO C has no such cast; POSIX promises it works */
    return get(message, size);
}

/* ---- Compiling ------------------------------------------------------------------------------------ */

static void load(struct entry *entry, const struct codegen_object *made)
{
    const char *why = object_load(&entry->object, made->bytes, made->size, CODEGEN_ENTRY);
    if (why)
        snprintf(entry->message, sizeof entry->message, "%s", why);
    else
        memcpy(&entry->code.run, &entry->object.entry, sizeof entry->object.entry);
}

static void compile(struct entry *entry)
{
    const enum isa level = isa_level();
    struct codegen_object made;
    if (level < ISA_V3) {
        snprintf(entry->message, sizeof entry->message,
                 "kernels need AVX2 and fused multiply-add (x86-64-v3)");
        return;
    }
    const struct codegen *codegen = open_codegen(entry->message, sizeof entry->message);
    if (!codegen || !codegen->compile(entry->kernel, level == ISA_V4 ? CODEGEN_V4 : CODEGEN_V3,
                                      &made, entry->message, sizeof entry->message))
        return;
    load(entry, &made);
    codegen->release(&made);
    entry->code.functions[0] = level == ISA_V4 ? cpu_functions_f32_v4 : cpu_functions_f32_v3;
    entry->code.functions[1] = level == ISA_V4 ? cpu_functions_f64_v4 : cpu_functions_f64_v3;
}

static struct entry *find(const struct device_context *context, const struct gir_kernel *kernel)
{
    struct entry *entry = context->compiled;
    while (entry && (entry->kernel->size != kernel->size ||
                     memcmp(entry->kernel, kernel, kernel->size) != 0))
        entry = entry->next;
    return entry;
}

static struct entry *add(struct device_context *context, const struct gir_kernel *kernel)
{
    struct entry *entry = allocator_calloc(context->allocator, 1, sizeof *entry + kernel->size);
    if (!entry)
        return NULL;
    entry->kernel = (struct gir_kernel *)(entry + 1);
    memcpy(entry->kernel, kernel, kernel->size);
    compile(entry);
    entry->next = context->compiled;
    context->compiled = entry;
    return entry;
}

tssa_status *cpu_compile(struct device_context *context, const struct gir_kernel *kernel,
                         const void **code, char *message, size_t size)
{
    pthread_mutex_lock(&context->lock);
    struct entry *entry = find(context, kernel);
    if (!entry)
        entry = add(context, kernel);
    pthread_mutex_unlock(&context->lock);
    TRY_ALLOC(entry);
    *code = entry->code.run ? &entry->code : NULL;
    if (!*code)
        snprintf(message, size, "%s", entry->message);
    return NULL;
}

void cpu_compile_close(struct device_context *context)
{
    struct entry *next;
    for (struct entry *entry = context->compiled; entry; entry = next) {
        next = entry->next;
        if (entry->code.run)
            object_unload(&entry->object);
        allocator_free(context->allocator, entry);
    }
    context->compiled = NULL;
}
