/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that change or read a shape and move no element: Reshape-25, Flatten-25, Squeeze-25,
 * Unsqueeze-25, Shape-25, Size-25 of ai.onnx. The first four share their operand's storage.
 */
#include <limits.h>

#include "kernels/cpu/lib/strided.h"

/* ---- Reshape --------------------------------------------------------------------------------- */

struct reshape {
    bool allow_zero;
};

static tssa_status *reshape_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                    const void **state)
{
    struct reshape *reshape = ARENA_NEW(setup->arena, struct reshape);
    TRY_ALLOC(reshape);
    reshape->allow_zero = ir_attr_int(op, "allowzero", 0) != 0;
    *state = reshape;
    return NULL;
}

static tssa_status *reshape_mismatch(const struct tensor *x, const int64_t *target, size_t rank)
{
    char from[160], to[160];
    struct tensor wanted = {.dtype = x->dtype, .rank = (int)rank};
    for (size_t i = 0; i < rank; i++)
        wanted.dims[i] = target[i];
    tensor_describe(x, from, sizeof from);
    tensor_describe(&wanted, to, sizeof to);
    return ERROR(TSSA_RUNTIME, "cannot reshape %s to %s", from, to);
}

/*
 * The size of the dim that is -1: the other dims' share of the elements. A dim that is copied from
 * the operand cancels out, so that (0, -1) on [0, 80, 4] is [0, 320] although 0 / 0 says nothing.
 */
static bool reshape_rest(const struct tensor *x, const int64_t *target, const bool *copied,
                         int rank, int64_t *rest)
{
    int64_t have = 1, taken = 1;
    for (int i = 0; i < x->rank; i++)
        if (!(i < rank && copied[i]) && !i64_mul(have, x->dims[i], &have))
            return false;
    for (int i = 0; i < rank; i++)
        if (target[i] != -1 && !copied[i] && !i64_mul(taken, target[i], &taken))
            return false;
    if (taken == 0 || have % taken != 0)
        return false;
    *rest = have / taken;
    return true;
}

static tssa_status *reshape_run(struct kernel_args *args)
{
    const struct reshape *reshape = args->state;
    const struct tensor *x;
    int64_t target[TSSA_MAX_RANK], dims[TSSA_MAX_RANK], count = 1;
    bool copied[TSSA_MAX_RANK] = {false};
    size_t rank;
    int unknown = -1;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_ints(args, 1, target, TSSA_MAX_RANK, &rank));
    for (size_t i = 0; i < rank; i++) {
        dims[i] = target[i];
        if (target[i] == 0 && !reshape->allow_zero) {
            if ((int)i >= x->rank)
                return reshape_mismatch(x, target, rank);
            dims[i] = x->dims[i];
            copied[i] = true;
        } else if (target[i] == -1) {
            if (unknown >= 0)
                return ERROR(TSSA_RUNTIME, "the target shape has more than one -1");
            unknown = (int)i;
        } else if (target[i] < 0) {
            return ERROR(TSSA_RUNTIME, "the target shape has the dim %lld", (long long)target[i]);
        }
    }
    if (unknown >= 0 && !reshape_rest(x, dims, copied, (int)rank, &dims[unknown]))
        return reshape_mismatch(x, target, rank);
    for (size_t i = 0; i < rank; i++)
        if (!i64_mul(count, dims[i], &count))
            return reshape_mismatch(x, target, rank);
    if ((uint64_t)count != tensor_count(x))
        return reshape_mismatch(x, target, rank);
    return kernel_share(args, 0, 0, (int)rank, dims);
}

static bool reshape_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    return kernel_set_up_name(args, known, call, reshape_run);
}

const struct kernel cpu_kernel_reshape = {.prepare = reshape_prepare,
                                          .run = reshape_run,
                                          .set_up = reshape_set_up,
                                          .call_size = sizeof(struct kernel_call),
                                          .names = true};

/* ---- Flatten --------------------------------------------------------------------------------- */

struct flatten {
    int64_t axis;
};

static tssa_status *flatten_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                    const void **state)
{
    struct flatten *flatten = ARENA_NEW(setup->arena, struct flatten);
    TRY_ALLOC(flatten);
    flatten->axis = ir_op_axis(op);
    *state = flatten;
    return NULL;
}

static tssa_status *flatten_run(struct kernel_args *args)
{
    const struct flatten *flatten = args->state;
    const struct tensor *x;
    TRY(kernel_tensor(args, 0, &x));
    int64_t axis = flatten->axis < 0 ? flatten->axis + x->rank : flatten->axis;
    if (axis < 0 || axis > x->rank)
        return ERROR(TSSA_RUNTIME, "axis %lld is out of range for rank %d",
                     (long long)flatten->axis, x->rank);
    int64_t dims[2] = {1, 1};
    for (int i = 0; i < x->rank; i++)
        if (!i64_mul(dims[i >= axis], x->dims[i], &dims[i >= axis]))
            return ERROR(TSSA_LIMIT, "the flattened dims do not fit 64 bits");
    return kernel_share(args, 0, 0, 2, dims);
}

