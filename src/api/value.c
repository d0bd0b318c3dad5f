/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_value: handles on runtime values. */
#include <inttypes.h>
#include <string.h>

#include "api/handles.h"

tssa_status *value_handle(const tssa_allocator *allocator, struct value *value, tssa_value **out)
{
    struct tssa_value *handle = allocator_alloc(allocator, sizeof *handle);
    if (!handle) {
        value_release(value);
        return status_out_of_memory();
    }
    handle->allocator = allocator;
    handle->device = NULL;
    value_move(&handle->value, value);
    /* No run appends behind its elements: what it appended would be the run's, and outlive it. */
    sequence_freeze(&handle->value);
    *out = handle;
    return NULL;
}

static tssa_status *check_arguments(const tssa_context *context, int rank, const int64_t *dims,
                                    tssa_value **out)
{
    if (!context || !out || (rank > 0 && !dims))
        return ERROR(TSSA_INVALID_ARGUMENT, "a context, dims or result pointer is NULL");
    return NULL;
}

tssa_status *tssa_tensor_create(tssa_context *context, tssa_dtype dtype, int rank,
                                const int64_t *dims, tssa_value **out)
{
    TRY(check_arguments(context, rank, dims, out));
    struct value value = {.kind = TSSA_KIND_TENSOR};
    TRY(tensor_create(&context->allocator, dtype, rank, dims, &value.tensor));
    size_t bytes = tensor_bytes(&value.tensor);
    if (bytes)
        memset(value.tensor.data, 0, bytes);
    return value_handle(&context->allocator, &value, out);
}

tssa_status *tssa_tensor_borrow(tssa_context *context, tssa_dtype dtype, int rank,
                                const int64_t *dims, void *data, size_t size, tssa_value **out)
{
    size_t count, bytes, element = tssa_dtype_size(dtype);
    size_t alignment = element < sizeof(void *) ? element : sizeof(void *);
    TRY(check_arguments(context, rank, dims, out));
    TRY(tensor_layout(dtype, rank, dims, &count, &bytes));
    if (size < bytes || (bytes && !data))
        return ERROR(TSSA_INVALID_ARGUMENT, "the tensor needs %zu bytes but the memory has %zu",
                     bytes, size);
    if (alignment > 1 && (uintptr_t)data % alignment != 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "the memory is not aligned to %zu bytes", alignment);
    struct value value = {.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = dtype, .rank = rank, .data = data}};
    if (rank > 0)
        memcpy(value.tensor.dims, dims, (size_t)rank * sizeof *dims);
    return value_handle(&context->allocator, &value, out);
}

tssa_status *tssa_tensor_borrow_on(tssa_context *context, const char *name, tssa_dtype dtype,
                                   int rank, const int64_t *dims, void *memory, size_t size,
                                   tssa_value **out)
{
    const struct device *device = device_find(name);
    TRY(check_arguments(context, rank, dims, out));
    if (!name || !device || device->is_host)
        return ERROR(TSSA_INVALID_ARGUMENT, "there is no device \"%s\" with memory of its own",
                     name ? name : "");
    if (dtype == TSSA_STRING)
        return ERROR(TSSA_INVALID_ARGUMENT, "strings are in the host's memory alone");
    TRY(tssa_tensor_borrow(context, dtype, rank, dims, memory, size, out));
    (*out)->device = device;
    device_print_name(device, device_number(name), (*out)->where);
    return NULL;
}

static tssa_status *check_host(const tssa_value *value)
{
    if (!value->device)
        return NULL;
    return ERROR(TSSA_INVALID_ARGUMENT, "a tensor lies in memory of %s: only a run takes it",
                 value->where);
}

tssa_status *tssa_tensor_create_strings(tssa_context *context, int rank, const int64_t *dims,
                                        const tssa_string *strings, tssa_value **out)
{
    size_t count, bytes;
    TRY(check_arguments(context, rank, dims, out));
    TRY(tensor_layout(TSSA_STRING, rank, dims, &count, &bytes));
    if (count && !strings)
        return ERROR(TSSA_INVALID_ARGUMENT, "strings is NULL");
    struct value borrowed = {
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = TSSA_STRING, .rank = rank, .data = (void *)strings}};
    if (rank > 0)
        memcpy(borrowed.tensor.dims, dims, (size_t)rank * sizeof *dims);
    struct value value;
    TRY(value_detach(&context->allocator, &borrowed, &value));
    return value_handle(&context->allocator, &value, out);
}

