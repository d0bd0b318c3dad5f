/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScatterElements-18, ScatterND-18 and TensorScatter-24 of ai.onnx. Each is two steps: the result
 * starts as a copy of the data, or takes its place, then the updates are written. The second step
 * runs on one thread, in the order of the updates, so that duplicate indices always give the same
 * result.
 */
#include <string.h>

#include "kernels/cpu/gather/indices.h"
#include "kernels/cpu/lib/strided.h"

/* ---- Reductions ------------------------------------------------------------------------------ */

enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCE_COUNT };

static const char *const reduction_names[REDUCE_COUNT] = {"none", "add", "mul", "min", "max"};

struct combiner {
    /* to[i] = to[i] op from[i]. */
    void (*block)(void *to, const void *from, size_t count);
    /* to[i * step + offsets[i]] = itself op from[i]. */
    void (*row)(void *to, const void *from, const int64_t *offsets, int64_t step, int64_t count);
};

#define COMBINE(suffix, name, type, expression)                                                    \
    static void name##_##suffix(void *to, const void *from, size_t count)                          \
    {                                                                                              \
        type *t = to;                                                                              \
        const type *f = from;                                                                      \
        for (size_t i = 0; i < count; i++) {                                                       \
            type a = t[i], b = f[i];                                                               \
            t[i] = expression;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name##_row_##suffix(void *to, const void *from, const int64_t *offsets,            \
                                    int64_t step, int64_t count)                                   \
    {                                                                                              \
        type *t = to;                                                                              \
        const type *f = from;                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type *at = &t[i * step + offsets[i]], a = *at, b = f[i];                               \
            *at = expression;                                                                      \
        }                                                                                          \
    }

/* first ? a : b, without a branch that nobody foresees. */
#define CHOOSE(suffix, type, bits)                                                                 \
    static inline type choose_##suffix(bool first, type a, type b)                                 \
    {                                                                                              \
        bits x, y;                                                                                 \
        memcpy(&x, &a, sizeof x);                                                                  \
        memcpy(&y, &b, sizeof y);                                                                  \
        y ^= (x ^ y) & (0 - (bits)first);                                                          \
        memcpy(&b, &y, sizeof b);                                                                  \
        return b;                                                                                  \
    }
CHOOSE(f32, float, uint32_t)
CHOOSE(f64, double, uint64_t)

