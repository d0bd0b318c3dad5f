/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for, on dlopen. */
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TSSA_PLUGIN_DIR
#define TSSA_PLUGIN_DIR ""
#endif

/* Folders are visited until `visit` says true. */
typedef bool (*folder_visit)(void *context, const char *path);

static bool visit_file(const char *folder, int length, const char *between, const char *name,
                       folder_visit visit, void *context)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s%s/%s", length, folder, between, name);
    return length > 0 && size >= 0 && (size_t)size < sizeof path && visit(context, path);
}

/* The length of the folder part of a path; 0 when it has none. */
static int folder_length(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? (int)(slash - path) : 0;
}

/*
 * The file that holds this code. For an executable dladdr says argv[0], which is a bare name when
 * it was found through PATH or when the program has set it; the kernel knows better.
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

/* The files of this name that may be meant, in order. */
static void visit_files(const char *name, folder_visit visit, void *context)
{
    const char *wanted = secure_getenv("TSSA_PLUGIN_DIR");
    if (wanted && wanted[0]) {
        visit_file(wanted, (int)strlen(wanted), "", name, visit, context);
        return;
    }
    char buffer[PATH_MAX];
    const char *own = own_file(buffer, sizeof buffer);
    int length = folder_length(own);
    if (!visit_file(own, length, "", name, visit, context) &&
        !visit_file(own, length, "/tssa", name, visit, context))
        visit_file(TSSA_PLUGIN_DIR, (int)strlen(TSSA_PLUGIN_DIR), "", name, visit, context);
}

static void visit_plugins(const char *name, folder_visit visit, void *context)
{
    char file[NAME_MAX + 1];
    int size = snprintf(file, sizeof file, "%s.so", name);
    if (size >= 0 && (size_t)size < sizeof file)
        visit_files(file, visit, context);
}

static bool open_file(void *context, const char *path)
{
    void **plugin = context;
    *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return *plugin != NULL;
}

void *plugin_symbol(const char *name, const char *symbol)
{
    void *plugin = NULL;
    visit_plugins(name, open_file, &plugin);
    return plugin ? dlsym(plugin, symbol) : NULL;
}

struct found {
    char *path;
    size_t size;
};

static bool take_file(void *context, const char *path)
{
    const struct found *found = context;
    const size_t length = strlen(path);
    if (access(path, R_OK) != 0 || length >= found->size)
        return false;
    memcpy(found->path, path, length + 1);
    return true;
}

bool plugin_file(const char *file, char *path, size_t size)
{
    struct found found = {path, size};
    path[0] = '\0';
    visit_files(file, take_file, &found);
    return path[0] != '\0';
}

struct problem {
    char *text;
    size_t size;
};

/* A file that is there but does not open tells more than those that are not. */
static bool find_problem(void *context, const char *path)
{
    struct problem *problem = context;
    if (access(path, F_OK) != 0)
        return false;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *error = plugin ? "it lacks what tssa asks of it" : dlerror();
    snprintf(problem->text, problem->size, "%s: %s", path, error ? error : "it does not open");
    return true;
}

void plugin_problem(const char *name, char *text, size_t size)
{
    const char *wanted = secure_getenv("TSSA_PLUGIN_DIR");
    struct problem problem = {text, size};
    if (wanted && wanted[0])
        snprintf(text, size, "there is no %s.so in TSSA_PLUGIN_DIR, %s", name, wanted);
    else
        snprintf(text, size, "there is no %s.so beside tssa or where it was installed", name);
    visit_plugins(name, find_problem, &problem);
}
