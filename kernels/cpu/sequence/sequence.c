/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences (opset 11, SplitToSequence-24) and optionals (opset 18) of ai.onnx. A sequence holds
 * handles: nothing here copies an element's bytes but SplitToSequence, and that only where the
 * parts are not contiguous. The plan keeps values that flow into these operators out of the run's
 * slab, so a handle never outlives what it points to.
 */
#include "kernels/cpu/lib/strided.h"
#include "kernels/cpu/movement/concat.h"

/* ---- Common ---------------------------------------------------------------------------------- */

static tssa_status *sequence_operand(const struct kernel_args *args, const struct value **value)
{
    *value = args->n_inputs > 0 ? args->inputs[0] : NULL;
    if (!*value || (*value)->kind != TSSA_KIND_SEQUENCE)
        return ERROR(TSSA_RUNTIME, "operand 0 is not a sequence");
    return NULL;
}

static struct value *wanted_output(const struct kernel_args *args)
{
    return args->n_outputs > 0 ? args->outputs[0] : NULL;
}

/* The position that operand `index` gives, from the end when negative: below `limit`. */
static tssa_status *read_position(const struct kernel_args *args, uint32_t index, size_t length,
                                  size_t limit, size_t *position)
{
    int64_t given;
    TRY(kernel_scalar_int(args, index, &given));
    int64_t from_start = given < 0 ? given + (int64_t)length : given;
    if (from_start < 0 || (uint64_t)from_start >= limit)
        return ERROR(TSSA_RUNTIME, "position %lld is outside a sequence of %zu", (long long)given,
                     length);
    *position = (size_t)from_start;
    return NULL;
}

static tssa_status *check_element(const struct tensor *element, tssa_dtype dtype)
{
    if (dtype != TSSA_UNDEFINED && element->dtype != dtype)
        return ERROR(TSSA_RUNTIME, "a sequence of %s cannot hold a %s tensor",
                     dtype_info(dtype)->ir_name, dtype_info(element->dtype)->ir_name);
    return NULL;
}

/* Puts an element at the end; consumes the old handle of `sequence`, on failure too. */
static tssa_status *append(struct value *sequence, const struct value *element)
{
    struct value longer;
    tssa_status *status =
        sequence_insert(sequence, sequence_length(sequence->sequence), element, &longer);
    value_release(sequence);
    if (!status)
        value_move(sequence, &longer);
    return status;
}

/* ---- Construction and access ----------------------------------------------------------------- */

static tssa_status *sequence_construct_run(struct kernel_args *args)
{
    struct value *y = wanted_output(args), sequence;
    const struct tensor *first, *element;
    TRY(kernel_tensor(args, 0, &first));
    if (!y)
        return NULL;
    TRY(sequence_create_for(&args->env->pool->cached, first->dtype, args->n_inputs, &sequence));
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        tssa_status *status = kernel_tensor(args, i, &element);
        if (!status)
            status = check_element(element, first->dtype);
        if (status) {
            value_release(&sequence);
            return status;
        }
        TRY(append(&sequence, args->inputs[i]));
    }
    value_move(y, &sequence);
    return NULL;
}

const struct kernel cpu_kernel_sequence_construct = {.run = sequence_construct_run};

struct sequence_empty {
    tssa_dtype dtype;
};

static tssa_status *sequence_empty_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                           const void **state)
{
    struct sequence_empty *empty = ARENA_NEW(setup->arena, struct sequence_empty);
    TRY_ALLOC(empty);
    int64_t dtype = ir_attr_int(op, "dtype", TSSA_FLOAT);
    if (dtype <= 0 || dtype >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "dtype %lld does not exist", (long long)dtype);
    empty->dtype = (tssa_dtype)dtype;
    *state = empty;
    return NULL;
}

static tssa_status *sequence_empty_run(struct kernel_args *args)
{
    const struct sequence_empty *empty = args->state;
    struct value *y = wanted_output(args);
    return y ? sequence_create(&args->env->pool->cached, empty->dtype, y) : NULL;
}

const struct kernel cpu_kernel_sequence_empty = {.prepare = sequence_empty_prepare,
                                                 .run = sequence_empty_run};

static tssa_status *sequence_at_run(struct kernel_args *args)
{
    const struct value *x;
    struct value *y = wanted_output(args);
    size_t position;
    TRY(sequence_operand(args, &x));
    size_t length = sequence_length(x->sequence);
    TRY(read_position(args, 1, length, length, &position));
    if (y)
        value_copy(y, sequence_element(x->sequence, position));
    return NULL;
}

const struct kernel cpu_kernel_sequence_at = {.run = sequence_at_run, .hands_on = true};

static tssa_status *sequence_insert_run(struct kernel_args *args)
{
    const struct value *x;
    const struct tensor *element;
    struct value *y = wanted_output(args);
    TRY(sequence_operand(args, &x));
    TRY(kernel_tensor(args, 1, &element));
    TRY(check_element(element, sequence_dtype(x->sequence)));
    size_t length = sequence_length(x->sequence), position = length;
    if (args->n_inputs > 2 && args->inputs[2])
        TRY(read_position(args, 2, length, length + 1, &position));
    return y ? sequence_insert(x, position, args->inputs[1], y) : NULL;
}

