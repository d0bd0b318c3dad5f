/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/shared.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT 4096

static const char default_folder[] = "/usr/local/cuda/lib64";

/*
 * NVRTC, say, opens its second half by name, which the loader finds only if that is open already.
 */
static void open_needed(const char *folder, const char *pattern)
{
    char path[PATH_LIMIT];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (glob(path, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
}

/* folder NULL: wherever the loader looks. */
static void *open_in(const char *folder, const struct shared_names *names)
{
    void *library = NULL;
    if (folder && names->needs)
        open_needed(folder, names->needs);
    for (size_t i = 0; names->names[i] && !library; i++) {
        char path[PATH_LIMIT];
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/" : "",
                 names->names[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static void *open_installed(const struct shared_names *names)
{
    char folder[PATH_LIMIT];
    const char *home = getenv("CUDA_HOME");
    void *library = open_in(NULL, names);
    if (!library && home) {
        snprintf(folder, sizeof folder, "%s/lib64", home);
        library = open_in(folder, names);
    }
    return library ? library : open_in(default_folder, names);
}

tssa_status *shared_open(const struct shared_names *names, void **library)
{
    const char *folder = getenv(SHARED_FOLDER);
    *library = folder ? open_in(folder, names) : open_installed(names);
    if (*library)
        return NULL;
    if (folder)
        return ERROR(TSSA_UNSUPPORTED, "no %s: %s does not open in %s, which %s names", names->what,
                     names->names[0], folder, SHARED_FOLDER);
    return ERROR(TSSA_UNSUPPORTED,
                 "no %s: %s does not open where the loader looks, in $CUDA_HOME/lib64, or in %s",
                 names->what, names->names[0], default_folder);
}

void shared_function(void *library, const char *name, void *target)
{
    void *address = dlsym(library, name);
    memcpy(target, &address, sizeof address);
}

void shared_file(const void *function, char *path, size_t size)
{
    Dl_info info;
    snprintf(path, size, "%s", function && dladdr(function, &info) ? info.dli_fname : "");
}

const char *shared_only_folder(void)
{
    const char *folder = getenv(SHARED_FOLDER);
    return folder ? folder : "";
}

tssa_status *shared_lacks(const char *function)
{
    return ERROR(TSSA_UNSUPPORTED, "the library is too old: it has no %s", function);
}