/* min and max give NaN when either side is, as numpy's do. */
#define COMBINE_FLOAT(suffix, type)                                                                \
    COMBINE(suffix, add, type, a + b)                                                              \
    COMBINE(suffix, mul, type, a *b)                                                               \
    COMBINE(suffix, min, type, choose_##suffix((a < b) | (a != a), a, b))                          \
    COMBINE(suffix, max, type, choose_##suffix((a > b) | (a != a), a, b))

/* Integers wrap around. */
#define COMBINE_INT(suffix, type)                                                                  \
    COMBINE(suffix, add, type, (type)((uint64_t)a + (uint64_t)b))                                  \
    COMBINE(suffix, mul, type, (type)((uint64_t)a * (uint64_t)b))                                  \
    COMBINE(suffix, min, type, a < b ? a : b)                                                      \
    COMBINE(suffix, max, type, a > b ? a : b)

#define HALF_OP(load, store, op) store(load(a) op load(b))
#define HALF_PICK(load, op) ((load(a) op load(b) || load(a) != load(a)) ? a : b)
#define COMBINE_HALF(suffix, load, store)                                                          \
    COMBINE(suffix, add, uint16_t, HALF_OP(load, store, +))                                        \
    COMBINE(suffix, mul, uint16_t, HALF_OP(load, store, *))                                        \
    COMBINE(suffix, min, uint16_t, HALF_PICK(load, <))                                             \
    COMBINE(suffix, max, uint16_t, HALF_PICK(load, >))

#define COMBINE_COMPLEX(suffix, type)                                                              \
    struct suffix {                                                                                \
        type re, im;                                                                               \
    };                                                                                             \
    COMBINE(suffix, add, struct suffix, ((struct suffix){a.re + b.re, a.im + b.im}))               \
    COMBINE(suffix, mul, struct suffix,                                                            \
            ((struct suffix){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))

COMBINE_FLOAT(f32, float)
COMBINE_FLOAT(f64, double)
COMBINE_HALF(f16, half_to_float, float_to_half)
COMBINE_HALF(bf16, bfloat16_to_float, float_to_bfloat16)
COMBINE_INT(i8, int8_t)
COMBINE_INT(i16, int16_t)
COMBINE_INT(i32, int32_t)
COMBINE_INT(i64, int64_t)
COMBINE_INT(u8, uint8_t)
COMBINE_INT(u16, uint16_t)
COMBINE_INT(u32, uint32_t)
COMBINE_INT(u64, uint64_t)
COMBINE(b, add, uint8_t, a || b)
COMBINE(b, mul, uint8_t, a &&b)
COMBINE_COMPLEX(c64, float)
COMBINE_COMPLEX(c128, double)

#define COMBINERS(s)                                                                               \
    {                                                                                              \
        {NULL, NULL}, {add_##s, add_row_##s}, {mul_##s, mul_row_##s}, {min_##s, min_row_##s},      \
        {                                                                                          \
            max_##s, max_row_##s                                                                   \
        }                                                                                          \
    }

static const struct combiner combiners[TSSA_DTYPE_COUNT][REDUCE_COUNT] = {
    [TSSA_FLOAT] = COMBINERS(f32),
    [TSSA_DOUBLE] = COMBINERS(f64),
    [TSSA_FLOAT16] = COMBINERS(f16),
    [TSSA_BFLOAT16] = COMBINERS(bf16),
    [TSSA_INT8] = COMBINERS(i8),
    [TSSA_INT16] = COMBINERS(i16),
    [TSSA_INT32] = COMBINERS(i32),
    [TSSA_INT64] = COMBINERS(i64),
    [TSSA_UINT8] = COMBINERS(u8),
    [TSSA_UINT16] = COMBINERS(u16),
    [TSSA_UINT32] = COMBINERS(u32),
    [TSSA_UINT64] = COMBINERS(u64),
    [TSSA_BOOL] = {{NULL, NULL},
                   {add_b, add_row_b},
                   {mul_b, mul_row_b},
                   {mul_b, mul_row_b},
                   {add_b, add_row_b}},
    [TSSA_COMPLEX64] = {{NULL, NULL}, {add_c64, add_row_c64}, {mul_c64, mul_row_c64}},
    [TSSA_COMPLEX128] = {{NULL, NULL}, {add_c128, add_row_c128}, {mul_c128, mul_row_c128}},
};

/* ---- Common to both -------------------------------------------------------------------------- */

struct scatter {
    int64_t axis;
    enum reduction reduction;
};

static tssa_status *scatter_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                    const void **state)
{
    struct scatter *scatter = ARENA_NEW(setup->arena, struct scatter);
    TRY_ALLOC(scatter);
    const char *name = ir_attr_str(op, "reduction", "none");
    scatter->axis = ir_op_axis(op);
    for (int i = 0; i < REDUCE_COUNT; i++) {
        if (strcmp(name, reduction_names[i]) == 0) {
            scatter->reduction = (enum reduction)i;
            *state = scatter;
            return NULL;
        }
    }
    return ERROR(TSSA_MALFORMED, "reduction is \"%s\", not none, add, mul, min or max", name);
}

static tssa_status *find_combiner(const struct scatter *scatter, tssa_dtype dtype,
                                  const struct combiner **combine)
{
    *combine = &combiners[dtype][scatter->reduction];
    if (!(*combine)->block && scatter->reduction != REDUCE_NONE)
        return ERROR(TSSA_UNSUPPORTED, "reduction \"%s\" does not exist for %s",
                     reduction_names[scatter->reduction], dtype_info(dtype)->ir_name);
    return NULL;
}

static tssa_status *scatter_misfit(const struct tensor *x, const struct tensor *indices,
                                   const struct tensor *updates)
{
    char data[160], index[160], update[160];
    tensor_describe(x, data, sizeof data);
    tensor_describe(indices, index, sizeof index);
    tensor_describe(updates, update, sizeof update);
    return ERROR(TSSA_RUNTIME, "data %s, indices %s and updates %s do not fit together", data,
                 index, update);
}

/* ---- ScatterElements ------------------------------------------------------------------------- */

static inline void put_row(char *to, const char *from, size_t size, const int64_t *offsets,
                           int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)(i * step + offsets[i]) * size, from + (size_t)i * size, size);
}

static void scatter_elements_write(const struct tensor *updates, int axis,
                                   const struct combiner *combine, const int64_t *strides,
                                   const int64_t *offsets, struct tensor *y)
{
    int last = y->rank - 1;
    int64_t columns = updates->dims[last], column_stride = axis == last ? 0 : 1;
    int64_t n_rows = dims_product(updates->dims, 0, last);
    size_t size = dtype_info(y->dtype)->size;
    const char *from = updates->data;
    struct grid rows = {.rank = last};
    for (int i = 0; i < last; i++) {
        rows.dims[i] = updates->dims[i];
        rows.strides[i] = i == axis ? 0 : strides[i];
    }
    for (int64_t r = 0; r < n_rows; r++) {
        char *to = (char *)y->data + (size_t)rows.offset * size;
        if (combine->row)
            combine->row(to, from, offsets, column_stride, columns);
        else if (size == 4)
            put_row(to, from, 4, offsets, column_stride, columns);
        else if (size == 8)
            put_row(to, from, 8, offsets, column_stride, columns);
        else
            put_row(to, from, size, offsets, column_stride, columns);
        from += (size_t)columns * size;
        offsets += columns;
        grid_next(&rows);
    }
}

static tssa_status *scatter_elements_run(struct kernel_args *args)
{
    const struct scatter *scatter = args->state;
    const struct tensor *x, *indices, *updates;
    struct tensor *y;
    struct indices offsets = {0};
    const struct combiner *combine;
    int64_t strides[TSSA_MAX_RANK];
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    TRY(kernel_tensor(args, 2, &updates));
    TRY(kernel_axis(scatter->axis, x->rank, &axis));
    TRY(find_combiner(scatter, x->dtype, &combine));
    bool fits = indices->rank == x->rank && tensor_same_shape(indices, updates) &&
                updates->dtype == x->dtype;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis || indices->dims[i] <= x->dims[i];
    if (!fits)
        return scatter_misfit(x, indices, updates);
    tensor_strides(x->rank, x->dims, strides);
    tssa_status *status =
        indices_read(args, 1, tensor_count(indices), 1, &x->dims[axis], &strides[axis], &offsets);
    if (!status)
        status = update_input(args, &y);
    if (!status && y && offsets.count > 0)
        scatter_elements_write(updates, axis, combine, strides, offsets.data, y);
    indices_release(&offsets);
    return status;
}

const struct kernel cpu_kernel_scatter_elements = {.prepare = scatter_prepare,
                                                   .run = scatter_elements_run};

/* ---- ScatterND ------------------------------------------------------------------------------- */

static bool scatter_nd_fits(const struct tensor *x, const struct tensor *indices,
                            const struct tensor *updates)
{
    if (x->dtype != updates->dtype || indices->rank < 1)
        return false;
    int outer = indices->rank - 1;
    int64_t depth = indices->dims[outer];
    if (depth > x->rank || updates->rank != outer + x->rank - (int)depth)
        return false;
    for (int i = 0; i < updates->rank; i++)
        if (updates->dims[i] != (i < outer ? indices->dims[i] : x->dims[(int)depth + i - outer]))
            return false;
    return true;
}

/* Blocks that lie one behind the other are one. */
static void scatter_blocks(char *to, const char *from, const struct indices *offsets,
                           const struct combiner *combine, size_t elements, size_t size)
{
    const size_t block = elements * size;
    for (size_t i = 0, n; i < offsets->count; i += n, from += n * block) {
        n = indices_in_row(offsets->data + i, offsets->count - i);
        char *start = to + (size_t)offsets->data[i] * block;
        if (combine->block)
            combine->block(start, from, n * elements);
        else
            memcpy(start, from, n * block);
    }
}

static tssa_status *scatter_nd_run(struct kernel_args *args)
{
    const struct scatter *scatter = args->state;
    const struct tensor *x, *indices, *updates;
    struct tensor *y;
    struct indices offsets = {0};
    const struct combiner *combine;
    int64_t strides[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    TRY(kernel_tensor(args, 2, &updates));
    TRY(find_combiner(scatter, x->dtype, &combine));
    if (!scatter_nd_fits(x, indices, updates))
        return scatter_misfit(x, indices, updates);
    int outer = indices->rank - 1, depth = (int)indices->dims[outer];
    size_t count = (size_t)dims_product(indices->dims, 0, outer);
    tensor_strides(depth, x->dims, strides);
    tssa_status *status = indices_read(args, 1, count, depth, x->dims, strides, &offsets);
    if (!status)
        status = update_input(args, &y);
    if (!status && y && tensor_count(updates) > 0)
        scatter_blocks(y->data, updates->data, &offsets, combine,
                       (size_t)dims_product(x->dims, depth, x->rank), dtype_info(x->dtype)->size);
    indices_release(&offsets);
    return status;
}

const struct kernel cpu_kernel_scatter_nd = {.prepare = scatter_prepare, .run = scatter_nd_run};

/* ---- TensorScatter --------------------------------------------------------------------------- */

struct tensor_scatter {
    int64_t axis;
    bool circular;
};

static tssa_status *tensor_scatter_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                           const void **state)
{
    struct tensor_scatter *scatter = ARENA_NEW(setup->arena, struct tensor_scatter);
    TRY_ALLOC(scatter);
    const char *mode = ir_attr_str(op, "mode", "linear");
    scatter->axis = ir_op_axis(op);
    scatter->circular = strcmp(mode, "circular") == 0;
    if (!scatter->circular && strcmp(mode, "linear") != 0)
        return ERROR(TSSA_MALFORMED, "mode is \"%s\", not \"linear\" or \"circular\"", mode);
    *state = scatter;
    return NULL;
}

/* Where batch `b` is written to: within 0 and the cache's length. */
static tssa_status *tensor_scatter_start(const struct tensor_scatter *scatter,
                                         const struct tensor *starts, int64_t b, int64_t length,
                                         int64_t limit, int64_t *start)
{
    int64_t given = starts ? ((const int64_t *)starts->data)[b] : 0;
    *start = given;
    if (scatter->circular) {
        *start = limit > 0 ? given % limit : 0;
        *start += *start < 0 ? limit : 0;
    } else if (given < 0 || given > limit - length) {
        return ERROR(TSSA_RUNTIME,
                     "write_indices[%lld] is %lld; %lld entries do not fit a cache of %lld",
                     (long long)b, (long long)given, (long long)length, (long long)limit);
    }
    return NULL;
}

static tssa_status *tensor_scatter_run(struct kernel_args *args)
{
    const struct tensor_scatter *scatter = args->state;
    const struct tensor *x, *updates, *starts;
    struct tensor *y;
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &updates));
    TRY(kernel_optional_tensor(args, 2, &starts));
    TRY(kernel_axis(scatter->axis, x->rank, &axis));
    bool fits = axis > 0 && updates->rank == x->rank && updates->dtype == x->dtype;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis ? updates->dims[i] <= x->dims[i] : updates->dims[i] == x->dims[i];
    if (!fits) {
        char cache[160], update[160];
        tensor_describe(x, cache, sizeof cache);
        tensor_describe(updates, update, sizeof update);
        return ERROR(TSSA_RUNTIME, "cannot write %s into the cache %s along axis %d", update, cache,
                     axis);
    }
    if (starts &&
        (starts->dtype != TSSA_INT64 || starts->rank != 1 || starts->dims[0] != x->dims[0]))
        return ERROR(TSSA_RUNTIME, "write_indices must be i64[%lld]", (long long)x->dims[0]);
    int64_t start, length = updates->dims[axis], limit = x->dims[axis];
    for (int64_t b = 0; b < x->dims[0]; b++)
        TRY(tensor_scatter_start(scatter, starts, b, length, limit, &start));
    TRY(update_input(args, &y));
    if (!y || tensor_count(updates) == 0)
        return NULL;

    /*
     * Entries of the cache; those of one batch before the axis; each written in one or two pieces.
     */
    size_t entry = (size_t)dims_product(x->dims, axis + 1, x->rank) * dtype_info(x->dtype)->size;
    int64_t rows = dims_product(x->dims, 1, axis);
    const char *from = updates->data;
    char *to = y->data;
    for (int64_t b = 0; b < x->dims[0]; b++) {
        TRY(tensor_scatter_start(scatter, starts, b, length, limit, &start));
        int64_t first = limit - start < length ? limit - start : length;
        for (int64_t r = 0; r < rows; r++) {
            memcpy(to + (size_t)start * entry, from, (size_t)first * entry);
            memcpy(to, from + (size_t)first * entry, (size_t)(length - first) * entry);
            from += (size_t)length * entry;
            to += (size_t)limit * entry;
        }
    }
    return NULL;
}

const struct kernel cpu_kernel_tensor_scatter = {.prepare = tensor_scatter_prepare,
                                                 .run = tensor_scatter_run};
