/* SPDX-License-Identifier: Apache-2.0 */
/* Scan outputs and scan inputs; see stack.h. */
#include "runtime/stack.h"

#include <inttypes.h>
#include <string.h>

void stack_init(struct stack *stack, const struct kernel_env *env, const struct kernel_place *place)
{
    *stack = (struct stack){.pool = env->pool, .stream = env->stream};
    if (place && !env->stream)
        stack->place = *place;
}

static tssa_status *copy_bytes(const struct stack *stack, struct device_place to,
                               struct device_place from, size_t size)
{
    struct device_stream *stream = stack->stream;
    if (size == 0)
        return NULL;
    if (stream)
        return stream->context->device->copy(stream, DEVICE_COPY_WITHIN, to, from, size);
    memcpy((char *)to.memory + to.offset, from.memory, size);
    return NULL;
}

void stack_free(struct stack *stack)
{
    buffer_release(stack->owner);
    stack->owner = NULL;
    stack->data = NULL;
}

static void set_memory(struct stack *stack, struct buffer *buffer)
{
    buffer_release(stack->owner);
    stack->owner = buffer;
    stack->data = buffer->data;
    stack->offset = buffer->offset;
    stack->capacity = buffer->size;
}

static tssa_status *stack_grow(struct stack *stack, size_t count)
{
    size_t bytes;
    if (!size_mul(count, stack->element_bytes, &bytes))
        return ERROR(TSSA_RUNTIME, "a scan output is larger than memory can be");
    struct buffer *grown = pool_alloc(stack->pool, bytes);
    TRY_ALLOC(grown);
    tssa_status *status = NULL;
    if (stack->data)
        status = copy_bytes(stack, (struct device_place){grown->data, grown->offset},
                            (struct device_place){stack->data, stack->offset},
                            stack->count * stack->element_bytes);
    set_memory(stack, grown);
    return status;
}

/* In the place of the result, which is as large as runs need it: less than the most that there may
 * be. */
static bool stack_in_place(struct stack *stack)
{
    if (!stack->place.data || stack->element_bytes > stack->place.size)
        return false;
    stack->data = stack->place.data;
    stack->capacity = stack->place.size;
    return true;
}

static tssa_status *check_element(struct stack *stack, const struct value *value)
{
    if (value->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_RUNTIME, "a scan output must be a tensor");
    const struct tensor *tensor = &value->tensor;
    if (!stack->data) {
        if (tensor->rank >= TSSA_MAX_RANK)
            return ERROR(TSSA_RUNTIME, "a scan output's rank would exceed %d", TSSA_MAX_RANK);
        stack->element = *tensor;
        stack->element.owner = NULL;
        stack->element_bytes = tensor_bytes(tensor);
        return NULL;
    }
    if (tensor->dtype == stack->element.dtype && tensor_same_shape(tensor, &stack->element))
        return NULL;
    char first[160], now[160];
    tensor_describe(&stack->element, first, sizeof first);
    tensor_describe(tensor, now, sizeof now);
    return ERROR(TSSA_RUNTIME, "a scan output changes from %s to %s in iteration %zu", first, now,
                 stack->count);
}

/* The most that is reserved ahead for a trip count that a model merely claims. */
#define STACK_HINT_ELEMENTS 4096
#define STACK_HINT_BYTES ((size_t)64 << 20)

static size_t first_capacity(const struct stack *stack, int64_t hint)
{
    bool modest = hint > 0 && hint < STACK_HINT_ELEMENTS &&
                  stack->element_bytes <= STACK_HINT_BYTES / (size_t)hint;
    return modest ? (size_t)hint : 1;
}

