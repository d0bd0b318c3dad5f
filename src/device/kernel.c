/* SPDX-License-Identifier: Apache-2.0 */
/* What every kernel needs of its arguments: outputs placed, inputs checked. */
#include "device/kernel.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

tssa_status *kernel_prepare(const struct kernel *kernel, const struct ir_op *op,
                            const struct kernel_setup *setup, const void **state)
{
    *state = NULL;
    return kernel->prepare ? kernel->prepare(op, setup, state) : NULL;
}

void kernel_tally_packed(const struct kernel_setup *setup, size_t bytes, uint64_t since)
{
    struct kernel_tally *tally = setup->tally;
    if (!tally)
        return;
    atomic_fetch_add_explicit(&tally->packed_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->nanoseconds, clock_monotonic() - since, memory_order_relaxed);
}

void kernel_release(const struct kernel *kernel, const void *state)
{
    if (kernel->release && state)
        kernel->release(state);
}

static tssa_status *place_in_pool(struct kernel_args *args, const struct kernel_place *place,
                                  size_t bytes, struct tensor *tensor)
{
    if (place && place->wanted && bytes > *place->wanted) {
        *place->wanted = bytes;
        args->env->missed = true;
    }
    struct buffer *buffer = pool_alloc(args->env->pool, bytes);
    TRY_ALLOC(buffer);
    tensor->data = buffer->data;
    tensor->offset = buffer->offset;
    tensor->owner = buffer;
    return NULL;
}

/* Where tensors without elements lie: an address, since memcpy wants one of no bytes as well. */
static _Alignas(TENSOR_ALIGNMENT) const char nothing[TENSOR_ALIGNMENT];

tssa_status *kernel_output(struct kernel_args *args, uint32_t index, tssa_dtype dtype, int rank,
                           const int64_t *dims, struct tensor **tensor)
{
    *tensor = NULL;
    if (index >= args->n_outputs || !args->outputs[index])
        return NULL;

    /* tensor_layout without the call and the message, for the common case. */
    size_t bytes = dtype_info(dtype)->size;
    bool fits = bytes > 0 && rank >= 0 && rank <= TSSA_MAX_RANK;
    for (int i = 0; fits && i < rank; i++)
        fits = dims[i] >= 0 && size_mul(bytes, (size_t)dims[i], &bytes);
    /* Zero bytes may hide dims whose strides overflow. */
    if (__builtin_expect(!fits || bytes == 0 || bytes > PTRDIFF_MAX, 0)) {
        size_t count;
        TRY(tensor_layout(dtype, rank, dims, &count, &bytes));
        if (bytes > PTRDIFF_MAX)
            return ERROR(TSSA_RUNTIME, "output %" PRIu32 " is larger than memory can be", index);
    }

    struct value *value = args->outputs[index];
    struct tensor *out = &value->tensor;
    const struct kernel_place *place = args->places ? &args->places[index] : NULL;
    if (place && place->data && bytes <= place->size) {
        out->data = place->data;
        out->offset = place->offset;
        out->owner = NULL;
    } else if (bytes == 0 && !args->env->stream) {
        out->data = (void *)nothing;
        out->offset = 0;
        out->owner = NULL;
    } else {
        TRY(place_in_pool(args, place, bytes, out));
    }
    value->kind = TSSA_KIND_TENSOR;
    out->dtype = dtype;
    out->rank = rank;
    for (int i = 0; i < rank; i++)
        out->dims[i] = dims[i];
    *tensor = out;
    return NULL;
}

tssa_status *kernel_share(struct kernel_args *args, uint32_t index, uint32_t from, int rank,
                          const int64_t *dims)
{
    if (index >= args->n_outputs || !args->outputs[index])
        return NULL;
    const struct tensor *input;
    TRY(kernel_tensor(args, from, &input));
    size_t count, bytes;
    TRY(tensor_layout(input->dtype, rank, dims, &count, &bytes));
    if (count != tensor_count(input)) {
        char text[160];
        tensor_describe(input, text, sizeof text);
        return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " (%s) cannot take a shape of %zu elements",
                     from, text, count);
    }
    struct value *value = args->outputs[index];
    value_copy(value, args->inputs[from]);
    value->tensor.rank = rank;
    for (int i = 0; i < rank; i++)
        value->tensor.dims[i] = dims[i];
    return NULL;
}

