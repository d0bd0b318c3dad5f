/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions, channels first, and what follows them, by cuDNN's backend interface: descriptors
 * are made, given attributes and finalized. Of two-byte floats sums are float32, and rounded once.
 */
#ifndef TSSA_DEVICE_CUDA_CUDNN_H
#define TSSA_DEVICE_CUDA_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/cuda_api.h"
#include "device/library.h"

typedef unsigned cudnn_result;
typedef void *cudnn_descriptor;

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(size_t, cudnnGetVersion, (void))                                                             \
    X(const char *, cudnnGetErrorString, (cudnn_result))                                           \
    X(cudnn_result, cudnnCreate, (void **handle))                                                  \
    X(cudnn_result, cudnnDestroy, (void *handle))                                                  \
    X(cudnn_result, cudnnSetStream, (void *handle, cuda_stream))                                   \
    X(cudnn_result, cudnnBackendCreateDescriptor, (unsigned kind, cudnn_descriptor *))             \
    X(cudnn_result, cudnnBackendDestroyDescriptor, (cudnn_descriptor))                             \
    X(cudnn_result, cudnnBackendFinalize, (cudnn_descriptor))                                      \
    X(cudnn_result, cudnnBackendSetAttribute,                                                      \
      (cudnn_descriptor, unsigned name, unsigned type, int64_t count, const void *))               \
    X(cudnn_result, cudnnBackendGetAttribute,                                                      \
      (cudnn_descriptor, unsigned name, unsigned type, int64_t room, int64_t *count, void *))      \
    X(cudnn_result, cudnnBackendExecute, (void *handle, cudnn_descriptor plan, cudnn_descriptor))

/* Descriptors, in the order in which they were made. */
enum { CUDNN_MOST_MADE = 256 };
struct cudnn_made {
    size_t n;
    cudnn_descriptor all[CUDNN_MOST_MADE];
};

struct cudnn {
    CUDNN_FUNCTIONS(SHARED_MEMBER)
    void *handle;                /* NULL: plans are made for `properties`, and cannot run */
    cudnn_descriptor properties; /* of a device that need not be there */
    struct cudnn_made *made; /* what is made is added here; NULL: it lives until the process ends */
};

/* Opens the library. Then either a handle, for the card of the current context, or properties. */
tssa_status *cudnn_open(struct cudnn *cudnn);
tssa_status *cudnn_use_card(struct cudnn *cudnn);
tssa_status *cudnn_use_properties(struct cudnn *cudnn, const char *json);

/* Gives the handle back. */
void cudnn_close(struct cudnn *cudnn);
/* Destroys what was made. */
void cudnn_drop(const struct cudnn *cudnn, struct cudnn_made *made);

/* The card's properties as JSON, cut to `size`. */
tssa_status *cudnn_describe_card(struct cudnn *cudnn, char *json, size_t size);

struct engine {
    cudnn_descriptor config;
    int64_t index;
    bool tensor_core; /* of float32: in TF32; sums of two-byte floats are float32's */
    bool compiled;    /* at run time, which takes long */
    bool narrows;     /* operands or sums are rounded to less than the type */
    bool transforms;  /* of two-byte floats: operands are combined before they are multiplied, and
                         rounded in between */
    bool varies;      /* not the same bits each time */
};

/* Does it compute in the type, or of float32 in TF32 where that is allowed, and with the same bits
 * each time? */
bool cudnn_engine_suits(const struct engine *engine, const struct library_problem *problem,
                        bool allow_tf32);

enum { ENGINE_LIMIT = 64 };

/* What cuDNN's heuristic proposes for a LIBRARY_CONV of floats, best first, and then its
 * fallbacks. */
tssa_status *cudnn_engines(struct cudnn *cudnn, const struct library_problem *problem,
                           struct engine *engines, size_t *count);

struct cudnn_plan {
    cudnn_descriptor plan;
    int64_t workspace; /* bytes */
};

tssa_status *cudnn_plan_make(struct cudnn *cudnn, const struct engine *engine,
                             struct cudnn_plan *plan);

/* Operands, result and workspace in a descriptor; and a run of a plan with them, on a stream. */
struct cudnn_places {
    cuda_address x, w, bias, added, y, workspace; /* bias, added 0: there is none */
};
tssa_status *cudnn_pack(struct cudnn *cudnn, const struct cudnn_places *places,
                        cudnn_descriptor *pack);
tssa_status *cudnn_run(struct cudnn *cudnn, const struct cudnn_plan *plan, cudnn_descriptor pack,
                       cuda_stream stream);

#endif
