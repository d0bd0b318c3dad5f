/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for, on dlopen. */
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TSSA_PLUGIN_DIR
#define TSSA_PLUGIN_DIR ""
#endif

static void *open_in(const char *folder, int length, const char *between, const char *name)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s%s/%s.so", length, folder, between, name);
    if (length == 0 || size < 0 || (size_t)size >= sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* The length of the folder part of a path; 0 when it has none. */
static int folder_length(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? (int)(slash - path) : 0;
}

/*
 * The file that holds this code. For an executable dladdr says argv[0], which is a bare name when it was
 * found through PATH or when the program has set it; the kernel knows better.
 */
static const char *own_file(char *buffer, size_t size)
{
    Dl_info own = {0};
    dladdr(__extension__(void *) own_file, &own);
    if (folder_length(own.dli_fname) > 0)
        return own.dli_fname;
    ssize_t length = readlink("/proc/self/exe", buffer, size - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return buffer;
}

static void *plugin_open(const char *name)
{
    const char *wanted = secure_getenv("TSSA_PLUGIN_DIR");
    if (wanted && wanted[0])
        return open_in(wanted, (int)strlen(wanted), "", name);
    char buffer[PATH_MAX];
    const char *own = own_file(buffer, sizeof buffer);
    int length = folder_length(own);
    void *plugin = open_in(own, length, "", name);
    if (!plugin)
        plugin = open_in(own, length, "/tssa", name);
    if (!plugin)
        plugin = open_in(TSSA_PLUGIN_DIR, (int)strlen(TSSA_PLUGIN_DIR), "", name);
    return plugin;
}

void *plugin_symbol(const char *name, const char *symbol)
{
    void *plugin = plugin_open(name);
    return plugin ? dlsym(plugin, symbol) : NULL;
}
