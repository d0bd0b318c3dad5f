/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulInteger (ai.onnx 10) and QLinearMatMul (10, 21). The operands less their zero points are
 * multiplied in double, which is exact for 8-bit integers.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/lib/gemm.h"
#include "kernels/cpu/quantization/requantize.h"

extern const struct kernel cpu_kernel_MatMulInteger, cpu_kernel_QLinearMatMul;

struct product {
    const struct tensor *a, *b;
    struct buffer *a_data, *b_data, *sums;
    int rank;
    int64_t dims[TSSA_MAX_RANK], columns;
};

/*
 * `tensor` in double. The zero point at operand `index` is one, or one per row (by_row) or column.
 */
static tssa_status *widen(struct kernel_args *args, const struct tensor *tensor, uint32_t index,
                          bool by_row, struct tensor *wide, struct buffer **data)
{
    struct buffer *zeros;
    size_t count, bytes;
    int64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    int64_t rows = tensor->rank > 1 ? tensor->dims[tensor->rank - 2] : 1;
    if (tensor->dtype != TSSA_UINT8 && tensor->dtype != TSSA_INT8)
        return ERROR(TSSA_RUNTIME, "the operands must be INT8 or UINT8, not %s",
                     tssa_dtype_name(tensor->dtype));
    *wide = *tensor;
    wide->dtype = TSSA_DOUBLE;
    TRY(tensor_layout(TSSA_DOUBLE, tensor->rank, tensor->dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, data));
    wide->data = (*data)->data;
    TRY(requantize_vector(args, index, by_row ? rows : columns, 0, &zeros));
    double *to = wide->data;
    convert_elements((int64_t)count, tensor->dtype, tensor->data, 1, TSSA_DOUBLE, to, 1,
                     &convert_default);
    for (size_t i = 0; i < count; i++)
        to[i] -= ((const double *)
                      zeros->data)[by_row ? (int64_t)i / columns % rows : (int64_t)i % columns];
    buffer_release(zeros);
    return NULL;
}

/* Exact sums, and the shape of the result. */
static tssa_status *multiply(struct kernel_args *args, uint32_t b, uint32_t a_zero, uint32_t b_zero,
                             struct product *p)
{
    struct tensor a_wide, b_wide;
    size_t count, bytes;
    TRY(kernel_tensor(args, 0, &p->a));
    TRY(kernel_tensor(args, b, &p->b));
    TRY(matmul_shape(p->a, p->b, &p->rank, p->dims));
    p->columns = p->b->rank > 1 ? p->b->dims[p->b->rank - 1] : 1;
    TRY(widen(args, p->a, a_zero, true, &a_wide, &p->a_data));
    TRY(widen(args, p->b, b_zero, false, &b_wide, &p->b_data));
    TRY(tensor_layout(TSSA_DOUBLE, p->rank, p->dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, &p->sums));
    return matmul_compute(args, NULL, &a_wide, &b_wide, p->sums->data);
}

static void product_close(struct product *p)
{
    buffer_release(p->a_data);
    buffer_release(p->b_data);
    buffer_release(p->sums);
}

static tssa_status *run_MatMulInteger(struct kernel_args *args)
{
    struct product p = {0};
    struct tensor *y = NULL;
    tssa_status *status = multiply(args, 1, 2, 3, &p);
    if (!status)
        status = kernel_output(args, 0, TSSA_INT32, p.rank, p.dims, &y);
    if (!status && y)
        convert_elements((int64_t)tensor_count(y), TSSA_DOUBLE, p.sums->data, 1, TSSA_INT32,
                         y->data, 1, &convert_default);
    product_close(&p);
    return status;
}

const struct kernel cpu_kernel_MatMulInteger = {.run = run_MatMulInteger};

/* Operands: a, scale, zero, b, scale (one, or per column), zero, y scale, zero. */
static tssa_status *run_quantized(struct kernel_args *args, struct product *p, struct requantize *r)
{
    struct tensor *y;
    TRY(multiply(args, 3, 2, 5, p));
    TRY(requantize_open(args, 1, 4, 6, 7, p->columns, r));
    TRY(kernel_output(args, 0, r->dtype, p->rank, p->dims, &y));
    int64_t rows = y && p->columns ? (int64_t)tensor_count(y) / p->columns : 0;
    for (int64_t i = 0; i < rows; i++)
        requantize_channels(r, (const double *)p->sums->data + i * p->columns, p->columns,
                            (char *)y->data + i * p->columns);
    return NULL;
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

const struct kernel cpu_kernel_QLinearMatMul = {.run = run_QLinearMatMul};
