/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver's devices: compute capability 9.0, or what the environment says, and a primary
 * context of each, which ends when nobody holds it any more, and with it that something in it has
 * failed. What was made in one is refused in another.
 */
#include <stdio.h>

#include "tests/cuda/fake.h"

struct CUctx_st {
    int holders;
    unsigned broken; /* with this code; FAKE_OK: it is not */
};

enum { MOST_DEVICES = 4 };

static struct CUctx_st contexts[MOST_DEVICES]; /* a primary one for each card */
static _Thread_local cuda_context current;
static bool initialized;

unsigned fake_context_state(void)
{
    if (!initialized)
        return FAKE_NOT_INITIALIZED;
    if (!current || !current->holders)
        return FAKE_INVALID_CONTEXT;
    return current->broken;
}

void fake_break(unsigned code)
{
    if (current && current->broken == FAKE_OK)
        current->broken = code;
}

cuda_context fake_current(void)
{
    return current;
}

FAKE(cuInit, unsigned flags)
{
    PLANNED();
    EXPECT(flags == 0);
    initialized = true;
    return FAKE_OK;
}

FAKE(cuGetErrorName, cuda_result result, const char **name)
{
    *name = result == FAKE_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return FAKE_OK;
}

FAKE(cuGetErrorString, cuda_result result, const char **text)
{
    *text = result == FAKE_OUT_OF_MEMORY ? "out of memory" : "made up";
    return FAKE_OK;
}

FAKE(cuDriverGetVersion, int *version)
{
    PLANNED();
    *version = (int)fake_number("FAKE_CUDA_VERSION", 13000);
    return FAKE_OK;
}

static unsigned device_count(void)
{
    const unsigned count = fake_number("FAKE_CUDA_DEVICES", 1);
    return count < MOST_DEVICES ? count : MOST_DEVICES;
}

FAKE(cuDeviceGetCount, int *count)
{
    PLANNED();
    EXPECT(initialized);
    *count = (int)device_count();
    return FAKE_OK;
}

FAKE(cuDeviceGet, int *device, int ordinal)
{
    PLANNED();
    EXPECT(initialized && ordinal >= 0 && (unsigned)ordinal < device_count());
    *device = ordinal;
    return FAKE_OK;
}

FAKE(cuDeviceGetName, char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "Fake card");
    return FAKE_OK;
}

FAKE(cuDeviceGetAttribute, int *value, unsigned attribute, int device)
{
    (void)device;
    PLANNED();
    const unsigned capability = fake_number("FAKE_CUDA_CAPABILITY", 90);
    *value =
        (int)(attribute == CUDA_ATTRIBUTE_CAPABILITY_MAJOR ? capability / 10 : capability % 10);
    return FAKE_OK;
}

FAKE(cuDevicePrimaryCtxRetain, cuda_context *context, int device)
{
    PLANNED();
    EXPECT(initialized && device >= 0 && (unsigned)device < device_count());
    contexts[device].holders++;
    fake_count(1);
    *context = &contexts[device];
    return FAKE_OK;
}

FAKE(cuDevicePrimaryCtxRelease_v2, int device)
{
    ENTER();
    EXPECT(device >= 0 && device < MOST_DEVICES && contexts[device].holders > 0);
    if (--contexts[device].holders == 0)
        contexts[device].broken = FAKE_OK;
    fake_count(-1);
    return planned_;
}

FAKE(cuCtxSetCurrent, cuda_context context)
{
    PLANNED();
    EXPECT(context >= contexts && context < contexts + MOST_DEVICES && context->holders > 0);
    current = context;
    return FAKE_OK;
}
