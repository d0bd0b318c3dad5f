/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, tensors, and what holds for every kind of value. Sequences and maps have files of their
 * own. */
#include "base/value.h"

#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "base/pool.h"

/* ---- Buffers --------------------------------------------------------------------------------- */

bool buffer_take_memory(struct buffer *buffer, const tssa_allocator *allocator,
                        const struct buffer_space *space, size_t size)
{
    buffer->data = space ? space->allocate(space->user, size)
                         : allocator_alloc_aligned(allocator, size, TENSOR_ALIGNMENT);
    buffer->offset = 0;
    buffer->size = size;
    buffer->allocator = allocator;
    buffer->space = space;
    buffer->pool = NULL;
    return buffer->data != NULL;
}

void buffer_free_memory(struct buffer *buffer)
{
    if (buffer->space)
        buffer->space->release(buffer->space->user, buffer->data, buffer->size);
    else
        allocator_free(buffer->allocator, buffer->data);
}

static void buffer_free(struct buffer *buffer)
{
    buffer_free_memory(buffer);
    allocator_free(buffer->allocator, buffer);
}

struct buffer *buffer_create(const tssa_allocator *allocator, size_t size)
{
    struct buffer *buffer = allocator_alloc(allocator, sizeof *buffer);
    if (!buffer || !buffer_take_memory(buffer, allocator, NULL, size)) {
        allocator_free(allocator, buffer);
        return NULL;
    }
    atomic_init(&buffer->references, 1);
    return buffer;
}

void buffer_release(struct buffer *buffer)
{
    if (!buffer || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    if (buffer->pool)
        pool_take_back(buffer->pool, buffer);
    else
        buffer_free(buffer);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

size_t tensor_count(const struct tensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->dims[i];
    return count;
}

size_t tensor_bytes(const struct tensor *tensor)
{
    return tensor_count(tensor) * dtype_info(tensor->dtype)->size;
}

/* "f32[2, 3]"; rank and dims may be nonsense. */
static void describe(tssa_dtype dtype, int rank, const int64_t *dims, char *text, size_t size)
{
    size_t used = 0;
    /* snprintf tells what it would have written: past the end, `used` stays at the end. */
#define PUT(...)                                                                                   \
    do {                                                                                           \
        int put_ = snprintf(text + used, size - used, __VA_ARGS__);                                \
        if (put_ > 0)                                                                              \
            used += (size_t)put_ < size - used ? (size_t)put_ : size - used - 1;                   \
    } while (0)
    if (size == 0)
        return;
    text[0] = '\0';
    PUT("%s[", dtype_info(dtype)->ir_name);
    for (int i = 0; i < rank && i < TSSA_MAX_RANK; i++)
        PUT("%s%lld", i ? ", " : "", (long long)dims[i]);
    PUT("]");
#undef PUT
}

void tensor_describe(const struct tensor *tensor, char *text, size_t size)
{
    describe(tensor->dtype, tensor->rank, tensor->dims, text, size);
}

/* Room for every dim at full width. */
#define DESCRIPTION_SIZE (TSSA_MAX_RANK * 22 + 32)

tssa_status *tensor_layout(tssa_dtype dtype, int rank, const int64_t *dims, size_t *count,
                           size_t *bytes)
{
    size_t element = dtype_info(dtype)->size;
    if (element == 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "element type %d does not exist", (int)dtype);
    if (rank < 0 || rank > TSSA_MAX_RANK)
        return ERROR(TSSA_INVALID_ARGUMENT, "rank %d is outside 0 to %d", rank, TSSA_MAX_RANK);
    char text[DESCRIPTION_SIZE];
    /* The product without zero dims must fit too, so that strides never overflow. */
    int64_t product = 1, size;
    bool empty = false, fits = true;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            describe(dtype, rank, dims, text, sizeof text);
            return ERROR(TSSA_INVALID_ARGUMENT, "dim %d of %s is negative", i, text);
        }
        empty |= dims[i] == 0;
        fits = fits && i64_mul(product, dims[i] ? dims[i] : 1, &product);
    }
    if (!fits || (!empty && !i64_mul(product, (int64_t)element, &size))) {
        describe(dtype, rank, dims, text, sizeof text);
        return ERROR(TSSA_LIMIT, "%s is larger than the address space", text);
    }
    *count = empty ? 0 : (size_t)product;
    *bytes = *count * element;
    return NULL;
}

