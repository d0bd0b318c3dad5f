/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulInteger (ai.onnx 10) and QLinearMatMul (10, 21). Sums of products of 8-bit integers less
 * their zero points are exact: by the library in INT32, or in double.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/lib/gemm.h"
#include "kernels/cpu/quantization/byte_sums.h"
#include "kernels/cpu/quantization/requantize.h"

extern const struct kernel cpu_kernel_MatMulInteger, cpu_kernel_QLinearMatMul;

struct product {
    const struct tensor *a, *b;
    /* one per row of a, and per column of b */
    struct buffer *a_zeros, *b_zeros;
    int rank;
    int64_t dims[TSSA_MAX_RANK], rows, columns;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct library_cache *library = ARENA_NEW(setup->arena, struct library_cache);
    const uint32_t b = ir_op_is(op, IR_OP_QLinearMatMul) ? 3 : 1;
    TRY_ALLOC(library);
    library_cache_open(library, setup, byte_sums_constant(op, b));
    *state = library;
    return NULL;
}

static void release(const void *state)
{
    library_cache_close((struct library_cache *)(void *)state);
}

/* The operands, b at operand `b`, and the shape of the result. */
static tssa_status *product_open(struct kernel_args *args, uint32_t b, uint32_t a_zero,
                                 uint32_t b_zero, struct product *p)
{
    TRY(kernel_tensor(args, 0, &p->a));
    TRY(kernel_tensor(args, b, &p->b));
    TRY(byte_sums_check(p->a, "the left operand"));
    TRY(byte_sums_check(p->b, "the right operand"));
    TRY(matmul_shape(p->a, p->b, &p->rank, p->dims));
    p->rows = p->a->rank > 1 ? p->a->dims[p->a->rank - 2] : 1;
    p->columns = p->b->rank > 1 ? p->b->dims[p->b->rank - 1] : 1;
    TRY(requantize_vector(args, a_zero, p->rows, 0, &p->a_zeros));
    return requantize_vector(args, b_zero, p->columns, 0, &p->b_zeros);
}

static void product_close(struct product *p)
{
    buffer_release(p->a_zeros);
    buffer_release(p->b_zeros);
}

static tssa_status *by_library(struct kernel_args *args, const struct product *p, int32_t *sums,
                               bool *done)
{
    return byte_sums_matmul(args, (struct library_cache *)(void *)args->state, p->a, p->b,
                            p->a_zeros->data, p->b_zeros->data, sums, done);
}

/* ---- In double ------------------------------------------------------------------------------- */

/* `tensor` less its zero points. */
static tssa_status *widen(struct kernel_args *args, const struct tensor *tensor,
                          const double *zeros, bool by_row, struct tensor *wide,
                          struct buffer **data)
{
    size_t count, bytes;
    int64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    int64_t rows = tensor->rank > 1 ? tensor->dims[tensor->rank - 2] : 1;
    *wide = *tensor;
    wide->dtype = TSSA_DOUBLE;
    TRY(tensor_layout(TSSA_DOUBLE, tensor->rank, tensor->dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, data));
    wide->data = (*data)->data;
    double *to = wide->data;
    convert_elements((int64_t)count, tensor->dtype, tensor->data, 1, TSSA_DOUBLE, to, 1,
                     &convert_default);
    for (size_t i = 0; i < count; i++)
        to[i] -= zeros[by_row ? (int64_t)i / columns % rows : (int64_t)i % columns];
    return NULL;
}

static tssa_status *multiply(struct kernel_args *args, const struct product *p,
                             struct buffer **sums)
{
    struct tensor a, b;
    struct buffer *a_data = NULL, *b_data = NULL;
    size_t count, bytes;
    TRY(tensor_layout(TSSA_DOUBLE, p->rank, p->dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, sums));
    tssa_status *status = widen(args, p->a, p->a_zeros->data, true, &a, &a_data);
    if (!status)
        status = widen(args, p->b, p->b_zeros->data, false, &b, &b_data);
    if (!status)
        status = matmul_compute(args, NULL, &a, &b, (*sums)->data);
    buffer_release(a_data);
    buffer_release(b_data);
    return status;
}

/* ---- MatMulInteger --------------------------------------------------------------------------- */

static tssa_status *sum(struct kernel_args *args, const struct product *p, struct tensor *y)
{
    struct buffer *sums = NULL;
    bool done;
    TRY(by_library(args, p, y->data, &done));
    if (done)
        return NULL;
    tssa_status *status = multiply(args, p, &sums);
    if (!status)
        convert_elements((int64_t)tensor_count(y), TSSA_DOUBLE, sums->data, 1, TSSA_INT32, y->data,
                         1, &convert_default);
    buffer_release(sums);
    return status;
}

static tssa_status *run_MatMulInteger(struct kernel_args *args)
{
    struct product p = {0};
    struct tensor *y = NULL;
    tssa_status *status = product_open(args, 1, 2, 3, &p);
    if (!status)
        status = kernel_output(args, 0, TSSA_INT32, p.rank, p.dims, &y);
    if (!status && y)
        status = sum(args, &p, y);
    product_close(&p);
    return status;
}

const struct kernel cpu_kernel_MatMulInteger = {
    .prepare = prepare, .run = run_MatMulInteger, .release = release};

/* ---- QLinearMatMul --------------------------------------------------------------------------- */

static int64_t rows_of(const struct product *p, const struct tensor *y)
{
    return p->columns ? (int64_t)tensor_count(y) / p->columns : 0;
}

static tssa_status *quantize_sums(struct kernel_args *args, const struct product *p,
                                  const struct requantize *r, struct tensor *y, bool *done)
{
    struct buffer *sums = NULL;
    TRY(kernel_scratch(args, tensor_count(y) * sizeof(int32_t), &sums));
    const int32_t *from = sums->data;
    tssa_status *status = by_library(args, p, sums->data, done);
    for (int64_t i = 0; !status && *done && i < rows_of(p, y); i++)
        requantize_channels_i32(r, NULL, from + i * p->columns, p->columns,
                                (char *)y->data + i * p->columns);
    buffer_release(sums);
    return status;
}

static tssa_status *quantize(struct kernel_args *args, const struct product *p,
                             const struct requantize *r, struct tensor *y)
{
    struct buffer *sums = NULL;
    bool done = false;
    TRY(quantize_sums(args, p, r, y, &done));
    if (done)
        return NULL;
    tssa_status *status = multiply(args, p, &sums);
    for (int64_t i = 0; !status && i < rows_of(p, y); i++)
        requantize_channels(r, (const double *)sums->data + i * p->columns, p->columns,
                            (char *)y->data + i * p->columns);
    buffer_release(sums);
    return status;
}

/* Operands: a, scale, zero, b, scale (one, or per column), zero, y scale, zero. */
static tssa_status *run_quantized(struct kernel_args *args, struct product *p, struct requantize *r)
{
    struct tensor *y;
    TRY(product_open(args, 3, 2, 5, p));
    TRY(requantize_open(args, 1, 4, 6, 7, p->columns, r));
    TRY(kernel_output(args, 0, r->dtype, p->rank, p->dims, &y));
    return y ? quantize(args, p, r, y) : NULL;
}

static tssa_status *run_QLinearMatMul(struct kernel_args *args)
{
    struct product p = {0};
    struct requantize r = {0};
    tssa_status *status = run_quantized(args, &p, &r);
    requantize_close(&r);
    product_close(&p);
    return status;
}

const struct kernel cpu_kernel_QLinearMatMul = {
    .prepare = prepare, .run = run_QLinearMatMul, .release = release};
