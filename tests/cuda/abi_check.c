/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds what is declared of CUDA's interface against its headers. Compiled, and that is all.
 */
#include <assert.h>
#include <cublasLt.h>
#include <cuda.h>
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif

#include "device/cuda/cublaslt.h"

/* cuda.h says `cuMemAlloc` and means cuMemAlloc_v2; with the suffix a function has its plain name's
 * type. Structs and flag types have other names there, so these are compared by size and place. */
#define SAME_VALUE(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)

SAME_VALUE(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_VALUE(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
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

SAME_VALUE(CUDA_LAUNCH_PROGRAMMATIC, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_VALUE(sizeof(struct cuda_launch_attribute), sizeof(CUlaunchAttribute));
SAME_VALUE(offsetof(struct cuda_launch_attribute, value),
           offsetof(CUlaunchAttribute, value.programmaticStreamSerializationAllowed));
SAME_VALUE(sizeof(struct cuda_launch), sizeof(CUlaunchConfig));
SAME_VALUE(offsetof(struct cuda_launch, threads), offsetof(CUlaunchConfig, blockDimX));
SAME_VALUE(offsetof(struct cuda_launch, shared), offsetof(CUlaunchConfig, sharedMemBytes));
SAME_VALUE(offsetof(struct cuda_launch, stream), offsetof(CUlaunchConfig, hStream));
SAME_VALUE(offsetof(struct cuda_launch, attributes), offsetof(CUlaunchConfig, attrs));
SAME_VALUE(offsetof(struct cuda_launch, n_attributes), offsetof(CUlaunchConfig, numAttrs));

/* ---- Functions: the same to the letter where no struct of ours is named ---------------------- */

#define SAME_FUNCTION(name)                                                                        \
    static_assert(                                                                                 \
        __builtin_types_compatible_p(__typeof__(*((struct cuda_api *)0)->name), __typeof__(name)), \
        #name)

SAME_FUNCTION(cuInit);
SAME_FUNCTION(cuGetErrorName);
SAME_FUNCTION(cuGetErrorString);
SAME_FUNCTION(cuDriverGetVersion);
SAME_FUNCTION(cuDeviceGetCount);
SAME_FUNCTION(cuDeviceGet);
SAME_FUNCTION(cuDeviceGetName);
SAME_FUNCTION(cuDeviceGetAttribute);
SAME_FUNCTION(cuDeviceTotalMem_v2);
SAME_FUNCTION(cuDevicePrimaryCtxRetain);
SAME_FUNCTION(cuDevicePrimaryCtxRelease_v2);
SAME_FUNCTION(cuCtxSetCurrent);
SAME_FUNCTION(cuStreamCreate);
SAME_FUNCTION(cuStreamSynchronize);
SAME_FUNCTION(cuStreamQuery);
SAME_FUNCTION(cuStreamDestroy_v2);
SAME_FUNCTION(cuStreamWaitEvent);
SAME_FUNCTION(cuEventCreate);
SAME_FUNCTION(cuEventRecord);
SAME_FUNCTION(cuEventDestroy_v2);
SAME_FUNCTION(cuModuleLoadData);
SAME_FUNCTION(cuModuleUnload);
SAME_FUNCTION(cuModuleGetFunction);
SAME_FUNCTION(cuLaunchKernel);
SAME_FUNCTION(cuMemAlloc_v2);
SAME_FUNCTION(cuMemFree_v2);
SAME_FUNCTION(cuMemAllocHost_v2);
SAME_FUNCTION(cuMemFreeHost);
SAME_FUNCTION(cuMemcpyHtoDAsync_v2);
SAME_FUNCTION(cuMemcpyDtoHAsync_v2);
SAME_FUNCTION(cuMemcpyDtoDAsync_v2);
SAME_FUNCTION(cuMemsetD8Async);
SAME_FUNCTION(cuMemsetD32Async);
SAME_FUNCTION(cuStreamBeginCapture_v2);
SAME_FUNCTION(cuStreamEndCapture);
SAME_FUNCTION(cuGraphConditionalHandleCreate);
SAME_FUNCTION(cuGraphGetNodes);
SAME_FUNCTION(cuGraphNodeGetType);
SAME_FUNCTION(cuGraphInstantiateWithFlags);
SAME_FUNCTION(cuGraphLaunch);
SAME_FUNCTION(cuGraphExecDestroy);
SAME_FUNCTION(cuGraphDestroy);

/* ---- cuBLASLt and cuDNN ---------------------------------------------------------------------- */

/* Of cublaslt.h. */
SAME_VALUE(CUBLASLT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME_VALUE(CUBLASLT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME_VALUE(CUBLASLT_32F, CUDA_R_32F);
SAME_VALUE(CUBLASLT_COMPUTE_64F, CUBLAS_COMPUTE_64F);
SAME_VALUE(CUBLASLT_64F, CUDA_R_64F);
SAME_VALUE(CUBLASLT_16F, CUDA_R_16F);
SAME_VALUE(CUBLASLT_16BF, CUDA_R_16BF);
SAME_VALUE(CUBLASLT_AS_IT_IS, CUBLAS_OP_N);
SAME_VALUE(CUBLASLT_TRANSPOSED, CUBLAS_OP_T);
SAME_VALUE(CUBLASLT_FORM_OF_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME_VALUE(CUBLASLT_FORM_OF_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME_VALUE(CUBLASLT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_VALUE(CUBLASLT_BATCH_STEP, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_VALUE(CUBLASLT_MOST_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_VALUE(CUBLASLT_ALIGNMENT_OF_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_VALUE(CUBLASLT_ALIGNMENT_OF_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_VALUE(CUBLASLT_ALIGNMENT_OF_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_VALUE(CUBLASLT_ALIGNMENT_OF_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

#define OUR_PROPOSAL struct cublaslt_proposal
SAME_VALUE(sizeof(OUR_PROPOSAL), sizeof(cublasLtMatmulHeuristicResult_t));
SAME_VALUE(sizeof(struct cublaslt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME_VALUE(offsetof(OUR_PROPOSAL, workspace),
           offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME_VALUE(offsetof(OUR_PROPOSAL, result), offsetof(cublasLtMatmulHeuristicResult_t, state));

/* Descriptions are void here, which fits any pointer: calls with what is declared in cublaslt.h. */
cublasStatus_t cublaslt_calls(void *p, void **made, const void *value, size_t size, int64_t step);
cublasStatus_t cublaslt_calls(void *p, void **made, const void *value, size_t size, int64_t step)
{
    int found = 0;
    cublasStatus_t all = CUBLAS_STATUS_SUCCESS;
    all |= cublasLtCreate((cublasLtHandle_t *)made);
    all |= cublasLtDestroy(p);
    all |= cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)made, 0u, 0u);
    all |= cublasLtMatmulDescSetAttribute(p, 0u, value, size);
    all |= cublasLtMatmulDescDestroy(p);
    all |= cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)made, 0u, size, size, step);
    all |= cublasLtMatrixLayoutSetAttribute(p, 0u, value, size);
    all |= cublasLtMatrixLayoutDestroy(p);
    all |= cublasLtMatmulPreferenceCreate((cublasLtMatmulPreference_t *)made);
    all |= cublasLtMatmulPreferenceSetAttribute(p, 0u, value, size);
    all |= cublasLtMatmulPreferenceDestroy(p);
    all |= cublasLtMatmulAlgoGetHeuristic(p, p, p, p, p, p, p, 1, p, &found);
    all |= cublasLtMatmul(p, p, value, value, p, value, p, value, value, p, p, p, p, p, size, p);
    return all;
}

#if __has_include(<cudnn_graph.h>)
#define CUDNN_VALUE(ours, theirs, value) SAME_VALUE(value, CUDNN_##theirs);
#include "device/cuda/cudnn_values.def"
#undef CUDNN_VALUE
#endif
