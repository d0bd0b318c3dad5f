/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuBLASLt that is used: matrices are column-major. */
#ifndef TSSA_DEVICE_CUDA_CUBLASLT_H
#define TSSA_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/cuda_api.h"

typedef unsigned cublaslt_result;

/* Of what is computed, of elements, of operands, and attributes of descriptions. */
enum {
    CUBLASLT_COMPUTE_32F = 68,
    CUBLASLT_COMPUTE_64F = 70,
    CUBLASLT_COMPUTE_TF32 = 77, /* operands of 32F are rounded to that */
    CUBLASLT_32F = 0,
    CUBLASLT_64F = 1,
    CUBLASLT_16F = 2,
    CUBLASLT_16BF = 14,
    CUBLASLT_AS_IT_IS = 0,
    CUBLASLT_TRANSPOSED = 1,
    CUBLASLT_FORM_OF_A = 3,
    CUBLASLT_FORM_OF_B = 4,
    CUBLASLT_BATCH_COUNT = 5,
    CUBLASLT_BATCH_STEP = 6,
    CUBLASLT_MOST_WORKSPACE = 1,
    CUBLASLT_ALIGNMENT_OF_A = 5 /* of B, C and D the next ones */
};

struct cublaslt_algorithm {
    uint64_t data[8];
};

struct cublaslt_proposal {
    struct cublaslt_algorithm algorithm;
    size_t workspace;
    cublaslt_result result; /* of others nothing else is said */
    float waves;
    int reserved[4];
};

#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(const char *, cublasLtGetStatusName, (cublaslt_result))                                      \
    X(cublaslt_result, cublasLtCreate, (void **handle))                                            \
    X(cublaslt_result, cublasLtDestroy, (void *handle))                                            \
    X(cublaslt_result, cublasLtMatmulDescCreate, (void **, unsigned compute, unsigned scale))      \
    X(cublaslt_result, cublasLtMatmulDescSetAttribute,                                             \
      (void *, unsigned name, const void *value, size_t size))                                     \
    X(cublaslt_result, cublasLtMatmulDescDestroy, (void *))                                        \
    X(cublaslt_result, cublasLtMatrixLayoutCreate,                                                 \
      (void **, unsigned type, uint64_t rows, uint64_t columns, int64_t leading))                  \
    X(cublaslt_result, cublasLtMatrixLayoutSetAttribute,                                           \
      (void *, unsigned name, const void *value, size_t size))                                     \
    X(cublaslt_result, cublasLtMatrixLayoutDestroy, (void *))                                      \
    X(cublaslt_result, cublasLtMatmulPreferenceCreate, (void **))                                  \
    X(cublaslt_result, cublasLtMatmulPreferenceSetAttribute,                                       \
      (void *, unsigned name, const void *value, size_t size))                                     \
    X(cublaslt_result, cublasLtMatmulPreferenceDestroy, (void *))                                  \
    X(cublaslt_result, cublasLtMatmulAlgoGetHeuristic,                                             \
      (void *handle, void *description, void *a_layout, void *b_layout, void *c_layout,            \
       void *d_layout, void *preference, int wanted, struct cublaslt_proposal *proposals,          \
       int *found))                                                                                \
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