tssa_status *tensor_create(const tssa_allocator *allocator, tssa_dtype dtype, int rank,
                           const int64_t *dims, struct tensor *tensor)
{
    size_t count, bytes;
    TRY(tensor_layout(dtype, rank, dims, &count, &bytes));
    struct buffer *buffer = buffer_create(allocator, bytes);
    TRY_ALLOC(buffer);
    if (dtype == TSSA_STRING)
        memset(buffer->data, 0, bytes); /* empty strings, not wild pointers */
    tensor->dtype = dtype;
    tensor->rank = rank;
    if (rank)
        memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    tensor->data = buffer->data;
    tensor->owner = buffer;
    return NULL;
}

bool tensor_same_shape(const struct tensor *a, const struct tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

void value_copy(struct value *to, const struct value *from)
{
    *to = *from;
    switch (from->kind) {
    case TSSA_KIND_NONE:
        break;
    case TSSA_KIND_TENSOR:
        buffer_retain(from->tensor.owner);
        break;
    case TSSA_KIND_SEQUENCE:
        sequence_retain(from->sequence);
        break;
    case TSSA_KIND_MAP:
        value_map_retain(from->map);
        break;
    }
}

void value_release(struct value *value)
{
    switch (value->kind) {
    case TSSA_KIND_NONE:
        break;
    case TSSA_KIND_TENSOR:
        buffer_release(value->tensor.owner);
        break;
    case TSSA_KIND_SEQUENCE:
        sequence_release(value->sequence);
        break;
    case TSSA_KIND_MAP:
        value_map_release(value->map);
        break;
    }
    value->kind = TSSA_KIND_NONE;
}

int value_depth(const struct value *value)
{
    if (value->kind == TSSA_KIND_SEQUENCE)
        return sequence_depth(value->sequence);
    if (value->kind == TSSA_KIND_MAP)
        return value_map_depth(value->map);
    return 0;
}

void value_describe(const struct value *value, char *text, size_t size)
{
    switch (value->kind) {
    case TSSA_KIND_NONE:
        snprintf(text, size, "none");
        break;
    case TSSA_KIND_TENSOR:
        tensor_describe(&value->tensor, text, size);
        break;
    case TSSA_KIND_SEQUENCE:
        snprintf(text, size, "seq<%s>(%zu)", dtype_info(sequence_dtype(value->sequence))->ir_name,
                 sequence_length(value->sequence));
        break;
    case TSSA_KIND_MAP:
        snprintf(text, size, "map");
        break;
    }
}

/* ---- Detaching ------------------------------------------------------------------------------- */

/* Whether the bytes of every string lie in the tensor's own buffer. */
static bool strings_inside(const struct tensor *tensor, size_t count)
{
    const tssa_string *strings = tensor->data;
    uintptr_t begin = (uintptr_t)tensor->owner->data;
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = (uintptr_t)strings[i].data;
        if (strings[i].size && (at < begin || at - begin >= tensor->owner->size))
            return false;
    }
    return true;
}

/* Copies the strings' bytes behind the elements. */
static void copy_strings(tssa_string *to, const tssa_string *from, size_t count)
{
    char *bytes = (char *)(to + count);
    for (size_t i = 0; i < count; i++) {
        to[i] = (tssa_string){bytes, from[i].size};
        if (from[i].size)
            memcpy(bytes, from[i].data, from[i].size);
        bytes += from[i].size;
    }
}

static tssa_status *detach_tensor(const tssa_allocator *allocator, const struct tensor *from,
                                  struct tensor *to)
{
    size_t count = tensor_count(from), bytes = tensor_bytes(from);
    bool strings = from->dtype == TSSA_STRING;
    if (from->owner && !from->owner->pool && (!strings || strings_inside(from, count))) {
        *to = *from;
        buffer_retain(to->owner);
        return NULL;
    }
    size_t room = bytes;
    for (size_t i = 0; strings && i < count; i++)
        if (!size_add(room, ((const tssa_string *)from->data)[i].size, &room))
            return status_out_of_memory();
    struct buffer *buffer = buffer_create(allocator, room);
    TRY_ALLOC(buffer);
    if (strings)
        copy_strings(buffer->data, from->data, count);
    else if (bytes)
        memcpy(buffer->data, from->data, bytes);
    *to = *from;
    to->data = buffer->data;
    to->owner = buffer;
    return NULL;
}

tssa_status *value_detach(const tssa_allocator *allocator, const struct value *from,
                          struct value *to)
{
    struct value out = {.kind = from->kind};
    switch (from->kind) {
    case TSSA_KIND_NONE:
        break;
    case TSSA_KIND_TENSOR:
        TRY(detach_tensor(allocator, &from->tensor, &out.tensor));
        break;
    case TSSA_KIND_SEQUENCE:
        TRY(sequence_detach(allocator, from->sequence, &out));
        break;
    case TSSA_KIND_MAP:
        TRY(value_map_detach(allocator, from->map, &out));
        break;
    }
    *to = out;
    return NULL;
}