const struct kernel cpu_kernel_sequence_insert = {.run = sequence_insert_run};

static tssa_status *sequence_erase_run(struct kernel_args *args)
{
    const struct value *x;
    struct value *y = wanted_output(args);
    TRY(sequence_operand(args, &x));
    size_t length = sequence_length(x->sequence), position = length - 1;
    if (args->n_inputs > 1 && args->inputs[1])
        TRY(read_position(args, 1, length, length, &position));
    else if (length == 0)
        return ERROR(TSSA_RUNTIME, "the sequence is empty");
    return y ? sequence_erase(x, position, y) : NULL;
}

const struct kernel cpu_kernel_sequence_erase = {.run = sequence_erase_run};

static tssa_status *sequence_length_run(struct kernel_args *args)
{
    const struct value *x;
    struct tensor *y;
    TRY(sequence_operand(args, &x));
    TRY(kernel_output(args, 0, TSSA_INT64, 0, NULL, &y));
    if (y)
        *(int64_t *)y->data = (int64_t)sequence_length(x->sequence);
    return NULL;
}

const struct kernel cpu_kernel_sequence_length = {.run = sequence_length_run};

/* ---- SplitToSequence ------------------------------------------------------------------------- */

struct split_to_sequence {
    int64_t axis;
    bool keep_dims;
};

static tssa_status *split_to_sequence_prepare(const struct ir_op *op,
                                              const struct kernel_setup *setup, const void **state)
{
    struct split_to_sequence *split = ARENA_NEW(setup->arena, struct split_to_sequence);
    TRY_ALLOC(split);
    split->axis = ir_op_axis(op);
    split->keep_dims = ir_attr_int(op, "keepdims", 1) != 0;
    *state = split;
    return NULL;
}

/* Elements [begin, begin + length) of x along the axis, as a tensor of its own. */
static tssa_status *slice_part(struct kernel_args *args, const struct value *x, int axis,
                               int64_t begin, int64_t length, bool keep_axis, struct value *part)
{
    const struct tensor *from = &x->tensor;
    size_t size = dtype_info(from->dtype)->size, count, bytes;
    int64_t inner = dims_product(from->dims, axis + 1, from->rank);
    int64_t outer = dims_product(from->dims, 0, axis);
    value_copy(part, x);
    part->tensor.dims[axis] = length;
    if (tensor_count(&part->tensor) == 0 || outer == 1) {
        /* The part is contiguous: a handle on the same storage. */
        if (tensor_count(&part->tensor) > 0)
            part->tensor.data = (char *)from->data + (size_t)(begin * inner) * size;
    } else {
        value_release(part);
        *part = (struct value){.kind = TSSA_KIND_NONE};
        struct tensor y = *from;
        y.dims[axis] = length;
        TRY(tensor_layout(y.dtype, y.rank, y.dims, &count, &bytes));
        y.owner = pool_alloc(args->env->pool, bytes);
        TRY_ALLOC(y.owner);
        y.data = y.owner->data;
        struct strided_box box = {.rank = 2,
                                  .dims = {outer, length * inner},
                                  .to = {length * inner, 1},
                                  .from = {from->dims[axis] * inner, 1}};
        strided_copy(args->env->team, size, &box, y.data,
                     (const char *)from->data + (size_t)(begin * inner) * size);
        part->tensor = y;
        part->kind = TSSA_KIND_TENSOR;
    }
    if (!keep_axis) {
        part->tensor.rank--;
        for (int i = axis; i < part->tensor.rank; i++)
            part->tensor.dims[i] = part->tensor.dims[i + 1];
    }
    return NULL;
}

/* The sizes of the parts: all `size` and a smaller last one, or a list. */
struct parts {
    int64_t size;
    const struct tensor *list;
    int64_t count;
};

static tssa_status *read_parts(struct kernel_args *args, int64_t dim, struct parts *parts)
{
    int64_t sum = 0;
    *parts = (struct parts){.size = 1};
    TRY(kernel_optional_tensor(args, 1, &parts->list));
    if (parts->list && !dtype_is_integer(parts->list->dtype))
        return ERROR(TSSA_RUNTIME, "split must hold integers");
    if (parts->list && parts->list->rank == 0) {
        TRY(kernel_scalar_int(args, 1, &parts->size));
        parts->list = NULL;
        if (parts->size < 1)
            return ERROR(TSSA_RUNTIME, "cannot split into parts of %lld", (long long)parts->size);
    }
    parts->count = dim / parts->size + (dim % parts->size != 0);
    if (!parts->list)
        return NULL;
    parts->count = (int64_t)tensor_count(parts->list);
    size_t width = dtype_info(parts->list->dtype)->size;
    for (int64_t i = 0; i < parts->count; i++) {
        int64_t size = dtype_load_int64(parts->list->dtype,
                                        (const char *)parts->list->data + (size_t)i * width);
        if (size < 0 || size > dim - sum)
            return ERROR(TSSA_RUNTIME,
                         "the sizes to split into do not add up to %lld: number %lld is %lld",
                         (long long)dim, (long long)i, (long long)size);
        sum += size;
    }
    if (sum != dim)
        return ERROR(TSSA_RUNTIME, "the sizes to split into add up to %lld, not %lld",
                     (long long)sum, (long long)dim);
    return NULL;
}

