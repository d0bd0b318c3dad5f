/* SPDX-License-Identifier: Apache-2.0 */
/* Compress-11 and NonZero-13 of ai.onnx. */
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/strided.h"

/* ---- Elements that are not zero ------------------------------------------------------------------- */

/* Blocks of so many elements are passed over at once when all are zero. */
#define BLOCK 16

/* count_NAME: how many elements are not zero. find_NAME: the numbers of the first `found` of them. */
#define FIND(name, type, test)                                                                     \
    VECTOR_CLONES                                                                                  \
    static int64_t count_##name(const void *data, int64_t count, uint64_t bits)                    \
    {                                                                                              \
        const type *x = data;                                                                      \
        int64_t found = 0;                                                                         \
        (void)bits;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                        \
            found += (test) != 0;                                                                  \
        return found;                                                                              \
    }                                                                                              \
    VECTOR_CLONES                                                                                  \
    static void find_##name(const void *data, int64_t count, uint64_t bits, int64_t found,         \
                            int64_t *to)                                                           \
    {                                                                                              \
        const type *x = data;                                                                      \
        (void)bits;                                                                                \
        for (int64_t begin = 0, n = 0; begin < count && n < found; begin += BLOCK) {               \
            int64_t end = count - begin < BLOCK ? count : begin + BLOCK;                           \
            int any = end - begin < BLOCK;                                                         \
            if (!any)                                                                              \
                for (int64_t i = begin; i < begin + BLOCK; i++)                                    \
                    any |= (test) != 0;                                                            \
            for (int64_t i = begin; any && i < end && n < found; i++) {                            \
                to[n] = i;                                                                         \
                n += (test) != 0;                                                                  \
            }                                                                                      \
        }                                                                                          \
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

struct finder {
    int64_t (*count)(const void *data, int64_t count, uint64_t bits);
    void (*find)(const void *data, int64_t count, uint64_t bits, int64_t found, int64_t *to);
};

static const struct finder finders[] = {{count_1, find_1},   {count_2, find_2},
                                        {count_4, find_4},   {count_8, find_8},
                                        {count_16, find_16}, {count_string, find_string}};

static const struct finder *finder_of(tssa_dtype dtype)
{
    if (dtype == TSSA_STRING)
        return &finders[5];
    return &finders[__builtin_ctzll(dtype_info(dtype)->size)];
}

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
    int64_t length = condition->dims[0];
    *count = count_1(condition->data, length, 0xff);
    TRY(kernel_scratch(args, (size_t)*count * sizeof(int64_t), positions));
    int64_t *to = (*positions)->data;
    find_1(condition->data, length, 0xff, *count, to);
    if (*count > 0 && to[*count - 1] >= limit)
        return ERROR(TSSA_RUNTIME, "condition is true for number %lld of %lld",
                     (long long)to[*count - 1], (long long)limit);
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

static tssa_status *non_zero_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    uint64_t bits = value_bits[x->dtype];
    if (bits == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s has no zero test", dtype_info(x->dtype)->ir_name);
    const struct finder *finder = finder_of(x->dtype);
    int64_t count = (int64_t)tensor_count(x), found = finder->count(x->data, count, bits);
    /* A scalar has no coordinates: unlike numpy's, the result is [0, 1] or [0, 0]. */
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){x->rank, found}, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    /* The numbers of the elements go to the last row, and are then taken apart from there. */
    int last = x->rank - 1;
    int64_t *rows = y->data, *numbers = rows + last * found;
    finder->find(x->data, count, bits, found, numbers);
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
