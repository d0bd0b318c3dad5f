/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences: immutable handles on a growing array, like slices in Go.
 *
 * A handle sees the first `length` elements of its array. A handle that sees all of them may append
 * behind itself without disturbing the others; any other change copies the element handles.
 */
#include <string.h>

#include "base/container.h"

struct sequence_array {
    atomic_uint references; /* one per handle */
    const tssa_allocator *allocator;
    struct value *elements;
    size_t count, capacity;
    bool frozen;
};

struct sequence {
    atomic_uint references;
    const tssa_allocator *allocator;
    struct sequence_array *array;
    size_t length;
    tssa_dtype dtype;
    int depth;
};

/* ---- Backing arrays -------------------------------------------------------------------------- */

/* Room for `capacity` elements; none yet, and no handle. */
static struct sequence_array *array_create(const tssa_allocator *allocator, size_t capacity)
{
    size_t bytes;
    if (!size_mul(capacity, sizeof(struct value), &bytes) ||
        !size_add(bytes, sizeof(struct sequence_array), &bytes))
        return NULL;
    struct sequence_array *array = allocator_alloc(allocator, bytes);
    if (!array)
        return NULL;
    atomic_init(&array->references, 0);
    array->allocator = allocator;
    array->elements = (struct value *)(array + 1);
    array->count = 0;
    array->capacity = capacity;
    array->frozen = false;
    return array;
}

static void array_truncate(struct sequence_array *array, size_t count)
{
    while (array->count > count)
        value_release(&array->elements[--array->count]);
}

static void array_destroy(struct sequence_array *array)
{
    array_truncate(array, 0);
    allocator_free(array->allocator, array);
}

static void array_push(struct sequence_array *array, const struct value *element)
{
    value_copy(&array->elements[array->count++], element);
}

/* ---- Handles --------------------------------------------------------------------------------- */

/* A handle on the first `length` elements. When memory runs out, an array without handles is
 * destroyed. */
static tssa_status *handle_create(const tssa_allocator *allocator, struct sequence_array *array,
                                  size_t length, tssa_dtype dtype, int depth, struct value *out)
{
    struct sequence *sequence = allocator_alloc(allocator, sizeof *sequence);
    if (!sequence) {
        if (atomic_load_explicit(&array->references, memory_order_relaxed) == 0)
            array_destroy(array);
        return status_out_of_memory();
    }
    atomic_init(&sequence->references, 1);
    sequence->allocator = allocator;
    sequence->array = array;
    sequence->length = length;
    sequence->dtype = dtype;
    sequence->depth = depth;
    atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
    out->kind = TSSA_KIND_SEQUENCE;
    out->sequence = sequence;
    return NULL;
}

void sequence_retain(struct sequence *sequence)
{
    atomic_fetch_add_explicit(&sequence->references, 1, memory_order_relaxed);
}

void sequence_release(struct sequence *sequence)
{
    if (atomic_fetch_sub_explicit(&sequence->references, 1, memory_order_acq_rel) != 1)
        return;
    struct sequence_array *array = sequence->array;
    allocator_free(sequence->allocator, sequence);
    if (atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) == 1)
        array_destroy(array);
}

tssa_status *sequence_create_for(const tssa_allocator *allocator, tssa_dtype dtype, size_t length,
                                 struct value *out)
{
    struct sequence_array *array = array_create(allocator, length);
    TRY_ALLOC(array);
    return handle_create(allocator, array, 0, dtype, 1, out);
}

tssa_status *sequence_create(const tssa_allocator *allocator, tssa_dtype dtype, struct value *out)
{
    return sequence_create_for(allocator, dtype, 0, out);
}

size_t sequence_length(const struct sequence *sequence)
{
    return sequence->length;
}

tssa_dtype sequence_dtype(const struct sequence *sequence)
{
    return sequence->dtype;
}

int sequence_depth(const struct sequence *sequence)
{
    return sequence->depth;
}

const struct value *sequence_element(const struct sequence *sequence, size_t index)
{
    return &sequence->array->elements[index];
}

/* ---- Changes --------------------------------------------------------------------------------- */

/*
 * Whether the next element may be written behind `sequence` in its own array. When no other handle
 * on the array is left, elements that only released handles saw are dropped first.
 */
static bool may_append_in_place(const struct sequence *sequence)
{
    struct sequence_array *array = sequence->array;
    if (array->frozen)
        return false;
    if (sequence->length < array->count &&
        atomic_load_explicit(&array->references, memory_order_acquire) == 1)
        array_truncate(array, sequence->length);
    return sequence->length == array->count && array->count < array->capacity;
}

