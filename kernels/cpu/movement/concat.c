/* SPDX-License-Identifier: Apache-2.0 */
/* Concat-13 and Split-18 of ai.onnx, for every element type. */
#include "kernels/cpu/movement/concat.h"

#include "kernels/cpu/lib/strided.h"

/* ---- Concat ---------------------------------------------------------------------------------- */

struct concat {
    int64_t axis;
};

static tssa_status *concat_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct concat *concat = ARENA_NEW(setup->arena, struct concat);
    TRY_ALLOC(concat);
    /* Concat-1 has a default. */
    concat->axis = ir_op_axis(op);
    *state = concat;
    return NULL;
}

/*
 * An operand of shape [0] beside operands of another rank adds nothing: PyTorch's cat allows it,
 * and exported models start their accumulators with it.
 */
static bool is_legacy_empty(const struct tensor *tensor, int rank)
{
    return tensor->rank == 1 && tensor->dims[0] == 0 && rank != 1;
}

static tssa_status *concat_mismatch(const struct tensor *a, const struct tensor *b, int axis)
{
    char first[160], second[160];
    tensor_describe(a, first, sizeof first);
    tensor_describe(b, second, sizeof second);
    return ERROR(TSSA_RUNTIME, "cannot concatenate %s and %s along axis %d", first, second, axis);
}

/* Does an operand lie in the place of the result, but not where it belongs? Then types promised
 * other sizes than there are. */
static bool is_misplaced(const struct kernel_args *args, const struct tensor *const *tensors,
                         size_t count)
{
    const struct kernel_place *place = args->places ? &args->places[0] : NULL;
    if (!place || !place->data)
        return false;
    const uintptr_t begin = (uintptr_t)place->data, end = begin + place->size;
    bool misplaced = false;
    uintptr_t to = begin;
    for (size_t i = 0; !misplaced && i < count; i++) {
        const uintptr_t data = (uintptr_t)tensors[i]->data;
        const size_t bytes = tensor_bytes(tensors[i]);
        misplaced = bytes > 0 && data != to && data + bytes > begin && data < end;
        to += bytes;
    }
    return misplaced;
}

tssa_status *concat_tensors(struct kernel_args *args, const struct tensor *const *tensors,
                            size_t count, int64_t axis_attr, bool new_axis)
{
    const struct tensor *model = NULL;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK], total = 0;
    int axis;
    if (count == 0)
        return ERROR(TSSA_RUNTIME, "there is nothing to concatenate");
    for (size_t i = 0; i < count; i++)
        if (!model || is_legacy_empty(model, tensors[i]->rank))
            model = tensors[i];
    if (new_axis && model->rank == TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "the result would have a rank above %d", TSSA_MAX_RANK);
    int rank = model->rank + new_axis;
    TRY(kernel_axis(axis_attr, rank, &axis));

    for (size_t i = 0; i < count; i++) {
        const struct tensor *x = tensors[i];
        if (x->dtype != model->dtype)
            return concat_mismatch(model, x, axis);
        if (!new_axis && is_legacy_empty(x, rank))
            continue;
        if (x->rank != model->rank)
            return concat_mismatch(model, x, axis);
        for (int d = 0; d < x->rank; d++)
            if (x->dims[d] != model->dims[d] && (new_axis || d != axis))
                return concat_mismatch(model, x, axis);
        if (!i64_add(total, new_axis ? 1 : x->dims[axis], &total))
            return ERROR(TSSA_LIMIT, "the result's dims do not fit 64 bits");
    }
    for (int d = 0, from = 0; d < rank; d++) {
        if (d == axis) {
            dims[d] = total;
            from += !new_axis;
        } else {
            dims[d] = model->dims[from++];
        }
    }
    if (is_misplaced(args, tensors, count))
        args->places = NULL;
    TRY(kernel_output(args, 0, model->dtype, rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;

    size_t size = dtype_info(y->dtype)->size;
    int64_t outer = dims_product(dims, 0, axis), row = dims_product(dims, axis, rank);
    char *to = y->data;
    for (size_t i = 0; i < count; i++) {
        size_t elements = tensor_count(tensors[i]);
        if (elements == 0)
            continue;
        int64_t part = (int64_t)elements / outer;
        struct strided_box box = {
            .rank = 2, .dims = {outer, part}, .to = {row, 1}, .from = {part, 1}};
        if (to != tensors[i]->data) /* it is there already */
            strided_copy(args->env->team, size, &box, to, tensors[i]->data);
        to += (size_t)part * size;
    }
    return NULL;
}

static tssa_status *concat_run(struct kernel_args *args)
{
    enum { FEW = 16 };
    const struct concat *concat = args->state;
    const struct tensor *few[FEW], **tensors = few;
    struct buffer *scratch = NULL;
    tssa_status *status = NULL;
    if (args->n_inputs > FEW) {
        TRY(kernel_scratch(args, args->n_inputs * sizeof *tensors, &scratch));
        tensors = scratch->data;
    }
    for (uint32_t i = 0; i < args->n_inputs && !status; i++)
        status = kernel_tensor(args, i, &tensors[i]);
    if (!status)
        status = concat_tensors(args, tensors, args->n_inputs, concat->axis, false);
    buffer_release(scratch);
    return status;
}

static bool concat_is_joined(const struct ir_op *op)
{
    return kernel_leads_with_ones(op, ir_op_axis(op));
}

const struct kernel cpu_kernel_concat = {
    .prepare = concat_prepare, .run = concat_run, .is_joined = concat_is_joined};

/* ---- Split ----------------------------------------------------------------------------------- */

struct split {
    int64_t axis;
};

static tssa_status *split_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    struct split *split = ARENA_NEW(setup->arena, struct split);
    TRY_ALLOC(split);
    int64_t parts = ir_attr_int(op, "num_outputs", op->n_results);
    if (parts != op->n_results)
        return ERROR(TSSA_MALFORMED, "num_outputs is %lld, but there are %u outputs",
                     (long long)parts, op->n_results);
    split->axis = ir_op_axis(op);
    *state = split;
    return NULL;
}