static bool flatten_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    return kernel_set_up_name(args, known, call, flatten_run);
}

const struct kernel cpu_kernel_flatten = {.prepare = flatten_prepare,
                                          .run = flatten_run,
                                          .set_up = flatten_set_up,
                                          .call_size = sizeof(struct kernel_call),
                                          .names = true};

/* ---- Squeeze and Unsqueeze ------------------------------------------------------------------- */

/* Marks the axes of operand 1; `rank` is that of the tensor that has them. */
static tssa_status *marked_axes(const struct kernel_args *args, int rank, bool *marked,
                                size_t *count)
{
    int64_t axes[TSSA_MAX_RANK];
    TRY(kernel_ints(args, 1, axes, TSSA_MAX_RANK, count));
    for (int i = 0; i < rank; i++)
        marked[i] = false;
    for (size_t i = 0; i < *count; i++) {
        int axis;
        TRY(kernel_axis(axes[i], rank, &axis));
        if (marked[axis])
            return ERROR(TSSA_RUNTIME, "axis %d is given twice", axis);
        marked[axis] = true;
    }
    return NULL;
}

static tssa_status *squeeze_run(struct kernel_args *args)
{
    const struct tensor *x;
    bool marked[TSSA_MAX_RANK];
    int64_t dims[TSSA_MAX_RANK];
    size_t count;
    int rank = 0;
    TRY(kernel_tensor(args, 0, &x));
    if (args->n_inputs > 1 && args->inputs[1]) {
        TRY(marked_axes(args, x->rank, marked, &count));
    } else {
        for (int i = 0; i < x->rank; i++)
            marked[i] = x->dims[i] == 1;
    }
    for (int i = 0; i < x->rank; i++) {
        if (!marked[i])
            dims[rank++] = x->dims[i];
        else if (x->dims[i] != 1)
            return ERROR(TSSA_RUNTIME, "axis %d has the size %lld and cannot be squeezed", i,
                         (long long)x->dims[i]);
    }
    return kernel_share(args, 0, 0, rank, dims);
}

static bool squeeze_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    return kernel_set_up_name(args, known, call, squeeze_run);
}

const struct kernel cpu_kernel_squeeze = {.run = squeeze_run,
                                          .set_up = squeeze_set_up,
                                          .call_size = sizeof(struct kernel_call),
                                          .names = true};

static tssa_status *unsqueeze_run(struct kernel_args *args)
{
    const struct tensor *x, *axes;
    bool marked[TSSA_MAX_RANK];
    int64_t dims[TSSA_MAX_RANK];
    size_t count;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &axes));
    count = tensor_count(axes);
    if (count > (size_t)(TSSA_MAX_RANK - x->rank))
        return ERROR(TSSA_LIMIT, "the result would have a rank above %d", TSSA_MAX_RANK);
    int rank = x->rank + (int)count;
    TRY(marked_axes(args, rank, marked, &count));
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = marked[i] ? 1 : x->dims[from++];
    return kernel_share(args, 0, 0, rank, dims);
}

static bool unsqueeze_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    return kernel_set_up_name(args, known, call, unsqueeze_run);
}

const struct kernel cpu_kernel_unsqueeze = {.run = unsqueeze_run,
                                            .set_up = unsqueeze_set_up,
                                            .call_size = sizeof(struct kernel_call),
                                            .names = true};

/* ---- Shape and Size -------------------------------------------------------------------------- */

struct shape {
    int64_t start, end;
};

static tssa_status *shape_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    struct shape *shape = ARENA_NEW(setup->arena, struct shape);
    TRY_ALLOC(shape);
    shape->start = ir_attr_int(op, "start", 0);
    shape->end = ir_attr_int(op, "end", INT64_MAX);
    *state = shape;
    return NULL;
}

static int shape_clamp(int64_t axis, int rank)
{
    if (axis < 0)
        axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

static tssa_status *shape_run(struct kernel_args *args)
{
    const struct shape *shape = args->state;
    const struct tensor *x;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    int start = shape_clamp(shape->start, x->rank), end = shape_clamp(shape->end, x->rank);
    int64_t count = end > start ? end - start : 0;
    TRY(kernel_output(args, 0, TSSA_INT64, 1, &count, &y));
    for (int64_t i = 0; y && i < count; i++)
        ((int64_t *)y->data)[i] = x->dims[start + i];
    return NULL;
}

const struct kernel cpu_kernel_shape = {.prepare = shape_prepare, .run = shape_run};

static tssa_status *size_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_output(args, 0, TSSA_INT64, 0, NULL, &y));
    if (y)
        *(int64_t *)y->data = (int64_t)tensor_count(x);
    return NULL;
}

const struct kernel cpu_kernel_size = {.run = size_run};