tssa_status *stack_push(struct stack *stack, const struct value *value, int64_t hint)
{
    TRY(check_element(stack, value));
    size_t needed = stack->count + 1, capacity = 0;
    const size_t first = first_capacity(stack, hint);
    if (stack->data)
        capacity = stack->element_bytes ? stack->capacity / stack->element_bytes : SIZE_MAX;
    if (!stack->data && !stack_in_place(stack))
        TRY(stack_grow(stack, first));
    else if (stack->count && needed > capacity)
        TRY(stack_grow(stack, 2 * needed));
    const struct device_place from = {value->tensor.data, value->tensor.offset};
    const struct device_place to = {stack->data,
                                    stack->offset + stack->count * stack->element_bytes};
    TRY(copy_bytes(stack, to, from, stack->element_bytes));
    stack->count++;
    return NULL;
}

/*
 * Element blocks of `inner` bytes, [count][outer] -> [outer][count]; optionally from last to first.
 */
static void move_axis(char *to, const char *from, size_t count, size_t outer, size_t inner,
                      bool reverse)
{
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < count; i++) {
            size_t source = reverse ? count - 1 - i : i;
            memcpy(to + (o * count + i) * inner, from + (source * outer + o) * inner, inner);
        }
}

static tssa_status *reorder(struct stack *stack, int axis, bool reverse)
{
    size_t outer = 1, inner = tssa_dtype_size(stack->element.dtype),
           bytes = stack->count * stack->element_bytes;
    for (int i = 0; i < stack->element.rank; i++)
        *(i < axis ? &outer : &inner) *= (size_t)stack->element.dims[i];
    if (bytes == 0 || (axis == 0 && !reverse))
        return NULL;
    struct buffer *moved = pool_alloc(stack->pool, bytes);
    TRY_ALLOC(moved);
    move_axis(moved->data, stack->data, stack->count, outer, inner, reverse);
    set_memory(stack, moved);
    return NULL;
}

tssa_status *stack_finish(struct stack *stack, const struct tensor *empty, int64_t axis,
                          bool reverse, struct value *out)
{
    if (!stack->data) {
        stack->element = *empty;
        TRY(stack_grow(stack, 0));
    }
    int rank = stack->element.rank + 1;
    if (axis < -rank || axis >= rank)
        return ERROR(TSSA_RUNTIME, "scan output axis %" PRId64 " is out of range for rank %d", axis,
                     rank);
    int at = (int)(axis < 0 ? axis + rank : axis);
    TRY(reorder(stack, at, reverse));
    *out = (struct value){.kind = TSSA_KIND_TENSOR};
    struct tensor *tensor = &out->tensor;
    tensor->dtype = stack->element.dtype;
    tensor->rank = rank;
    for (int i = 0, from = 0; i < rank; i++)
        tensor->dims[i] = i == at ? (int64_t)stack->count : stack->element.dims[from++];
    tensor->data = stack->data;
    tensor->offset = stack->offset;
    tensor->owner = stack->owner;
    stack->owner = NULL;
    stack->data = NULL;
    stack->count = 0;
    return NULL;
}

tssa_status *slice_along(struct pool *pool, const struct tensor *tensor, int axis, int64_t i,
                         struct value *out)
{
    size_t outer = 1, inner = tssa_dtype_size(tensor->dtype), count = (size_t)tensor->dims[axis];
    struct value result = {.kind = TSSA_KIND_TENSOR,
                           .tensor = {.dtype = tensor->dtype, .rank = tensor->rank - 1}};
    for (int d = 0; d < tensor->rank; d++) {
        if (d == axis)
            continue;
        result.tensor.dims[d < axis ? d : d - 1] = tensor->dims[d];
        *(d < axis ? &outer : &inner) *= (size_t)tensor->dims[d];
    }
    const char *from = (const char *)tensor->data + (size_t)i * inner;
    if (outer == 1) {
        result.tensor.data = (void *)from;
        result.tensor.owner = tensor->owner;
        buffer_retain(tensor->owner);
    } else {
        struct buffer *buffer = pool_alloc(pool, outer * inner);
        TRY_ALLOC(buffer);
        for (size_t o = 0; o < outer && inner; o++)
            memcpy((char *)buffer->data + o * inner, from + o * count * inner, inner);
        result.tensor.data = buffer->data;
        result.tensor.owner = buffer;
    }
    *out = result;
    return NULL;
}
