/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of OpenCL 1.2 that is used, written down here so that it builds where no headers are
 * installed. tests/opencl/abi_check.c holds it against the real ones where these are. The ICD
 * loader, libOpenCL.so.1, is opened when it is wanted; nothing links it.
 */
#ifndef TSSA_DEVICE_OPENCL_OPENCL_API_H
#define TSSA_DEVICE_OPENCL_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef int32_t opencl_result;
typedef struct _cl_platform_id *opencl_platform;
typedef struct _cl_device_id *opencl_device_id;
typedef struct _cl_context *opencl_context;
typedef struct _cl_command_queue *opencl_queue;
typedef struct _cl_mem *opencl_memory;
typedef struct _cl_program *opencl_program;
typedef struct _cl_kernel *opencl_kernel;
typedef struct _cl_event *opencl_event;

enum {
    OPENCL_READ_WRITE = 1 << 0,
    OPENCL_TYPE_GPU = 1 << 2,
    OPENCL_TYPE_OTHERS = 1 << 1 | 1 << 3, /* processors and accelerators */
    OPENCL_BUILD_LOG = 0x1183,
    OPENCL_BINARY_SIZES = 0x1165,
    OPENCL_BINARIES = 0x1166,
    OPENCL_NAME = 0x102B,
    OPENCL_VENDOR = 0x102C,
    OPENCL_DRIVER_VERSION = 0x102D,
    OPENCL_VERSION = 0x102F,
    OPENCL_PLATFORM = 0x1031,
    OPENCL_PLATFORM_VERSION = 0x0901,
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_FLOAT_CONFIG = 0x101B, /* bits, as below */
    OPENCL_DOUBLE_CONFIG = 0x1032,
    OPENCL_DENORMALS = 1 << 0,
    OPENCL_ROUNDS_DIVISION = 1 << 7
};

#define OPENCL_FUNCTIONS(X)                                                                        \
    X(opencl_result, clGetPlatformIDs, (uint32_t, opencl_platform *, uint32_t *))                  \
    X(opencl_result, clGetPlatformInfo, (opencl_platform, uint32_t, size_t, void *, size_t *))     \
    X(opencl_result, clGetDeviceIDs,                                                               \
      (opencl_platform, uint64_t type, uint32_t, opencl_device_id *, uint32_t *))                  \
    X(opencl_result, clGetDeviceInfo, (opencl_device_id, uint32_t, size_t, void *, size_t *))      \
    X(opencl_context, clCreateContext,                                                             \
      (const intptr_t *, uint32_t, const opencl_device_id *,                                       \
       void (*)(const char *, const void *, size_t, void *), void *, opencl_result *))             \
    X(opencl_result, clReleaseContext, (opencl_context))                                           \
    X(opencl_queue, clCreateCommandQueue,                                                          \
      (opencl_context, opencl_device_id, uint64_t, opencl_result *))                               \
    X(opencl_result, clReleaseCommandQueue, (opencl_queue))                                        \
    X(opencl_result, clFlush, (opencl_queue))                                                      \
    X(opencl_result, clFinish, (opencl_queue))                                                     \
    X(opencl_memory, clCreateBuffer, (opencl_context, uint64_t, size_t, void *, opencl_result *))  \
    X(opencl_result, clReleaseMemObject, (opencl_memory))                                          \
    X(opencl_result, clEnqueueReadBuffer,                                                          \
      (opencl_queue, opencl_memory, uint32_t blocking, size_t offset, size_t, void *, uint32_t,    \
       const opencl_event *, opencl_event *))                                                      \
    X(opencl_result, clEnqueueWriteBuffer,                                                         \
      (opencl_queue, opencl_memory, uint32_t blocking, size_t offset, size_t, const void *,        \
       uint32_t, const opencl_event *, opencl_event *))                                            \
    X(opencl_result, clEnqueueCopyBuffer,                                                          \
      (opencl_queue, opencl_memory from, opencl_memory to, size_t from_offset, size_t to_offset,   \
       size_t, uint32_t, const opencl_event *, opencl_event *))                                    \
    X(opencl_result, clEnqueueFillBuffer,                                                          \
      (opencl_queue, opencl_memory, const void *pattern, size_t pattern_size, size_t offset,       \
       size_t, uint32_t, const opencl_event *, opencl_event *))                                    \
    X(opencl_result, clEnqueueMarkerWithWaitList,                                                  \
      (opencl_queue, uint32_t, const opencl_event *, opencl_event *))                              \
    X(opencl_result, clEnqueueBarrierWithWaitList,                                                 \
      (opencl_queue, uint32_t, const opencl_event *, opencl_event *))                              \
    X(opencl_result, clReleaseEvent, (opencl_event))                                               \
    X(opencl_program, clCreateProgramWithSource,                                                   \
      (opencl_context, uint32_t, const char **, const size_t *, opencl_result *))                  \
    X(opencl_program, clCreateProgramWithBinary,                                                   \
      (opencl_context, uint32_t, const opencl_device_id *, const size_t *, const unsigned char **, \
       opencl_result *, opencl_result *))                                                          \
    X(opencl_result, clGetProgramInfo, (opencl_program, uint32_t, size_t, void *, size_t *))       \
    X(opencl_result, clBuildProgram,                                                               \
      (opencl_program, uint32_t, const opencl_device_id *, const char *options,                    \
       void (*)(opencl_program, void *), void *))                                                  \
    X(opencl_result, clGetProgramBuildInfo,                                                        \
      (opencl_program, opencl_device_id, uint32_t, size_t, void *, size_t *))                      \
    X(opencl_result, clReleaseProgram, (opencl_program))                                           \
    X(opencl_kernel, clCreateKernel, (opencl_program, const char *, opencl_result *))              \
    X(opencl_result, clReleaseKernel, (opencl_kernel))                                             \
    X(opencl_result, clSetKernelArg, (opencl_kernel, uint32_t, size_t, const void *))              \
    X(opencl_result, clEnqueueNDRangeKernel,                                                       \
      (opencl_queue, opencl_kernel, uint32_t dims, const size_t *offset, const size_t *global,     \
       const size_t *local, uint32_t, const opencl_event *, opencl_event *))

#define OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
struct opencl_api {
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
};
#undef OPENCL_MEMBER

/* TSSA_UNSUPPORTED: there is no loader, or it is one of OpenCL 1.1. */
tssa_status *opencl_api_open(struct opencl_api *api);

/* NULL for success; else an error "clCreateBuffer: error -4". */
tssa_status *opencl_status(opencl_result result, const char *function);

/* OPENCL(api, clFinish, queue): the call, as a status. */
#define OPENCL(api, function, ...) opencl_status((api)->function(__VA_ARGS__), #function)

#endif
