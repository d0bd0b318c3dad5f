/* SPDX-License-Identifier: Apache-2.0 */
/* Scan outputs and scan inputs; see stack.h. */
#include "runtime/stack.h"

#include <inttypes.h>
#include <string.h>

void stack_init(struct stack *stack, const struct kernel_env *env)
{
    *stack = (struct stack){.pool = env->pool, .stream = env->stream};
}

static tssa_status *copy_bytes(const struct stack *stack, struct buffer *to, size_t offset,
                               struct device_place from, size_t size)
{
    struct device_stream *stream = stack->stream;
    if (size == 0)
        return NULL;
    if (stream)
        return stream->context->device->copy(stream, DEVICE_COPY_WITHIN,
                                             (struct device_place){to->data, offset}, from, size);
    memcpy((char *)to->data + offset, from.memory, size);
    return NULL;
}

void stack_free(struct stack *stack)
{
    buffer_release(stack->buffer);
    stack->buffer = NULL;
}

static tssa_status *stack_grow(struct stack *stack, size_t count)
{
    size_t bytes;
    if (!size_mul(count, stack->element_bytes, &bytes))
        return ERROR(TSSA_RUNTIME, "a scan output is larger than memory can be");
    struct buffer *grown = pool_alloc(stack->pool, bytes);
    TRY_ALLOC(grown);
    tssa_status *status = NULL;
    if (stack->buffer)
        status = copy_bytes(stack, grown, 0, (struct device_place){stack->buffer->data, 0},
                            stack->count * stack->element_bytes);
    buffer_release(stack->buffer);
    stack->buffer = grown;
    return status;
}

static tssa_status *check_element(struct stack *stack, const struct value *value)
{
    if (value->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_RUNTIME, "a scan output must be a tensor");
    const struct tensor *tensor = &value->tensor;
    if (!stack->buffer) {
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
    if (stack->buffer)
        capacity = stack->element_bytes ? stack->buffer->size / stack->element_bytes : SIZE_MAX;
    if (!stack->buffer)
        TRY(stack_grow(stack, first_capacity(stack, hint)));
    else if (needed > capacity)
        TRY(stack_grow(stack, 2 * needed));
    const struct device_place from = {value->tensor.data, value->tensor.offset};
    TRY(copy_bytes(stack, stack->buffer, stack->count * stack->element_bytes, from,
                   stack->element_bytes));
    stack->count++;
    return NULL;
}

/* Element blocks of `inner` bytes, [count][outer] -> [outer][count]; optionally from last to first. */
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
    move_axis(moved->data, stack->buffer->data, stack->count, outer, inner, reverse);
    buffer_release(stack->buffer);
    stack->buffer = moved;
    return NULL;
}

tssa_status *stack_finish(struct stack *stack, const struct tensor *empty, int64_t axis,
                          bool reverse, struct value *out)
{
    if (!stack->buffer) {
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
    tensor->data = stack->buffer->data;
    tensor->owner = stack->buffer;
    stack->buffer = NULL;
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
