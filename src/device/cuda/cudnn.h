/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of float32, NCHW, by cuDNN's backend interface: descriptors are made, given
 * attributes and finalized. They live until the process ends.
 */
#ifndef TSSA_DEVICE_CUDA_CUDNN_H
#define TSSA_DEVICE_CUDA_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/cuda_api.h"

typedef unsigned cudnn_result;
typedef void *cudnn_descriptor;

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(size_t, cudnnGetVersion, (void))                                                             \
    X(const char *, cudnnGetErrorString, (cudnn_result))                                           \
    X(cudnn_result, cudnnCreate, (void **handle))                                                  \
    X(cudnn_result, cudnnSetStream, (void *handle, cuda_stream))                                   \
    X(cudnn_result, cudnnBackendCreateDescriptor, (unsigned kind, cudnn_descriptor *))             \
    X(cudnn_result, cudnnBackendFinalize, (cudnn_descriptor))                                      \
    X(cudnn_result, cudnnBackendSetAttribute,                                                      \
      (cudnn_descriptor, unsigned name, unsigned type, int64_t count, const void *))               \
    X(cudnn_result, cudnnBackendGetAttribute,                                                      \
      (cudnn_descriptor, unsigned name, unsigned type, int64_t room, int64_t *count, void *))      \
    X(cudnn_result, cudnnBackendExecute, (void *handle, cudnn_descriptor plan, cudnn_descriptor))

struct cudnn {
    CUDNN_FUNCTIONS(SHARED_MEMBER)
    void *handle;                /* NULL: plans are made for `properties`, and cannot run */
    cudnn_descriptor properties; /* of a device that need not be there */
};

/* Opens the library. Then either a handle, for the card of the current context, or properties. */
tssa_status *cudnn_open(struct cudnn *cudnn);
tssa_status *cudnn_use_card(struct cudnn *cudnn);
tssa_status *cudnn_use_properties(struct cudnn *cudnn, const char *json);

/* The card's properties as JSON, cut to `size`. */
tssa_status *cudnn_describe_card(struct cudnn *cudnn, char *json, size_t size);

struct convolution {
    int64_t batch, channels, height, width, filters, kernel; /* padded to keep height and width */
};

struct engine {
    cudnn_descriptor config;
    int64_t index;
    bool tensor_core, compiled; /* compiled: at run time, which takes long */
};

enum { ENGINE_LIMIT = 64 };

/* What cuDNN's heuristic proposes, best first, and then its fallbacks. */
tssa_status *cudnn_engines(struct cudnn *cudnn, const struct convolution *convolution,
                           struct engine *engines, size_t *count);

struct cudnn_plan {
    cudnn_descriptor plan;
    int64_t workspace; /* bytes */
};

tssa_status *cudnn_plan_make(struct cudnn *cudnn, const struct engine *engine,
                             struct cudnn_plan *plan);

/* Operands, result and workspace in a descriptor; and a run of a plan with them, on a stream. */
tssa_status *cudnn_pack(struct cudnn *cudnn, cuda_address x, cuda_address w, cuda_address y,
                        cuda_address workspace, cudnn_descriptor *pack);
tssa_status *cudnn_run(struct cudnn *cudnn, const struct cudnn_plan *plan, cudnn_descriptor pack,
                       cuda_stream stream);

#endif
