/* SPDX-License-Identifier: Apache-2.0 */
/* Holds what the probes declare of CUDA's interface against its headers. Compiled, and that is all. */
#include <assert.h>
#include <cuda.h>

#include "bench/cuda_probe/cuda_api.h"

/* cuda.h says `cuMemAlloc` and means cuMemAlloc_v2; with the suffix a function has its plain name's type.
 * Structs and flag types have other names there, so these are compared by size and place. */
#define SAME_VALUE(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)

SAME_VALUE(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(CUDA_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(CUDA_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(CUDA_DEPENDENCIES_SET, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
SAME_VALUE(CUDA_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(CUDA_NODE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME_VALUE(CUDA_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_VALUE(CUDA_NODE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME_VALUE(CUDA_CONDITION_IF, CU_GRAPH_COND_TYPE_IF);
SAME_VALUE(CUDA_CONDITION_WHILE, CU_GRAPH_COND_TYPE_WHILE);
SAME_VALUE(CUDA_CONDITION_ASSIGN_DEFAULT, CU_GRAPH_COND_ASSIGN_DEFAULT);
SAME_VALUE(CUDA_ATTRIBUTE_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_VALUE(CUDA_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CUDA_ATTRIBUTE_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_VALUE(CUDA_ATTRIBUTE_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_VALUE(CUDA_ATTRIBUTE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_VALUE(CUDA_ATTRIBUTE_ASYNC_ENGINES, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME_VALUE(CUDA_ATTRIBUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CUDA_ATTRIBUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

#define OURS struct cuda_node_parameters
SAME_VALUE(sizeof(OURS), sizeof(CUgraphNodeParams));
SAME_VALUE(offsetof(OURS, conditional), offsetof(CUgraphNodeParams, conditional));
SAME_VALUE(offsetof(OURS, conditional.handle), offsetof(CUgraphNodeParams, conditional.handle));
SAME_VALUE(offsetof(OURS, conditional.type), offsetof(CUgraphNodeParams, conditional.type));
SAME_VALUE(offsetof(OURS, conditional.size), offsetof(CUgraphNodeParams, conditional.size));
SAME_VALUE(offsetof(OURS, conditional.bodies),
           offsetof(CUgraphNodeParams, conditional.phGraph_out));
SAME_VALUE(offsetof(OURS, conditional.context), offsetof(CUgraphNodeParams, conditional.ctx));

/* Where no struct of ours is named, the prototypes must be the same to the letter. */
#define SAME_FUNCTION(ours, theirs)                                                                \
    static_assert(__builtin_types_compatible_p(__typeof__(*((struct cuda_api *)0)->ours),          \
                                               __typeof__(theirs)),                                \
                  #ours)

SAME_FUNCTION(cuDeviceGet, cuDeviceGet);
SAME_FUNCTION(cuInit, cuInit);
