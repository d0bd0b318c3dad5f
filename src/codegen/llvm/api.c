/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/llvm/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Debian's name, and what LLVM's own build calls it. */
static const char *const names[] = {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM-19.so"};

static void *open_library(void)
{
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

static bool find(void *library, const char *name, void *function, char *message, size_t size)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        snprintf(message, size, "LLVM's library lacks %s", name);
        return false;
    }
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no such cast; POSIX promises it works */
    return true;
}

bool llvm_api_open(struct llvm_api *api, char *message, size_t size)
{
    void *library = open_library();
    if (!library) {
        snprintf(message, size, "%s cannot be opened: install libllvm19", names[0]);
        return false;
    }
#define API(result, name, params)                                                                  \
    if (!find(library, #name, &api->name, message, size))                                          \
        return false;
#include "codegen/llvm/api.def"
#undef API
    return true;
}
