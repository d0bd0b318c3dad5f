/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made from shapes and scalars: ConstantOfShape-25, EyeLike-22, OneHot-11, Range-27 of
 * ai.onnx. */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/generator/range.h"
#include "kernels/cpu/lib/strided.h"

/* ---- ConstantOfShape ------------------------------------------------------------------------- */

struct constant_of_shape {
    tssa_dtype dtype;
    union stored_element value;
};

static tssa_status *constant_of_shape_prepare(const struct ir_op *op,
                                              const struct kernel_setup *setup, const void **state)
{
    const struct tensor *value = ir_attr_tensor(op, "value");
    struct constant_of_shape *constant = ARENA_NEW(setup->arena, struct constant_of_shape);
    TRY_ALLOC(constant);
    constant->dtype = value ? value->dtype : TSSA_FLOAT;
    stored_element_zero(constant->dtype, &constant->value);
    if (value) {
        if (tensor_count(value) != 1)
            return ERROR(TSSA_MALFORMED, "value has %zu elements, not 1", tensor_count(value));
        memcpy(&constant->value, value->data, dtype_info(value->dtype)->size);
    }
    *state = constant;
    return NULL;
}

static tssa_status *constant_of_shape_run(struct kernel_args *args)
{
    const struct constant_of_shape *constant = args->state;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    size_t rank;
    TRY(kernel_ints(args, 0, dims, TSSA_MAX_RANK, &rank));
    TRY(kernel_output(args, 0, constant->dtype, (int)rank, dims, &y));
    if (y)
        contiguous_fill(args->env->team, dtype_info(y->dtype)->size, (int64_t)tensor_count(y),
                        y->data, &constant->value);
    return NULL;
}

const struct kernel cpu_kernel_constant_of_shape = {.prepare = constant_of_shape_prepare,
                                                    .run = constant_of_shape_run};

/* ---- EyeLike --------------------------------------------------------------------------------- */

struct eye_like {
    int64_t dtype; /* UNDEFINED: the operand's */
    int64_t k;
};

static tssa_status *eye_like_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    struct eye_like *eye = ARENA_NEW(setup->arena, struct eye_like);
    TRY_ALLOC(eye);
    eye->dtype = ir_attr_int(op, "dtype", TSSA_UNDEFINED);
    eye->k = ir_attr_int(op, "k", 0);
    if (eye->dtype < 0 || eye->dtype >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "dtype %lld does not exist", (long long)eye->dtype);
    *state = eye;
    return NULL;
}

