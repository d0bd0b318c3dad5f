/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fake_cuda.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/test_card.h"

#define FOLDER TSSA_BUILD_DIR "/tests/fake_cuda_new"

void fake_cuda_use(bool fakes)
{
    if (fakes && !test_card())
        setenv("TSSA_CUDA_LIBRARIES", FOLDER, 1);
    else
        unsetenv("TSSA_CUDA_LIBRARIES");
}

/* Writes the address of a function of theirs, which stay open. */
static void find(const char *name, void *target)
{
    void *library = dlopen(FOLDER "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *address = library ? dlsym(library, name) : NULL;
    if (!address)
        fail_msg("%s", dlerror());
    memcpy(target, &address, sizeof address);
}

unsigned long fake_cuda_calls(void)
{
    unsigned long (*calls)(void) = NULL;
    find("fake_calls", &calls);
    return calls();
}

void fake_cuda_fail_at(unsigned long call, unsigned code)
{
    void (*fail_at)(unsigned long, unsigned) = NULL;
    find("fake_fail_at", &fail_at);
    fail_at(call, code);
}

long fake_cuda_alive(void)
{
    long (*alive)(void) = NULL;
    if (test_card())
        return 0;
    find("fake_alive", &alive);
    return alive();
}

unsigned long fake_cuda_ranges(void)
{
    unsigned long (*ranges)(void) = NULL;
    find("fake_ranges", &ranges);
    return ranges();
}

int fake_cuda_range_depth(void)
{
    int (*depth)(void) = NULL;
    find("fake_range_depth", &depth);
    return depth();
}

const char *fake_cuda_latest_range(void)
{
    const char *(*latest)(void) = NULL;
    find("fake_latest_range", &latest);
    return latest();
}

void fake_cuda_when_asked(void (*call)(void *data), void *data)
{
    void (*when_asked)(void (*)(void *), void *) = NULL;
    find("fake_when_asked", &when_asked);
    when_asked(call, data);
}