tssa_status *tssa_sequence_create(tssa_context *context, tssa_dtype dtype, size_t count,
                                  tssa_value *const *elements, tssa_value **out)
{
    struct value value, longer;
    TRY(check_arguments(context, 0, NULL, out));
    if (count && !elements)
        return ERROR(TSSA_INVALID_ARGUMENT, "elements is NULL");
    TRY(sequence_create_for(&context->allocator, dtype, count, &value));
    for (size_t i = 0; i < count; i++) {
        tssa_status *status = elements[i] ? check_host(elements[i])
                                          : ERROR(TSSA_INVALID_ARGUMENT, "element %zu is NULL", i);
        if (!status)
            status = sequence_insert(&value, i, &elements[i]->value, &longer);
        value_release(&value);
        TRY(status);
        value_move(&value, &longer);
    }
    return value_handle(&context->allocator, &value, out);
}

tssa_status *tssa_map_create(tssa_context *context, tssa_value *keys, tssa_value *values,
                             tssa_value **out)
{
    struct value value;
    TRY(check_arguments(context, 0, NULL, out));
    if (!keys || !values)
        return ERROR(TSSA_INVALID_ARGUMENT, "keys or values is NULL");
    TRY(check_host(keys));
    TRY(check_host(values));
    TRY(value_map_create(&context->allocator, &keys->value, &values->value, &value));
    return value_handle(&context->allocator, &value, out);
}

tssa_status *tssa_none_create(tssa_context *context, tssa_value **out)
{
    struct value value = {.kind = TSSA_KIND_NONE};
    TRY(check_arguments(context, 0, NULL, out));
    return value_handle(&context->allocator, &value, out);
}

void tssa_value_free(tssa_value *value)
{
    if (!value)
        return;
    value_release(&value->value);
    allocator_free(value->allocator, value);
}

/* ---- Reading --------------------------------------------------------------------------------- */

tssa_kind tssa_value_kind(const tssa_value *value)
{
    return value ? value->value.kind : TSSA_KIND_NONE;
}

static const struct tensor *as_tensor(const tssa_value *value)
{
    return value && value->value.kind == TSSA_KIND_TENSOR ? &value->value.tensor : NULL;
}

const char *tssa_value_device(const tssa_value *value)
{
    return value && value->device ? value->where : NULL;
}

tssa_dtype tssa_value_dtype(const tssa_value *value)
{
    if (value && value->value.kind == TSSA_KIND_SEQUENCE)
        return sequence_dtype(value->value.sequence);
    return as_tensor(value) ? value->value.tensor.dtype : TSSA_UNDEFINED;
}

int tssa_tensor_rank(const tssa_value *value)
{
    return as_tensor(value) ? value->value.tensor.rank : 0;
}

const int64_t *tssa_tensor_dims(const tssa_value *value)
{
    return as_tensor(value) ? value->value.tensor.dims : NULL;
}

void *tssa_tensor_data(const tssa_value *value)
{
    return as_tensor(value) ? value->value.tensor.data : NULL;
}

size_t tssa_value_count(const tssa_value *value)
{
    switch (tssa_value_kind(value)) {
    case TSSA_KIND_TENSOR:
        return tensor_count(&value->value.tensor);
    case TSSA_KIND_SEQUENCE:
        return sequence_length(value->value.sequence);
    case TSSA_KIND_MAP:
        return tensor_count(&value_map_keys(value->value.map)->tensor);
    case TSSA_KIND_NONE:
        break;
    }
    return 0;
}

static const struct value *element_of(const struct value *value, size_t index)
{
    if (value->kind == TSSA_KIND_SEQUENCE && index < sequence_length(value->sequence))
        return sequence_element(value->sequence, index);
    if (value->kind == TSSA_KIND_MAP && index < 2)
        return index == 0 ? value_map_keys(value->map) : value_map_values(value->map);
    return NULL;
}

tssa_status *tssa_value_element(const tssa_value *value, size_t index, tssa_value **out)
{
    if (!value || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "the value or the result pointer is NULL");
    const struct value *element = element_of(&value->value, index);
    if (!element)
        return ERROR(TSSA_INVALID_ARGUMENT, "the value has no element %zu", index);
    struct value copy;
    value_copy(&copy, element);
    return value_handle(value->allocator, &copy, out);
}