/* The size of the next part: equal ones, the last smaller; or what operand 1 says. */
static tssa_status *split_part(const struct kernel_args *args, const struct tensor *sizes,
                               uint32_t index, int64_t dim, int64_t left, int64_t *part)
{
    if (!sizes) {
        int64_t n = args->n_outputs, even = dim / n + (dim % n != 0);
        *part = even < left ? even : left;
        return NULL;
    }
    *part = ((const int64_t *)sizes->data)[index];
    if (*part < 0 || *part > left || (index + 1 == args->n_outputs && *part != left))
        return ERROR(TSSA_RUNTIME,
                     "the sizes to split into do not add up to %lld: number %u is %lld",
                     (long long)dim, index, (long long)*part);
    return NULL;
}

static tssa_status *split_run(struct kernel_args *args)
{
    const struct split *split = args->state;
    const struct tensor *x, *sizes;
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_optional_tensor(args, 1, &sizes));
    TRY(kernel_axis(split->axis, x->rank, &axis));
    if (sizes && (sizes->dtype != TSSA_INT64 || tensor_count(sizes) != args->n_outputs))
        return ERROR(TSSA_RUNTIME, "split must be i64[%u], one size per output", args->n_outputs);

    size_t size = dtype_info(x->dtype)->size;
    bool empty = tensor_count(x) == 0;
    int64_t dims[TSSA_MAX_RANK], left = x->dims[axis];
    int64_t outer = dims_product(x->dims, 0, axis),
            inner = dims_product(x->dims, axis + 1, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        struct tensor *y;
        TRY(split_part(args, sizes, i, x->dims[axis], left, &dims[axis]));
        const int64_t part = dims[axis] * inner, first = (x->dims[axis] - left) * inner;
        left -= dims[axis];
        if (outer == 1 && kernel_share_piece(args, i, first, x->rank, dims))
            continue;
        TRY(kernel_output(args, i, x->dtype, x->rank, dims, &y));
        if (empty || !y)
            continue;
        struct strided_box box = {
            .rank = 2, .dims = {outer, part}, .to = {part, 1}, .from = {x->dims[axis] * inner, 1}};
        strided_copy(args->env->team, size, &box, y->data,
                     (const char *)x->data + (size_t)first * size);
    }
    return NULL;
}

static bool split_is_piece(const struct ir_op *op, uint32_t result)
{
    (void)result;
    return kernel_leads_with_ones(op, ir_op_axis(op));
}

const struct kernel cpu_kernel_split = {
    .prepare = split_prepare, .run = split_run, .is_piece = split_is_piece};