bool kernel_share_piece(struct kernel_args *args, uint32_t index, int64_t first, int rank,
                        const int64_t *dims)
{
    if (!args->pieces || !args->pieces[index] || !args->outputs[index])
        return false;
    struct value *value = args->outputs[index];
    value_copy(value, args->inputs[0]);
    struct tensor *tensor = &value->tensor;
    tensor->data = (char *)tensor->data + first * (int64_t)dtype_info(tensor->dtype)->size;
    tensor->rank = rank;
    for (int i = 0; i < rank; i++)
        tensor->dims[i] = dims[i];
    return true;
}

bool kernel_leads_with_ones(const struct ir_op *op, int64_t axis)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    if (type->kind != TYPE_TENSOR || axis < -type->rank || axis >= type->rank)
        return false;
    axis += axis < 0 ? type->rank : 0;
    for (int64_t i = 0; i < axis; i++)
        if (!dim_is(type->dims[i], 1))
            return false;
    return true;
}

/* Nobody else's: counted once, or where the plan wants the output, which it does for no other
 * reason. */
static bool is_own_memory(const struct tensor *tensor, const struct kernel_place *place)
{
    if (tensor->owner)
        return atomic_load_explicit(&tensor->owner->references, memory_order_acquire) == 1;
    return place && place->data && place->data == tensor->data && place->offset == tensor->offset;
}

bool kernel_take(struct kernel_args *args, uint32_t index, uint32_t from, struct tensor **tensor)
{
    if (!args->last_uses || !args->last_uses[from] || !args->outputs[index] ||
        (args->on_host && args->on_host[from]))
        return false;
    struct value *input = (struct value *)args->inputs[from]; /* a slot of the run */
    if (input->kind != TSSA_KIND_TENSOR ||
        !is_own_memory(&input->tensor, args->places ? &args->places[index] : NULL))
        return false;
    value_move(args->outputs[index], input);
    *tensor = &args->outputs[index]->tensor;
    return true;
}

bool kernel_set_up_name(struct kernel_args *args, const bool *known, struct kernel_call *call,
                        tssa_status *(*run)(struct kernel_args *args))
{
    for (uint32_t k = 1; k < args->n_inputs; k++)
        if (args->inputs[k] && !known[k])
            return false;
    if (args->n_outputs != 1 || !args->outputs[0])
        return false;
    tssa_status *status = run(args);
    if (status) {
        tssa_status_free(status);
        return false;
    }
    struct tensor *name = &args->outputs[0]->tensor;
    const struct tensor *operand = &args->inputs[0]->tensor;
    const uintptr_t offset = (uintptr_t)name->data - (uintptr_t)operand->data;
    if (name->owner != operand->owner || offset + tensor_bytes(name) > tensor_bytes(operand)) {
        value_release(args->outputs[0]); /* a copy after all */
        return false;
    }
    buffer_release(name->owner);
    name->owner = NULL;
    *call = (struct kernel_call){0};
    return true;
}

bool kernel_set_up_piece(struct kernel_args *args, const bool *known, struct kernel_call *call,
                         tssa_status *(*run)(struct kernel_args *args))
{
    static const bool wanted = true;
    struct kernel_args own = *args;
    own.pieces = &wanted;
    return kernel_set_up_name(&own, known, call, run);
}

tssa_status *kernel_scratch(struct kernel_args *args, size_t size, struct buffer **buffer)
{
    *buffer = scratch_take(args->scratch, &args->scratch_use, args->env->pool, size);
    TRY_ALLOC(*buffer);
    return NULL;
}