static tssa_status *split_to_sequence_run(struct kernel_args *args)
{
    const struct split_to_sequence *split = args->state;
    const struct tensor *x;
    struct value *y = wanted_output(args), sequence;
    struct parts parts;
    int64_t begin = 0;
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_axis(split->axis, x->rank, &axis));
    TRY(read_parts(args, x->dims[axis], &parts));
    bool keep_axis = split->keep_dims || parts.list || parts.size != 1;
    if (!y)
        return NULL;
    TRY(sequence_create_for(&args->env->pool->cached, x->dtype, (size_t)parts.count, &sequence));
    for (int64_t i = 0; i < parts.count; i++) {
        struct value part = {.kind = TSSA_KIND_NONE};
        int64_t left = x->dims[axis] - begin, length = parts.size < left ? parts.size : left;
        if (parts.list)
            length = dtype_load_int64(parts.list->dtype,
                                      (const char *)parts.list->data +
                                          (size_t)i * dtype_info(parts.list->dtype)->size);
        tssa_status *status =
            slice_part(args, args->inputs[0], axis, begin, length, keep_axis, &part);
        if (status) {
            value_release(&sequence);
            return status;
        }
        status = append(&sequence, &part);
        value_release(&part);
        TRY(status);
        begin += length;
    }
    value_move(y, &sequence);
    return NULL;
}

const struct kernel cpu_kernel_split_to_sequence = {.prepare = split_to_sequence_prepare,
                                                    .run = split_to_sequence_run};

/* ---- ConcatFromSequence ---------------------------------------------------------------------- */

struct concat_from_sequence {
    int64_t axis;
    bool new_axis;
};

static tssa_status *concat_from_sequence_prepare(const struct ir_op *op,
                                                 const struct kernel_setup *setup,
                                                 const void **state)
{
    struct concat_from_sequence *concat = ARENA_NEW(setup->arena, struct concat_from_sequence);
    TRY_ALLOC(concat);
    concat->axis = ir_op_axis(op);
    concat->new_axis = ir_attr_int(op, "new_axis", 0) != 0;
    *state = concat;
    return NULL;
}

static tssa_status *concat_from_sequence_run(struct kernel_args *args)
{
    const struct concat_from_sequence *concat = args->state;
    const struct value *x;
    struct buffer *scratch;
    TRY(sequence_operand(args, &x));
    size_t count = sequence_length(x->sequence), bytes;
    if (count == 0)
        return ERROR(TSSA_RUNTIME, "the sequence is empty");
    if (!size_mul(count, sizeof(struct tensor *), &bytes))
        return status_out_of_memory();
    TRY(kernel_scratch(args, bytes, &scratch));
    const struct tensor **tensors = scratch->data;
    tssa_status *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        const struct value *element = sequence_element(x->sequence, i);
        tensors[i] = &element->tensor;
        if (element->kind != TSSA_KIND_TENSOR)
            status = ERROR(TSSA_RUNTIME, "element %zu of the sequence is not a tensor", i);
    }
    if (!status)
        status = concat_tensors(args, tensors, count, concat->axis, concat->new_axis);
    buffer_release(scratch);
    return status;
}

const struct kernel cpu_kernel_concat_from_sequence = {.prepare = concat_from_sequence_prepare,
                                                       .run = concat_from_sequence_run};

/* ---- Optionals: a value, or the kind NONE ---------------------------------------------------- */

static bool has_element(const struct kernel_args *args)
{
    return args->n_inputs > 0 && args->inputs[0] && args->inputs[0]->kind != TSSA_KIND_NONE;
}

static tssa_status *optional_run(struct kernel_args *args)
{
    struct value *y = wanted_output(args);
    if (y && has_element(args))
        value_copy(y, args->inputs[0]);
    else if (y)
        *y = (struct value){.kind = TSSA_KIND_NONE};
    return NULL;
}

const struct kernel cpu_kernel_optional = {.run = optional_run};

static tssa_status *optional_get_element_run(struct kernel_args *args)
{
    struct value *y = wanted_output(args);
    if (!has_element(args))
        return ERROR(TSSA_RUNTIME, "the optional is empty");
    if (y)
        value_copy(y, args->inputs[0]);
    return NULL;
}

const struct kernel cpu_kernel_optional_get_element = {.run = optional_get_element_run,
                                                       .hands_on = true};

static tssa_status *optional_has_element_run(struct kernel_args *args)
{
    struct tensor *y;
    TRY(kernel_output(args, 0, TSSA_BOOL, 0, NULL, &y));
    if (y)
        *(bool *)y->data = has_element(args);
    return NULL;
}

const struct kernel cpu_kernel_optional_has_element = {.run = optional_has_element_run};
