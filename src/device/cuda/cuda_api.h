/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver's interface that is used, written down here so that it builds where
 * no toolkit is installed. tests/cuda/abi_check.c holds it against the real headers where these
 * are.
 */
#ifndef TSSA_DEVICE_CUDA_CUDA_API_H
#define TSSA_DEVICE_CUDA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "device/cuda/shared.h"

typedef unsigned cuda_result; /* an enum there */
typedef unsigned long long cuda_address;
typedef uint64_t cuda_condition; /* the handle of a conditional node's value */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphNode_st *cuda_node;
typedef struct CUgraphExec_st *cuda_graph_exec;

enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_READY = 600,

    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_LAUNCH_PROGRAMMATIC = 6, /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    CUDA_CAPTURE_RELAXED = 2,
    CUDA_CAPTURE_ACTIVE = 1,
    CUDA_DEPENDENCIES_SET = 1,

    CUDA_NODE_KERNEL = 0,
    CUDA_NODE_MEMCPY = 1,
    CUDA_NODE_MEMSET = 2,
    CUDA_NODE_CONDITIONAL = 13,
    CUDA_CONDITION_IF = 0,
    CUDA_CONDITION_WHILE = 1,
    CUDA_CONDITION_ASSIGN_DEFAULT = 1,

    CUDA_ATTRIBUTE_CLOCK_KHZ = 13,
    CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    CUDA_ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
    CUDA_ATTRIBUTE_MEMORY_BUS_BITS = 37,
    CUDA_ATTRIBUTE_L2_BYTES = 38,
    CUDA_ATTRIBUTE_ASYNC_ENGINES = 40,
    CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76,
    CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN = 97
};

/* CUgraphNodeParams, of which conditional nodes alone are made by hand. */
struct cuda_node_parameters {
    unsigned type;
    int zero[3];
    union {
        long long padding[29];
        struct {
            cuda_condition handle;
            unsigned type, size;
            cuda_graph *bodies; /* written by the driver, and its own */
            cuda_context context;
        } conditional;
    };
    long long zero_too;
};

/* CUlaunchConfig, and its attributes. */
struct cuda_launch_attribute {
    unsigned id, padding;
    int value; /* a union there */
    int others[15];
};

struct cuda_launch {
    unsigned blocks[3], threads[3], shared;
    cuda_stream stream;
    struct cuda_launch_attribute *attributes;
    unsigned n_attributes;
};