tssa_status *kernel_tensor(const struct kernel_args *args, uint32_t index,
                           const struct tensor **tensor)
{
    TRY(kernel_optional_tensor(args, index, tensor));
    if (!*tensor)
        return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " is missing", index);
    return NULL;
}

tssa_status *kernel_optional_tensor(const struct kernel_args *args, uint32_t index,
                                    const struct tensor **tensor)
{
    const struct value *value = index < args->n_inputs ? args->inputs[index] : NULL;
    *tensor = NULL;
    if (!value)
        return NULL;
    if (value->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " is not a tensor", index);
    *tensor = &value->tensor;
    return NULL;
}

bool kernel_has_shapes(const struct kernel_args *args)
{
    for (uint32_t i = 0; i < args->n_inputs; i++)
        if (args->inputs[i] && args->inputs[i]->kind != TSSA_KIND_TENSOR)
            return false;
    return true;
}

bool kernel_knows_shapes(const struct kernel_args *args)
{
    return !args->guessed && kernel_has_shapes(args);
}

bool kernel_has_elements(const struct kernel_args *args, uint32_t index)
{
    const struct value *value = index < args->n_inputs ? args->inputs[index] : NULL;
    return !value || (value->kind == TSSA_KIND_TENSOR && value->tensor.data);
}

tssa_status *kernel_check_result(tssa_dtype dtype, int rank, const int64_t *dims)
{
    size_t count, bytes;
    return tensor_layout(dtype, rank, dims, &count, &bytes);
}

static tssa_status *element_error(const struct tensor *tensor, uint32_t index, const char *wanted)
{
    char text[160];
    tensor_describe(tensor, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " must be %s, not %s", index, wanted, text);
}

tssa_status *kernel_ints(const struct kernel_args *args, uint32_t index, int64_t *values,
                         size_t capacity, size_t *count)
{
    const struct tensor *tensor;
    TRY(kernel_tensor(args, index, &tensor));
    if (!dtype_is_integer(tensor->dtype))
        return element_error(tensor, index, "an integer tensor");
    size_t n = tensor_count(tensor);
    if (n > capacity)
        return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " has %zu elements, at most %zu are allowed",
                     index, n, capacity);
    if (tensor->dtype == TSSA_INT64) {
        if (n > 0)
            memcpy(values, tensor->data, n * sizeof *values);
    } else {
        size_t size = dtype_info(tensor->dtype)->size;
        for (size_t i = 0; i < n; i++)
            values[i] = dtype_load_int64(tensor->dtype, (const char *)tensor->data + i * size);
    }
    *count = n;
    return NULL;
}

tssa_status *kernel_scalar_int(const struct kernel_args *args, uint32_t index, int64_t *value)
{
    const struct tensor *tensor;
    TRY(kernel_tensor(args, index, &tensor));
    bool whole = dtype_is_integer(tensor->dtype) || tensor->dtype == TSSA_BOOL;
    if (!whole || tensor_count(tensor) != 1)
        return element_error(tensor, index, "one integer");
    *value = dtype_load_int64(tensor->dtype, tensor->data);
    return NULL;
}

tssa_status *kernel_scalar_double(const struct kernel_args *args, uint32_t index, double *value)
{
    const struct tensor *tensor;
    TRY(kernel_tensor(args, index, &tensor));
    if (!(dtype_is_float(tensor->dtype) || dtype_is_integer(tensor->dtype)) ||
        tensor_count(tensor) != 1)
        return element_error(tensor, index, "one number");
    *value = dtype_load_double(tensor->dtype, tensor->data);
    return NULL;
}

tssa_status *kernel_axis(int64_t axis, int rank, int *result)
{
    if (axis < -rank || axis >= rank)
        return ERROR(TSSA_RUNTIME, "axis %" PRId64 " is outside a tensor of rank %d", axis, rank);
    *result = (int)(axis < 0 ? axis + rank : axis);
    return NULL;
}
