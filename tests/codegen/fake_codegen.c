/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin in the place of tssa-llvm.so, which does what TSSA_FAKE says: it aborts, never ends,
 * says no, or gives nonsense; "slow", "once" (the first process that is asked aborts, FILE tells)
 * "together" (two processes wait for each other) and "unbound" (it says no on one processor alone)
 * give what the real one gives, which is TSSA_REAL.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"

__attribute__((visibility("default"))) const struct codegen *tssa_plugin_codegen_7(char *message,
                                                                                   size_t size);

static bool is(const char *what)
{
    const char *wanted = getenv("TSSA_FAKE");
    return wanted && strcmp(wanted, what) == 0;
}

static const struct codegen *real(char *message, size_t size)
{
    const char *path = getenv("TSSA_REAL");
    void *plugin = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    void *symbol = plugin ? dlsym(plugin, CODEGEN_SYMBOL) : NULL;
    codegen_open get = NULL;
    memcpy(&get, &symbol, sizeof symbol);
    if (!get)
        snprintf(message, size, "there is no real one");
    return get ? get(message, size) : NULL;
}

/* Who comes first waits for another process to come, which FILE and another file tell. */
static bool meet_another(void)
{
    char file[512], second[520];
    snprintf(file, sizeof file, "%s", getenv("TSSA_FAKE_FILE"));
    snprintf(second, sizeof second, "%s-2", file);
    if (open(file, O_CREAT | O_EXCL, 0600) < 0)
        return open(second, O_CREAT, 0600) >= 0;
    for (int i = 0; i < 2000 && access(second, F_OK); i++)
        usleep(10000);
    return !access(second, F_OK);
}

static bool is_bound(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) || CPU_COUNT(&processors) < 2;
}

static bool compile(const struct gir_kernel *kernel, enum codegen_level level,
                    struct codegen_object *object, char *message, size_t size)
{
    if (is("abort") || (is("once") && open(getenv("TSSA_FAKE_FILE"), O_CREAT | O_EXCL, 0600) >= 0))
        abort();
    if (is("hang"))
        for (;;)
            pause();
    if (is("slow"))
        usleep(300000);
    if (is("nonsense")) {
        *object = (struct codegen_object){"no object file", 14, NULL};
        return true;
    }
    if (is("no") || (is("together") && !meet_another()) || (is("unbound") && is_bound())) {
        snprintf(message, size, "no code today");
        return false;
    }
    const struct codegen *codegen = real(message, size);
    return codegen && codegen->compile(kernel, level, object, message, size);
}

static void release(struct codegen_object *object)
{
    char message[160];
    if (object->handle)
        real(message, sizeof message)->release(object);
}

const struct codegen *tssa_plugin_codegen_7(char *message, size_t size)
{
    static struct codegen codegen = {
        .compile = compile, .release = release, .version = "fake", .library = "/bin/sh"};
    if (is("absent")) {
        snprintf(message, size, "libLLVM.so.19.1 cannot be opened: install libllvm19");
        return NULL;
    }
    return &codegen;
}