/* Names as the library has them: headers rename cuMemAlloc to cuMemAlloc_v2, and so on. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuda_result, cuInit, (unsigned flags))                                                       \
    X(cuda_result, cuGetErrorName, (cuda_result, const char **))                                   \
    X(cuda_result, cuGetErrorString, (cuda_result, const char **))                                 \
    X(cuda_result, cuDriverGetVersion, (int *))                                                    \
    X(cuda_result, cuDeviceGetCount, (int *))                                                      \
    X(cuda_result, cuDeviceGet, (int *device, int ordinal))                                        \
    X(cuda_result, cuDeviceGetName, (char *name, int size, int device))                            \
    X(cuda_result, cuDeviceGetAttribute, (int *, unsigned attribute, int device))                  \
    X(cuda_result, cuDeviceTotalMem_v2, (size_t *, int device))                                    \
    X(cuda_result, cuDevicePrimaryCtxRetain, (cuda_context *, int device))                         \
    X(cuda_result, cuDevicePrimaryCtxRelease_v2, (int device))                                     \
    X(cuda_result, cuCtxSetCurrent, (cuda_context))                                                \
    X(cuda_result, cuStreamCreate, (cuda_stream *, unsigned flags))                                \
    X(cuda_result, cuStreamSynchronize, (cuda_stream))                                             \
    X(cuda_result, cuStreamQuery, (cuda_stream))                                                   \
    X(cuda_result, cuStreamDestroy_v2, (cuda_stream))                                              \
    X(cuda_result, cuStreamWaitEvent, (cuda_stream, cuda_event, unsigned flags))                   \
    X(cuda_result, cuEventCreate, (cuda_event *, unsigned flags))                                  \
    X(cuda_result, cuEventRecord, (cuda_event, cuda_stream))                                       \
    X(cuda_result, cuEventSynchronize, (cuda_event))                                               \
    X(cuda_result, cuEventDestroy_v2, (cuda_event))                                                \
    X(cuda_result, cuModuleLoadData, (cuda_module *, const void *image))                           \
    X(cuda_result, cuModuleUnload, (cuda_module))                                                  \
    X(cuda_result, cuModuleGetFunction, (cuda_function *, cuda_module, const char *))              \
    X(cuda_result, cuLaunchKernel,                                                                 \
      (cuda_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, \
       cuda_stream, void **parameters, void **extra))                                              \
    X(cuda_result, cuLaunchKernelEx,                                                               \
      (const struct cuda_launch *, cuda_function, void **parameters, void **extra))                \
    X(cuda_result, cuMemAlloc_v2, (cuda_address *, size_t))                                        \
    X(cuda_result, cuMemFree_v2, (cuda_address))                                                   \
    X(cuda_result, cuMemAllocHost_v2, (void **, size_t))                                           \
    X(cuda_result, cuMemFreeHost, (void *))                                                        \
    X(cuda_result, cuMemcpyHtoDAsync_v2, (cuda_address, const void *, size_t, cuda_stream))        \
    X(cuda_result, cuMemcpyDtoHAsync_v2, (void *, cuda_address, size_t, cuda_stream))              \
    X(cuda_result, cuMemcpyDtoDAsync_v2, (cuda_address, cuda_address, size_t, cuda_stream))        \
    X(cuda_result, cuMemsetD8Async, (cuda_address, unsigned char, size_t, cuda_stream))            \
    X(cuda_result, cuMemsetD32Async, (cuda_address, unsigned, size_t, cuda_stream))                \
    X(cuda_result, cuStreamBeginCapture_v2, (cuda_stream, unsigned mode))                          \
    X(cuda_result, cuStreamBeginCaptureToGraph,                                                    \
      (cuda_stream, cuda_graph, const cuda_node *, const void *edges, size_t, unsigned mode))      \
    X(cuda_result, cuStreamEndCapture, (cuda_stream, cuda_graph *))                                \
    X(cuda_result, cuStreamGetCaptureInfo_v3,                                                      \
      (cuda_stream, unsigned *status, unsigned long long *id, cuda_graph *,                        \
       const cuda_node **dependencies, const void **edges, size_t *count))                         \
    X(cuda_result, cuStreamUpdateCaptureDependencies_v2,                                           \
      (cuda_stream, cuda_node *, const void *edges, size_t, unsigned flags))                       \
    X(cuda_result, cuGraphConditionalHandleCreate,                                                 \
      (cuda_condition *, cuda_graph, cuda_context, unsigned initial, unsigned flags))              \
    X(cuda_result, cuGraphAddNode_v2,                                                              \
      (cuda_node *, cuda_graph, const cuda_node *, const void *edges, size_t,                      \
       struct cuda_node_parameters *))                                                             \
    X(cuda_result, cuGraphGetNodes, (cuda_graph, cuda_node *, size_t * count))                     \
    X(cuda_result, cuGraphNodeGetType, (cuda_node, unsigned *))                                    \
    X(cuda_result, cuGraphInstantiateWithFlags,                                                    \
      (cuda_graph_exec *, cuda_graph, unsigned long long flags))                                   \
    X(cuda_result, cuGraphLaunch, (cuda_graph_exec, cuda_stream))                                  \
    X(cuda_result, cuGraphExecDestroy, (cuda_graph_exec))                                          \
    X(cuda_result, cuGraphDestroy, (cuda_graph))

struct cuda_api {
    CUDA_FUNCTIONS(SHARED_MEMBER)
};

/* Opens the driver. Functions it lacks are NULL: who calls one gets an error. */
tssa_status *cuda_api_open(struct cuda_api *api);

/* NULL for success; else an error "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". */
tssa_status *cuda_status(const struct cuda_api *api, cuda_result result, const char *function);

/* CUDA(api, cuInit, 0): the call, as a status. */
#define CUDA(api, function, ...) SHARED_CALL(cuda_status, api, function, __VA_ARGS__)

#endif