static tssa_status *eye_like_run(struct kernel_args *args)
{
    const struct eye_like *eye = args->state;
    const struct tensor *x;
    struct tensor *y;
    union stored_element zero, one;
    TRY(kernel_tensor(args, 0, &x));
    if (x->rank != 2)
        return ERROR(TSSA_RUNTIME, "the operand must have rank 2, not %d", x->rank);
    tssa_dtype dtype = eye->dtype ? (tssa_dtype)eye->dtype : x->dtype;
    enum dtype_class cls = dtype_info(dtype)->cls;
    if (cls == DTYPE_CLASS_STRING || cls == DTYPE_CLASS_COMPLEX)
        return ERROR(TSSA_UNSUPPORTED, "%s has no identity matrix", dtype_info(dtype)->ir_name);
    TRY(kernel_output(args, 0, dtype, 2, x->dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    int64_t rows = x->dims[0], columns = x->dims[1];
    stored_element_zero(dtype, &zero);
    dtype_store_int64(dtype, &one, 1);
    size_t size = dtype_info(dtype)->size;
    contiguous_fill(args->env->team, size, rows * columns, y->data, &zero);
    /* The diagonal from (row, column). */
    if (eye->k <= -rows || eye->k >= columns)
        return NULL;
    int64_t row = eye->k < 0 ? -eye->k : 0, column = eye->k > 0 ? eye->k : 0;
    int64_t length = rows - row < columns - column ? rows - row : columns - column;
    struct strided_box box = {.rank = 1, .dims = {length}, .to = {columns + 1}};
    strided_fill(args->env->team, size, &box,
                 (char *)y->data + (size_t)(row * columns + column) * size, &one);
    return NULL;
}

const struct kernel cpu_kernel_eye_like = {.prepare = eye_like_prepare, .run = eye_like_run};

/* ---- OneHot ---------------------------------------------------------------------------------- */

struct one_hot {
    int64_t axis;
};

static tssa_status *one_hot_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                    const void **state)
{
    struct one_hot *one_hot = ARENA_NEW(setup->arena, struct one_hot);
    TRY_ALLOC(one_hot);
    one_hot->axis = ir_op_axis(op);
    *state = one_hot;
    return NULL;
}

/*
 * Floats are truncated, as a cast to int64 does; false where that would not fit, or is no number.
 */
static bool load_index(const struct tensor *x, size_t i, int64_t *value)
{
    const char *element = (const char *)x->data + i * dtype_info(x->dtype)->size;
    if (dtype_is_float(x->dtype)) {
        double number = dtype_load_double(x->dtype, element);
        if (!(fabs(number) < 0x1p62))
            return false;
        *value = (int64_t)number;
        return true;
    }
    *value = dtype_load_int64(x->dtype, element);
    return x->dtype != TSSA_UINT64 || *value >= 0;
}

static tssa_status *one_hot_depth(struct kernel_args *args, int64_t *depth)
{
    const struct tensor *x;
    TRY(kernel_tensor(args, 1, &x));
    bool number = dtype_is_float(x->dtype) || dtype_is_integer(x->dtype);
    if (!number || tensor_count(x) != 1 || !load_index(x, 0, depth) || *depth < 0)
        return ERROR(TSSA_RUNTIME, "depth must be one number that is not negative");
    return NULL;
}

static tssa_status *one_hot_run(struct kernel_args *args)
{
    const struct one_hot *one_hot = args->state;
    const struct tensor *x, *values;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK], depth;
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(one_hot_depth(args, &depth));
    TRY(kernel_tensor(args, 2, &values));
    if (!dtype_is_float(x->dtype) && !dtype_is_integer(x->dtype))
        return ERROR(TSSA_RUNTIME, "the indices must be numbers");
    if (tensor_count(values) != 2)
        return ERROR(TSSA_RUNTIME, "values has %zu elements, not 2", tensor_count(values));
    if (x->rank == TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "the result would have a rank above %d", TSSA_MAX_RANK);
    TRY(kernel_axis(one_hot->axis, x->rank + 1, &axis));
    for (int i = 0, from = 0; i <= x->rank; i++)
        dims[i] = i == axis ? depth : x->dims[from++];
    TRY(kernel_output(args, 0, values->dtype, x->rank + 1, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;

    size_t size = dtype_info(values->dtype)->size;
    const char *on = (const char *)values->data + size;
    contiguous_fill(args->env->team, size, (int64_t)tensor_count(y), y->data, values->data);
    size_t inner = (size_t)dims_product(x->dims, axis, x->rank), count = tensor_count(x);
    for (size_t i = 0; i < count; i++) {
        int64_t at;
        if (!load_index(x, i, &at) || at < -depth || at >= depth)
            continue;
        at += at < 0 ? depth : 0;
        size_t element = (i / inner * (size_t)depth + (size_t)at) * inner + i % inner;
        memcpy((char *)y->data + element * size, on, size);
    }
    return NULL;
}

const struct kernel cpu_kernel_one_hot = {.prepare = one_hot_prepare, .run = one_hot_run};

/* ---- Range ----------------------------------------------------------------------------------- */

struct range {
    bool wide; /* stash_type DOUBLE: half precision computes in double */
};

static tssa_status *range_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    struct range *range = ARENA_NEW(setup->arena, struct range);
    TRY_ALLOC(range);
    int64_t stash = ir_attr_int(op, "stash_type", TSSA_FLOAT);
    if (stash != TSSA_FLOAT && stash != TSSA_DOUBLE)
        return ERROR(TSSA_MALFORMED, "stash_type is %lld, not FLOAT or DOUBLE", (long long)stash);
    range->wide = stash == TSSA_DOUBLE;
    *state = range;
    return NULL;
}

static tssa_status *range_length_error(void)
{
    return ERROR(TSSA_RUNTIME, "delta is 0, or the range has no finite length");
}

/* max(ceil((limit - start) / delta), 0) without rounding; unsigned differences cannot overflow. */
static tssa_status *range_length_int(int64_t start, int64_t limit, int64_t delta, int64_t *length)
{
    uint64_t span =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    if (delta == 0)
        return range_length_error();
    if (delta > 0 ? limit <= start : limit >= start)
        span = 0;
    uint64_t count = span / step + (span % step != 0);
    if (count > INT64_MAX)
        return range_length_error();
    *length = (int64_t)count;
    return NULL;
}

static tssa_status *range_length_float(double start, double limit, double delta, int64_t *length)
{
    double count = ceil((limit - start) / delta);
    if (delta == 0 || !(count < 0x1p62))
        return range_length_error();
    *length = count > 0 ? (int64_t)count : 0;
    return NULL;
}

/* The three scalars, of one type. */
static tssa_status *check_range(const struct tensor *const *operands)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct tensor *x = operands[i];
        if (tensor_count(x) != 1 || x->dtype != operands[0]->dtype ||
            !(dtype_is_float(x->dtype) || dtype_is_integer(x->dtype)))
            return ERROR(TSSA_RUNTIME, "start, limit and delta must be single numbers of one type");
    }
    return NULL;
}