/*
 * A new array with elements [0, position), `element` when not NULL, and [position + skip, length).
 */
static struct sequence_array *array_splice(const struct sequence *in, size_t position, size_t skip,
                                           const struct value *element, size_t capacity)
{
    struct sequence_array *array = array_create(in->allocator, capacity);
    if (!array)
        return NULL;
    for (size_t i = 0; i < position; i++)
        array_push(array, &in->array->elements[i]);
    if (element)
        array_push(array, element);
    for (size_t i = position + skip; i < in->length; i++)
        array_push(array, &in->array->elements[i]);
    return array;
}

/* The element types of the result, or an error when `element` does not belong in `in`. */
static tssa_status *check_element(const struct sequence *in, const struct value *element,
                                  tssa_dtype *dtype, int *depth)
{
    *dtype = in->dtype;
    *depth = value_depth(element) + 1;
    if (*depth > VALUE_MAX_DEPTH)
        return ERROR(TSSA_LIMIT, "sequences nest deeper than %d levels", VALUE_MAX_DEPTH);
    if (*depth < in->depth)
        *depth = in->depth;
    if (element->kind != TSSA_KIND_TENSOR || element->tensor.dtype == in->dtype)
        return NULL;
    if (in->dtype != TSSA_UNDEFINED) {
        char text[64];
        tensor_describe(&element->tensor, text, sizeof text);
        return ERROR(TSSA_RUNTIME, "%s does not belong in a sequence of %s", text,
                     dtype_info(in->dtype)->ir_name);
    }
    *dtype = element->tensor.dtype;
    return NULL;
}

tssa_status *sequence_insert(const struct value *in_value, size_t position,
                             const struct value *element, struct value *out)
{
    const struct sequence *in = in_value->sequence;
    if (position > in->length)
        return ERROR(TSSA_RUNTIME, "cannot insert at %zu in a sequence of %zu", position,
                     in->length);
    tssa_dtype dtype;
    int depth;
    TRY(check_element(in, element, &dtype, &depth));

    struct value result;
    if (position == in->length && may_append_in_place(in)) {
        TRY(handle_create(in->allocator, in->array, in->length + 1, dtype, depth, &result));
        array_push(in->array, element);
    } else {
        size_t capacity = in->length + 1;
        if (position == in->length)
            capacity = in->length < 2 ? 4 : in->length * 2;
        struct sequence_array *array = array_splice(in, position, 0, element, capacity);
        TRY_ALLOC(array);
        TRY(handle_create(in->allocator, array, in->length + 1, dtype, depth, &result));
    }
    *out = result;
    return NULL;
}

tssa_status *sequence_erase(const struct value *in_value, size_t position, struct value *out)
{
    const struct sequence *in = in_value->sequence;
    if (position >= in->length)
        return ERROR(TSSA_RUNTIME, "cannot erase element %zu of a sequence of %zu", position,
                     in->length);
    struct sequence_array *array = in->array;
    if (position + 1 != in->length) {
        array = array_splice(in, position, 1, NULL, in->length - 1);
        TRY_ALLOC(array);
    }
    struct value result;
    TRY(handle_create(in->allocator, array, in->length - 1, in->dtype, in->depth, &result));
    *out = result;
    return NULL;
}

void sequence_freeze(struct value *value)
{
    if (value->kind == TSSA_KIND_MAP) {
        struct value *values = (struct value *)value_map_values(value->map);
        sequence_freeze(values);
    }
    if (value->kind != TSSA_KIND_SEQUENCE || value->sequence->array->frozen)
        return;
    struct sequence_array *array = value->sequence->array;
    array->frozen = true;
    for (size_t i = 0; i < array->count; i++)
        sequence_freeze(&array->elements[i]);
}

tssa_status *sequence_detach(const tssa_allocator *allocator, const struct sequence *from,
                             struct value *to)
{
    struct sequence_array *array = array_create(allocator, from->length);
    TRY_ALLOC(array);
    for (; array->count < from->length; array->count++) {
        tssa_status *status = value_detach(allocator, &from->array->elements[array->count],
                                           &array->elements[array->count]);
        if (status) {
            array_destroy(array);
            return status;
        }
    }
    array->frozen = true;
    return handle_create(allocator, array, from->length, from->dtype, from->depth, to);
}
