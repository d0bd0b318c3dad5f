/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/opencl/opencl.h"

/* ---- Programs -------------------------------------------------------------------------------- */

/* The first error that the compiler tells, or else its first line. */
static tssa_status *refuse(const char *log)
{
    const char *error = strstr(log, "error:"), *line = error ? error : log;
    return ERROR(TSSA_RUNTIME, "the OpenCL compiler refuses a kernel: %.*s",
                 (int)strcspn(line, "\n"), line);
}

static tssa_status *refused(const struct device_context *context, opencl_program program)
{
    const struct opencl *cl = opencl_of(context);
    size_t size = 0;
    cl->api.clGetProgramBuildInfo(program, cl->device, OPENCL_BUILD_LOG, 0, NULL, &size);
    char *log = allocator_calloc(context->allocator, 1, size + 1);
    TRY_ALLOC(log);
    cl->api.clGetProgramBuildInfo(program, cl->device, OPENCL_BUILD_LOG, size, log, NULL);
    tssa_status *status = refuse(log);
    allocator_free(context->allocator, log);
    return status;
}

static tssa_status *find_kernels(const struct opencl *cl, opencl_program program, uint32_t n,
                                 void **functions)
{
    for (uint32_t i = 0; i < n; i++) {
        opencl_result result = 0;
        char name[16];
        snprintf(name, sizeof name, "k%u", (unsigned)i);
        functions[i] = cl->api.clCreateKernel(program, name, &result);
        TRY(opencl_status(result, "clCreateKernel"));
    }
    return NULL;
}

static void release(struct device_context *context, void *program, uint32_t n, void **functions)
{
    const struct opencl *cl = opencl_of(context);
    for (uint32_t i = 0; i < n; i++)
        if (functions[i])
            cl->api.clReleaseKernel(functions[i]);
    cl->api.clReleaseProgram(program);
}

static const char *options_of(const struct opencl *cl)
{
    return cl->rounds_division ? CLIKE_OPENCL_OPTIONS CLIKE_OPENCL_ROUNDING : CLIKE_OPENCL_OPTIONS;
}

/* Of a program that was created, which is released when that fails. */
static tssa_status *finish(struct device_context *context, opencl_program made, uint32_t n,
                           void **functions, void **program)
{
    const struct opencl *cl = opencl_of(context);
    const opencl_result result =
        cl->api.clBuildProgram(made, 1, &cl->device, options_of(cl), NULL, NULL);
    tssa_status *status = result ? refused(context, made) : find_kernels(cl, made, n, functions);
    if (status)
        release(context, made, n, functions);
    else
        *program = made;
    return status;
}

/* A driver that has none to give gives none of it. */
static void take_binary(struct device_context *context, opencl_program program,
                        struct launcher_image *image)
{
    const struct opencl *cl = opencl_of(context);
    size_t size = 0;
    if (cl->api.clGetProgramInfo(program, OPENCL_BINARY_SIZES, sizeof size, &size, NULL) || !size)
        return;
    void *data = allocator_alloc(context->allocator, size);
    if (data && cl->api.clGetProgramInfo(program, OPENCL_BINARIES, sizeof data, &data, NULL) == 0) {
        image->data = data;
        image->size = size;
    } else {
        allocator_free(context->allocator, data);
    }
}

static tssa_status *build(struct device_context *context, const char *text, uint32_t n,
                          void **functions, void **program, struct launcher_image *image)
{
    const struct opencl *cl = opencl_of(context);
    opencl_result result = 0;
    opencl_program made = cl->api.clCreateProgramWithSource(cl->context, 1, &text, NULL, &result);
    TRY(opencl_status(result, "clCreateProgramWithSource"));
    TRY(finish(context, made, n, functions, program));
    if (image)
        take_binary(context, made, image);
    return NULL;
}

static tssa_status *load(struct device_context *context, const void *image, size_t size, uint32_t n,
                         void **functions, void **program)
{
    const struct opencl *cl = opencl_of(context);
    const unsigned char *bytes = image;
    opencl_result result = 0, of_image = 0;
    opencl_program made = cl->api.clCreateProgramWithBinary(cl->context, 1, &cl->device, &size,
                                                            &bytes, &of_image, &result);
    TRY(opencl_status(result, "clCreateProgramWithBinary"));
    return finish(context, made, n, functions, program);
}

/* A driver compiles by itself: another one is another compiler. */
static void describe(struct device_context *context, struct text *text)
{
    static const uint32_t of_device[] = {OPENCL_NAME, OPENCL_VENDOR, OPENCL_VERSION,
                                         OPENCL_DRIVER_VERSION},
                          of_platform[] = {OPENCL_PLATFORM_NAME, OPENCL_PLATFORM_VERSION};
    const struct opencl *cl = opencl_of(context);
    opencl_platform platform = NULL;
    text_printf(text, "OpenCL, %s\n", options_of(cl));
    for (size_t i = 0; i < sizeof of_device / sizeof *of_device; i++) {
        char said[256] = "";
        cl->api.clGetDeviceInfo(cl->device, of_device[i], sizeof said - 1, said, NULL);
        text_printf(text, "%s\n", said);
    }
    cl->api.clGetDeviceInfo(cl->device, OPENCL_PLATFORM, sizeof platform, &platform, NULL);
    for (size_t i = 0; i < sizeof of_platform / sizeof *of_platform; i++) {
        char said[256] = "";
        cl->api.clGetPlatformInfo(platform, of_platform[i], sizeof said - 1, said, NULL);
        text_printf(text, "%s\n", said);
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

static tssa_status *set_param(const struct opencl_api *api, opencl_kernel kernel, uint32_t *index,
                              const struct launch_param *param)
{
    const int64_t number = param->is_memory ? (int64_t)param->place.offset : param->number;
    if (param->is_memory) {
        opencl_memory memory = param->place.memory;
        TRY(OPENCL(api, clSetKernelArg, kernel, (*index)++, sizeof memory, &memory));
    }
    return OPENCL(api, clSetKernelArg, kernel, (*index)++, sizeof number, &number);
}

static tssa_status *start(struct device_stream *stream, const struct launch *launch)
{
    const struct opencl_api *api = &opencl_of(stream->context)->api;
    const size_t local[2] = {32, launch->height},
                 all[2] = {32 * (size_t)launch->blocks, launch->height};
    uint32_t index = 0;
    for (uint32_t i = 0; i < launch->n_params; i++)
        TRY(set_param(api, launch->function, &index, &launch->params[i]));
    return OPENCL(api, clEnqueueNDRangeKernel, opencl_queue_of(stream), launch->function, 2, NULL,
                  all, local, 0, NULL, NULL);
}

/* Arguments are the kernel's, and other streams set them as well. */
static tssa_status *launch(struct device_stream *stream, const struct launch *launch)
{
    pthread_mutex_lock(&stream->context->lock);
    tssa_status *status = start(stream, launch);
    pthread_mutex_unlock(&stream->context->lock);
    return status;
}

const struct launcher opencl_launcher = {.dialect = CLIKE_OPENCL,
                                         .row_height = 1,
                                         .height = 8,
                                         .most_bytes = 1024, /* that every device has */
                                         .build = build,
                                         .load = load,
                                         .describe = describe,
                                         .release = release,
                                         .launch = launch};