tssa_status *range_length(const struct tensor *const *operands, int64_t *length)
{
    const tssa_dtype dtype = operands[0]->dtype;
    TRY(check_range(operands));
    if (dtype_is_float(dtype))
        return range_length_float(dtype_load_double(dtype, operands[0]->data),
                                  dtype_load_double(dtype, operands[1]->data),
                                  dtype_load_double(dtype, operands[2]->data), length);
    return range_length_int(dtype_load_int64(dtype, operands[0]->data),
                            dtype_load_int64(dtype, operands[1]->data),
                            dtype_load_int64(dtype, operands[2]->data), length);
}

/* Integers wrap around: their low bits are those of the 64-bit sum. */
#define RANGE_INTS(bits)                                                                           \
    VECTOR_PROCEDURE(range_ints_##bits,                                                            \
                     (uint##bits##_t *restrict to, size_t count, uint64_t start, uint64_t delta),  \
                     (to, count, start, delta))                                                    \
    {                                                                                              \
        const uint##bits##_t first = (uint##bits##_t)start, step = (uint##bits##_t)delta;          \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = (uint##bits##_t)(first + (uint##bits##_t)i * step);                            \
    }
RANGE_INTS(32)
RANGE_INTS(64)

static void range_fill_int(int64_t start, int64_t delta, struct tensor *y)
{
    size_t count = tensor_count(y), size = dtype_info(y->dtype)->size;
    if (size == 8) {
        range_ints_64(y->data, count, (uint64_t)start, (uint64_t)delta);
    } else if (size == 4) {
        range_ints_32(y->data, count, (uint64_t)start, (uint64_t)delta);
    } else {
        for (size_t i = 0; i < count; i++)
            dtype_store_int64(y->dtype, (char *)y->data + i * size,
                              (int64_t)((uint64_t)start + i * (uint64_t)delta));
    }
}

/* Numbers of elements are converted from int32, which there are vectors of. */
#define RANGE_FLOATS(type)                                                                         \
    VECTOR_PROCEDURE(range_floats_##type,                                                          \
                     (type *restrict to, int32_t count, type first, type step),                    \
                     (to, count, first, step))                                                     \
    {                                                                                              \
        for (int32_t i = 0; i < count; i++)                                                        \
            to[i] = first + (type)i * step;                                                        \
    }
RANGE_FLOATS(float)
RANGE_FLOATS(double)

/* Element i is start + i * delta, rounded as the element type does after each operation. */
static void range_fill_float(const struct range *range, double start, double delta,
                             struct tensor *y)
{
    size_t count = tensor_count(y), size = dtype_info(y->dtype)->size;
    bool wide = y->dtype == TSSA_DOUBLE || (range->wide && y->dtype != TSSA_FLOAT);
    float first = (float)start, step = (float)delta;
    if (count <= INT32_MAX && y->dtype == TSSA_FLOAT) {
        range_floats_float(y->data, (int32_t)count, first, step);
        return;
    }
    if (count <= INT32_MAX && y->dtype == TSSA_DOUBLE) {
        range_floats_double(y->data, (int32_t)count, start, delta);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double value = start + (double)i * delta;
        if (!wide)
            value = first + (float)i * step;
        dtype_store_double(y->dtype, (char *)y->data + i * size, value);
    }
}

static tssa_status *range_run(struct kernel_args *args)
{
    const struct tensor *operands[3];
    struct tensor *y;
    int64_t length;
    for (uint32_t i = 0; i < 3; i++)
        TRY(kernel_tensor(args, i, &operands[i]));
    TRY(range_length(operands, &length));
    const tssa_dtype dtype = operands[0]->dtype;
    const void *start = operands[0]->data, *delta = operands[2]->data;
    TRY(kernel_output(args, 0, dtype, 1, &length, &y));
    if (y && dtype_is_float(dtype))
        range_fill_float(args->state, dtype_load_double(dtype, start),
                         dtype_load_double(dtype, delta), y);
    else if (y)
        range_fill_int(dtype_load_int64(dtype, start), dtype_load_int64(dtype, delta), y);
    return NULL;
}

const struct kernel cpu_kernel_range = {.prepare = range_prepare, .run = range_run};
