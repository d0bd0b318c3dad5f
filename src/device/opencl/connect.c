/* SPDX-License-Identifier: Apache-2.0 */
/* Which device it is: the first GPU of any platform, else the first other one. */
#include "device/opencl/opencl.h"

#define MOST_PLATFORMS 16

static bool find_device(struct opencl *cl, uint64_t type, opencl_platform *platforms, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; !found && i < n; i++)
        if (cl->api.clGetDeviceIDs(platforms[i], type, 1, &cl->device, &found) != 0)
            found = 0; /* it has none of the type */
    return found > 0;
}

static tssa_status *choose(struct opencl *cl)
{
    opencl_platform platforms[MOST_PLATFORMS];
    uint32_t n = 0;
    if (cl->api.clGetPlatformIDs(MOST_PLATFORMS, platforms, &n) != 0)
        n = 0; /* the loader's word for none */
    if (n > MOST_PLATFORMS)
        n = MOST_PLATFORMS;
    if (n == 0)
        return ERROR(TSSA_UNSUPPORTED, "OpenCL has no platform: no driver is installed");
    return find_device(cl, OPENCL_TYPE_GPU, platforms, n) ||
                   find_device(cl, OPENCL_TYPE_ALL, platforms, n)
               ? NULL
               : ERROR(TSSA_UNSUPPORTED, "OpenCL has no device");
}

static tssa_status *fill(struct opencl *cl)
{
    opencl_result result = 0;
    TRY(opencl_api_open(&cl->api));
    TRY(choose(cl));
    cl->context = cl->api.clCreateContext(NULL, 1, &cl->device, NULL, NULL, &result);
    return opencl_status(result, "clCreateContext");
}

tssa_status *opencl_connect(struct device_context *context)
{
    struct opencl *cl = allocator_calloc(context->allocator, 1, sizeof *cl);
    TRY_ALLOC(cl);
    context->connected = cl;
    return fill(cl);
}

void opencl_disconnect(struct device_context *context)
{
    struct opencl *cl = opencl_of(context);
    if (!cl)
        return;
    grids_close(context);
    if (cl->context)
        cl->api.clReleaseContext(cl->context);
    allocator_free(context->allocator, cl);
    context->connected = NULL;
}
