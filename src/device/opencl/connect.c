/* SPDX-License-Identifier: Apache-2.0 */
/* Which device it is: by number, GPUs of all platforms come first. */
#include <inttypes.h>

#include "device/opencl/opencl.h"

#define MOST_PLATFORMS 16
#define MOST_DEVICES 16 /* of a platform and a type */

/* Device number `left` of those of a type, or by how many that is less where there are fewer. */
static bool find_device(struct opencl *cl, uint64_t type, opencl_platform *platforms, uint32_t n,
                        uint32_t *left)
{
    for (uint32_t i = 0; i < n; i++) {
        opencl_device_id devices[MOST_DEVICES];
        uint32_t found = 0;
        if (cl->api.clGetDeviceIDs(platforms[i], type, MOST_DEVICES, devices, &found) != 0)
            continue; /* it has none of the type */
        found = found < MOST_DEVICES ? found : MOST_DEVICES;
        if (*left < found) {
            cl->device = devices[*left];
            return true;
        }
        *left -= found;
    }
    return false;
}

static tssa_status *choose(struct opencl *cl, uint32_t number)
{
    opencl_platform platforms[MOST_PLATFORMS];
    uint32_t n = 0, left = number;
    if (cl->api.clGetPlatformIDs(MOST_PLATFORMS, platforms, &n) != 0)
        n = 0; /* the loader's word for none */
    if (n > MOST_PLATFORMS)
        n = MOST_PLATFORMS;
    if (n == 0)
        return ERROR(TSSA_UNSUPPORTED, "OpenCL has no platform: no driver is installed");
    if (find_device(cl, OPENCL_TYPE_GPU, platforms, n, &left) ||
        find_device(cl, OPENCL_TYPE_OTHERS, platforms, n, &left))
        return NULL;
    const uint32_t count = number - left;
    if (count == 0)
        return ERROR(TSSA_UNSUPPORTED, "OpenCL has no device");
    return ERROR(TSSA_UNSUPPORTED,
                 "there is no opencl:%" PRIu32 ": the drivers have %" PRIu32
                 ", of which opencl:%" PRIu32 " is the last",
                 number, count, count - 1);
}

static uint64_t config_of(const struct opencl *cl, uint32_t which)
{
    uint64_t config = 0;
    if (cl->api.clGetDeviceInfo(cl->device, which, sizeof config, &config, NULL) != 0)
        config = 0; /* it does not know the question: it has none of it */
    return config;
}

/* Functions of float32 are made of double arithmetic (ir/scalar/): without it there is nothing. */
static tssa_status *look_at_floats(struct opencl *cl, const char **gives_up)
{
    const uint64_t config = config_of(cl, OPENCL_FLOAT_CONFIG);
    char name[128] = "";
    cl->rounds_division = (config & OPENCL_ROUNDS_DIVISION) != 0;
    if (!cl->rounds_division)
        *gives_up =
            "it does not round division and square roots as others do: last bits may differ";
    else if (!(config & OPENCL_DENORMALS))
        *gives_up = "it has no denormal numbers: what is below 1.2e-38 may be 0";
    if (config_of(cl, OPENCL_DOUBLE_CONFIG))
        return NULL;
    cl->api.clGetDeviceInfo(cl->device, OPENCL_NAME, sizeof name - 1, name, NULL);
    return ERROR(TSSA_UNSUPPORTED, "the OpenCL device \"%s\" has no double precision (cl_khr_fp64)",
                 name);
}

static tssa_status *fill(struct opencl *cl, uint32_t number, const char **gives_up)
{
    opencl_result result = 0;
    TRY(opencl_api_open(&cl->api));
    TRY(choose(cl, number));
    TRY(look_at_floats(cl, gives_up));
    cl->context = cl->api.clCreateContext(NULL, 1, &cl->device, NULL, NULL, &result);
    return opencl_status(result, "clCreateContext");
}

tssa_status *opencl_connect(struct device_context *context)
{
    struct opencl *cl = allocator_calloc(context->allocator, 1, sizeof *cl);
    TRY_ALLOC(cl);
    context->connected = cl;
    return fill(cl, context->number, &context->gives_up);
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
