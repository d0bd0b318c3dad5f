/* SPDX-License-Identifier: Apache-2.0 */
#include "device/opencl/opencl_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libOpenCL.so.1"

static tssa_status *load(void *library, const char *name, void *target)
{
    void *address = dlsym(library, name);
    if (!address)
        return ERROR(TSSA_UNSUPPORTED, "%s is too old: it has no %s", LIBRARY, name);
    memcpy(target, &address, sizeof address);
    return NULL;
}

tssa_status *opencl_api_open(struct opencl_api *api)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ERROR(TSSA_UNSUPPORTED, "no OpenCL: %s does not open", LIBRARY);
#define LOAD(result, name, parameters) TRY(load(library, #name, &api->name));
    OPENCL_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

tssa_status *opencl_status(opencl_result result, const char *function)
{
    if (result == 0)
        return NULL;
    /* CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY */
    const bool memory = result <= -4 && result >= -6;
    return ERROR(memory ? TSSA_OUT_OF_MEMORY : TSSA_RUNTIME, "%s: error %d", function, (int)result);
}
