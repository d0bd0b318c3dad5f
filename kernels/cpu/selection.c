/* SPDX-License-Identifier: Apache-2.0 */
/* Compress-11 and NonZero-13 of ai.onnx. */
#include <string.h>

#include "kernels/cpu/gather.h"
#include "kernels/cpu/strided.h"

/* ---- Compress ------------------------------------------------------------------------------------- */

struct compress {
    bool flat; /* no axis: select elements of the flattened operand */
    int64_t axis;
};

static tssa_status *compress_prepare(const struct ir_op *op, struct arena *arena,
                                     const void **state)
{
    struct compress *compress = ARENA_NEW(arena, struct compress);
    TRY_ALLOC(compress);
    compress->flat = !ir_attr(op, "axis");
    compress->axis = ir_attr_int(op, "axis", 0);
    *state = compress;
    return NULL;
}

/* The numbers of the true elements, all below `limit`. */
static tssa_status *true_positions(struct kernel_args *args, const struct tensor *condition,
                                   int64_t limit, struct buffer **positions, int64_t *count)
{
    const bool *values = condition->data;
    int64_t length = condition->dims[0];
    *count = 0;
    for (int64_t i = 0; i < length; i++)
        *count += values[i];
    TRY(kernel_scratch(args, (size_t)*count * sizeof(int64_t), positions));
    int64_t *to = (*positions)->data;
    for (int64_t i = 0; i < length; i++)
        if (values[i])
            *to++ = i;
    if (*count > 0 && to[-1] >= limit)
        return ERROR(TSSA_RUNTIME, "condition is true for number %lld of %lld", (long long)to[-1],
                     (long long)limit);
    return NULL;
}

static tssa_status *compress_run(struct kernel_args *args)
{
    const struct compress *compress = args->state;
    const struct tensor *x, *condition;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK], count;
    int axis = 0, rank = 1;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &condition));
    if (condition->dtype != TSSA_BOOL || condition->rank != 1)
        return ERROR(TSSA_RUNTIME, "condition must be a list of bool");
    int64_t outer = 1, inner = 1, limit = (int64_t)tensor_count(x);
    if (!compress->flat) {
        TRY(kernel_axis(compress->axis, x->rank, &axis));
        outer = dims_product(x->dims, 0, axis);
        inner = dims_product(x->dims, axis + 1, x->rank);
        limit = x->dims[axis];
        rank = x->rank;
        for (int i = 0; i < rank; i++)
            dims[i] = x->dims[i];
    }
    struct buffer *positions = NULL;
    tssa_status *status = true_positions(args, condition, limit, &positions, &count);
    dims[axis] = count;
    if (!status)
        status = kernel_output(args, 0, x->dtype, rank, dims, &y);
    if (!status && y && tensor_count(y) > 0) {
        struct gather_job job = {.from = x->data,
                                 .to = y->data,
                                 .block = (size_t)inner * dtype_info(x->dtype)->size,
                                 .per_batch = count,
                                 .x_batch = limit,
                                 .offsets = positions->data};
        gather_blocks(args->env->team, &job, outer);
    }
    buffer_release(positions);
    return status;
}

const struct cpu_kernel cpu_kernel_compress = {compress_prepare, compress_run};

/* ---- NonZero -------------------------------------------------------------------------------------- */

/* The bits of an element (of a half of it, for 16 bytes) that make it differ from zero: not a sign. */
static const uint64_t value_bits[TSSA_DTYPE_COUNT] = {
    [TSSA_FLOAT] = 0x7fffffff,
    [TSSA_UINT8] = 0xff,
    [TSSA_INT8] = 0xff,
    [TSSA_UINT16] = 0xffff,
    [TSSA_INT16] = 0xffff,
    [TSSA_INT32] = 0xffffffff,
    [TSSA_INT64] = UINT64_MAX,
    [TSSA_STRING] = UINT64_MAX,
    [TSSA_BOOL] = 0xff,
    [TSSA_FLOAT16] = 0x7fff,
    [TSSA_DOUBLE] = INT64_MAX,
    [TSSA_UINT32] = 0xffffffff,
    [TSSA_UINT64] = UINT64_MAX,
    [TSSA_COMPLEX64] = 0x7fffffff7fffffff,
    [TSSA_COMPLEX128] = INT64_MAX,
    [TSSA_BFLOAT16] = 0x7fff,
};

/* Counts the elements that are not zero and, when `to` is not NULL, writes their numbers. */
#define FIND(name, type, test)                                                                     \
    static int64_t find_##name(const void *data, size_t count, uint64_t bits, int64_t *to)         \
    {                                                                                              \
        const type *x = data;                                                                      \
        int64_t found = 0;                                                                         \
        (void)bits;                                                                                \
        for (size_t i = 0; i < count; i++) {                                                       \
            if (!(test))                                                                           \
                continue;                                                                          \
            if (to)                                                                                \
                to[found] = (int64_t)i;                                                            \
            found++;                                                                               \
        }                                                                                          \
        return found;                                                                              \
    }

struct words {
    uint64_t a, b;
};

FIND(1, uint8_t, x[i] & bits)
FIND(2, uint16_t, x[i] & bits)
FIND(4, uint32_t, x[i] & bits)
FIND(8, uint64_t, x[i] & bits)
FIND(16, struct words, (x[i].a | x[i].b) & bits)
FIND(string, tssa_string, x[i].size != 0)

typedef int64_t (*find_fn)(const void *data, size_t count, uint64_t bits, int64_t *to);

static find_fn finder(tssa_dtype dtype)
{
    if (dtype == TSSA_STRING)
        return find_string;
    switch (dtype_info(dtype)->size) {
    case 1:
        return find_1;
    case 2:
        return find_2;
    case 4:
        return find_4;
    case 8:
        return find_8;
    default:
        return find_16;
    }
}

static tssa_status *non_zero_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    uint64_t bits = value_bits[x->dtype];
    if (bits == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s has no zero test", dtype_info(x->dtype)->ir_name);
    find_fn find = finder(x->dtype);
    size_t count = tensor_count(x);
    int64_t found = find(x->data, count, bits, NULL);
    /* A scalar has no coordinates: unlike numpy's, the result is [0, 1] or [0, 0]. */
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){x->rank, found}, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    /* The numbers of the elements go to the last row, and are then taken apart from there. */
    int last = x->rank - 1;
    int64_t *rows = y->data, *numbers = rows + last * found;
    find(x->data, count, bits, numbers);
    for (int64_t n = 0; n < found && last > 0; n++) {
        int64_t rest = numbers[n];
        for (int d = last; d >= 0; d--) {
            rows[d * found + n] = rest % x->dims[d];
            rest /= x->dims[d];
        }
    }
    return NULL;
}

const struct cpu_kernel cpu_kernel_non_zero = {NULL, non_zero_run};
