/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of cuBLASLt in the body of a WHILE node. */
#include "bench/cuda_probe/body.h"
#include "bench/cuda_probe/numbers.h"
#include "bench/cuda_probe/probe.h"
#include "device/cuda/cublaslt.h"

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
    return CUBLASLT(product->cublaslt, cublasLtMatmul, product->handle, product->description,
                    &alpha, (void *)product->a, product->a_layout, (void *)product->b,
                    product->b_layout, &beta, (void *)product->c, product->c_layout,
                    (void *)product->c, product->c_layout, NULL, (void *)product->workspace,
                    WORKSPACE, stream);
}

static tssa_status *ask(struct card *card, FILE *out, struct product *product, const size_t *size)
{
    const struct cublaslt *lt = product->cublaslt;
    size_t m = size[0], n = size[1], k = size[2];
    char name[64];
    snprintf(name, sizeof name, "f32 [%zu, %zu] x [%zu, %zu]", m, k, k, n);
    TRY(CUBLASLT(lt, cublasLtMatrixLayoutCreate, &product->a_layout, CUBLASLT_32F, m, k,
                 (int64_t)m));
    TRY(CUBLASLT(lt, cublasLtMatrixLayoutCreate, &product->b_layout, CUBLASLT_32F, k, n,
                 (int64_t)k));
    TRY(CUBLASLT(lt, cublasLtMatrixLayoutCreate, &product->c_layout, CUBLASLT_32F, m, n,
                 (int64_t)m));
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
    TRY(cublaslt_open(&cublaslt));
    TRY(CUBLASLT(&cublaslt, cublasLtCreate, &product.handle));
    TRY(CUBLASLT(&cublaslt, cublasLtMatmulDescCreate, &product.description, CUBLASLT_COMPUTE_32F,
                 CUBLASLT_32F));
    TRY(card_zeros(card, WORKSPACE, &product.workspace));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TRY(ask(card, out, &product, sizes[i]));
    return NULL;
}
