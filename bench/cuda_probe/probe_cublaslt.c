/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of cuBLASLt in the body of a WHILE node. */
#include <stdint.h>

#include "bench/cuda_probe/body.h"
#include "bench/cuda_probe/numbers.h"
#include "bench/cuda_probe/probe.h"

typedef unsigned result;
enum { COMPUTE_32F = 68, TYPE_32F = 0 };

#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(const char *, cublasLtGetStatusName, (result))                                               \
    X(result, cublasLtCreate, (void **handle))                                                     \
    X(result, cublasLtMatmulDescCreate, (void **, unsigned compute, unsigned scale))               \
    X(result, cublasLtMatrixLayoutCreate,                                                          \
      (void **, unsigned type, uint64_t rows, uint64_t columns, int64_t leading))                  \
    X(result, cublasLtMatmul,                                                                      \
      (void *handle, void *description, const void *alpha, const void *a, void *a_layout,          \
       const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,    \
       void *d_layout, const void *algorithm, void *workspace, size_t size, cuda_stream))

struct cublaslt {
    CUBLASLT_FUNCTIONS(LIBRARY_MEMBER)
};

static const struct library_names library_names = {
    "cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, NULL};

static tssa_status *status_of(const struct cublaslt *cublaslt, result result, const char *function)
{
    if (result == 0)
        return NULL;
    return ERROR(TSSA_RUNTIME, "%s: %s", function,
                 cublaslt->cublasLtGetStatusName ? cublaslt->cublasLtGetStatusName(result)
                                                 : "failed");
}

#define LT(cublaslt, function, ...) LIBRARY_CALL(status_of, cublaslt, function, __VA_ARGS__)

static tssa_status *open_cublaslt(struct cublaslt *cublaslt)
{
    void *library;
    TRY(library_open(&library_names, &library));
#define LOAD(result, name, parameters) library_function(library, #name, &cublaslt->name);
    CUBLASLT_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

struct product {
    struct cublaslt *cublaslt;
    void *handle, *description, *a_layout, *b_layout, *c_layout;
    cuda_address a, b, c, workspace;
};

enum { WORKSPACE = 32 << 20 };

static tssa_status *fill(struct card *card, cuda_stream stream, void *data)
{
    struct product *product = data;
    float alpha = 1, beta = 0;
    (void)card;
    return LT(product->cublaslt, cublasLtMatmul, product->handle, product->description, &alpha,
              (void *)product->a, product->a_layout, (void *)product->b, product->b_layout, &beta,
              (void *)product->c, product->c_layout, (void *)product->c, product->c_layout, NULL,
              (void *)product->workspace, WORKSPACE, stream);
}

static tssa_status *ask(struct card *card, FILE *out, struct product *product, const size_t *size)
{
    const struct cublaslt *lt = product->cublaslt;
    size_t m = size[0], n = size[1], k = size[2];
    char name[64];
    snprintf(name, sizeof name, "f32 [%zu, %zu] x [%zu, %zu]", m, k, k, n);
    TRY(LT(lt, cublasLtMatrixLayoutCreate, &product->a_layout, TYPE_32F, m, k, (int64_t)m));
    TRY(LT(lt, cublasLtMatrixLayoutCreate, &product->b_layout, TYPE_32F, k, n, (int64_t)k));
    TRY(LT(lt, cublasLtMatrixLayoutCreate, &product->c_layout, TYPE_32F, m, n, (int64_t)m));
    TRY(numbers_upload(card, m * k, 1, &product->a));
    TRY(numbers_upload(card, k * n, 2, &product->b));
    TRY(card_zeros(card, m * n * sizeof(float), &product->c));
    struct body_call call = {name, fill, product, product->c, m * n * sizeof(float)};
    return body_ask(card, out, &call);
}

/* Among them a step of a recurrent net, and one whose long sum is likely to be split. */
tssa_status *probe_cublaslt_capture(struct card *card, FILE *out)
{
    static const size_t sizes[][3] = {
        {64, 64, 64}, {1024, 1, 256}, {512, 512, 512}, {64, 64, 16384}};
    struct cublaslt cublaslt;
    struct product product = {.cublaslt = &cublaslt};
    TRY(open_cublaslt(&cublaslt));
    TRY(LT(&cublaslt, cublasLtCreate, &product.handle));
    TRY(LT(&cublaslt, cublasLtMatmulDescCreate, &product.description, COMPUTE_32F, TYPE_32F));
    TRY(card_zeros(card, WORKSPACE, &product.workspace));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TRY(ask(card, out, &product, sizes[i]));
    return NULL;
}
