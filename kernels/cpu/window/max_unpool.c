/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxUnpool (ai.onnx 9 to 22): puts elements back where MaxPool's Indices say. Indices count in the
 * shape that the attributes give; a larger output_shape has that shape in its first corner.
 */
#include <inttypes.h>
#include <string.h>

#include "device/window.h"
#include "kernels/cpu/gather/indices.h"
#include "kernels/cpu/lib/lines.h"

static tssa_status *max_unpool_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                       const void **state)
{
    struct window_attrs *attrs = ARENA_NEW(setup->arena, struct window_attrs);
    TRY_ALLOC(attrs);
    *state = attrs;
    return window_decode(op, attrs);
}

/* The shape before pooling, as far as it can be told. */
static tssa_status *unpooled_dims(const struct window_attrs *a, const struct tensor *x,
                                  int64_t *dims)
{
    size_t n = x->rank < 3 ? 0 : (size_t)x->rank - 2;
    if (n == 0 || a->n_kernel != n || (a->n_strides && a->n_strides != n) ||
        (a->n_pads && a->n_pads != 2 * n))
        return ERROR(TSSA_RUNTIME, "the attributes do not fit a tensor of rank %d", x->rank);
    for (size_t i = 0; i < (size_t)x->rank; i++)
        dims[i] = x->dims[i];
    for (size_t i = 0; i < n; i++) {
        int64_t stride = a->n_strides ? a->strides[i] : 1, size;
        int64_t rest = a->kernel[i] - stride - (a->n_pads ? a->pads[i] + a->pads[n + i] : 0);
        if (!i64_mul(x->dims[i + 2], stride, &size) || !i64_add(size, rest, &size))
            return ERROR(TSSA_RUNTIME, "spatial axis %zu is too large", i);
        dims[i + 2] = size < 0 ? 0 : size;
    }
    return NULL;
}

static tssa_status *output_dims(const struct kernel_args *args, const struct tensor *x,
                                const int64_t *unpooled, int64_t *dims)
{
    const struct tensor *given;
    size_t count = (size_t)x->rank;
    memcpy(dims, unpooled, count * sizeof *dims);
    TRY(kernel_optional_tensor(args, 2, &given));
    if (!given)
        return NULL;
    TRY(kernel_ints(args, 2, dims, TSSA_MAX_RANK, &count));
    if (count != (size_t)x->rank)
        return ERROR(TSSA_RUNTIME, "output_shape has %zu entries for rank %d", count, x->rank);
    for (int i = 0; i < x->rank; i++)
        if (dims[i] < unpooled[i])
            return ERROR(TSSA_RUNTIME,
                         "output_shape has %" PRId64 " for axis %d, which needs %" PRId64, dims[i],
                         i, unpooled[i]);
    return NULL;
}

#define PUT(type)                                                                                  \
    static void put_##type(type *restrict y, const type *restrict x,                               \
                           const int64_t *restrict indices, size_t count)                          \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            y[indices[i]] = x[i];                                                                  \
    }
PUT(uint16_t)
PUT(uint32_t)
PUT(uint64_t)

/* Indices count in y itself. */
static void put_elements(const struct tensor *x, const int64_t *indices, struct tensor *y)
{
    const size_t count = tensor_count(x), width = tssa_dtype_size(x->dtype);
    if (width == 2)
        put_uint16_t(y->data, x->data, indices, count);
    else if (width == 4)
        put_uint32_t(y->data, x->data, indices, count);
    else
        put_uint64_t(y->data, x->data, indices, count);
}

static tssa_status *scatter(const struct tensor *x, const struct tensor *indices,
                            const int64_t *unpooled, struct tensor *y)
{
    int64_t total = dims_product(unpooled, 0, x->rank);
    size_t width = tssa_dtype_size(x->dtype), count = tensor_count(x);
    int64_t strides[TSSA_MAX_RANK];
    const bool same = memcmp(unpooled, y->dims, (size_t)x->rank * sizeof *unpooled) == 0;
    if (same && indices_all_inside(indices->data, count, total)) {
        put_elements(x, indices->data, y);
        return NULL;
    }
    tensor_strides(y->rank, y->dims, strides);
    for (size_t i = 0; i < count; i++) {
        int64_t index = ((const int64_t *)indices->data)[i], at = 0;
        if (index < 0 || index >= total)
            return ERROR(TSSA_RUNTIME, "index %" PRId64 " is outside of %" PRId64 " elements",
                         index, total);
        for (int d = x->rank - 1; d >= 0; d--) {
            at += index % unpooled[d] * strides[d];
            index /= unpooled[d];
        }
        memcpy((char *)y->data + (size_t)at * width, (const char *)x->data + i * width, width);
    }
    return NULL;
}

static tssa_status *run_MaxUnpool(struct kernel_args *args)
{
    const struct tensor *x, *indices;
    struct tensor *y;
    int64_t unpooled[TSSA_MAX_RANK], dims[TSSA_MAX_RANK];
    TRY(typed_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    if (indices->dtype != TSSA_INT64 || !tensor_same_shape(x, indices))
        return operand_error(1, indices, "i64 of operand 0's shape");
    TRY(unpooled_dims(args->state, x, unpooled));
    TRY(output_dims(args, x, unpooled, dims));
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    memset(y->data, 0, tensor_bytes(y));
    return scatter(x, indices, unpooled, y);
}

const struct kernel cpu_kernel_MaxUnpool = {.prepare = max_unpool_prepare, .run = run_MaxUnpool};
