/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuBLASLt that is used: matrices are column-major. */
#ifndef TSSA_DEVICE_CUDA_CUBLASLT_H
#define TSSA_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/cuda_api.h"

typedef unsigned cublaslt_result;
enum { CUBLASLT_COMPUTE_32F = 68, CUBLASLT_32F = 0 };

#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(const char *, cublasLtGetStatusName, (cublaslt_result))                                      \
    X(cublaslt_result, cublasLtCreate, (void **handle))                                            \
    X(cublaslt_result, cublasLtMatmulDescCreate, (void **, unsigned compute, unsigned scale))      \
    X(cublaslt_result, cublasLtMatrixLayoutCreate,                                                 \
      (void **, unsigned type, uint64_t rows, uint64_t columns, int64_t leading))                  \
    X(cublaslt_result, cublasLtMatmul,                                                             \
      (void *handle, void *description, const void *alpha, const void *a, void *a_layout,          \
       const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,    \
       void *d_layout, const void *algorithm, void *workspace, size_t size, cuda_stream))

struct cublaslt {
    CUBLASLT_FUNCTIONS(SHARED_MEMBER)
};

/* Opens the library. Functions it lacks are NULL: who calls one gets an error. */
tssa_status *cublaslt_open(struct cublaslt *cublaslt);

/* NULL for success; else an error "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED". */
tssa_status *cublaslt_status(const struct cublaslt *cublaslt, cublaslt_result result,
                             const char *function);

/* CUBLASLT(cublaslt, cublasLtCreate, &handle): the call, as a status. */
#define CUBLASLT(cublaslt, function, ...)                                                          \
    SHARED_CALL(cublaslt_status, cublaslt, function, __VA_ARGS__)

#endif
