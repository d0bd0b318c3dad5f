/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole values in files: TensorProto, SequenceProto, MapProto and OptionalProto (onnx-data.proto).
 */
#include <string.h>

#include "base/dtype.h"
#include "onnx/tensor_proto.h"

/* SequenceProto.DataType and OptionalProto.DataType, which agree. */
enum {
    ELEMENT_UNDEFINED = 0,
    ELEMENT_TENSOR = 1,
    ELEMENT_SPARSE = 2,
    ELEMENT_SEQUENCE = 3,
    ELEMENT_MAP = 4,
    ELEMENT_OPTIONAL = 5
};

struct reader {
    const tssa_allocator *allocator;
    struct wire_file file;
    tssa_dtype dtype; /* of empty sequences */
};

/* ---- Reading --------------------------------------------------------------------------------- */

static tssa_status *read_tensor(struct reader *reader, const Onnx__TensorProto *proto,
                                struct value *value)
{
    struct tensor tensor;
    struct tensor_source source;
    TRY(onnx_tensor_header(proto, &tensor));
    TRY(onnx_tensor_locate(&reader->file, proto, &tensor, &source));
    size_t size = tensor_bytes(&tensor);
    if (!size_add(size, source.string_size, &size))
        return status_out_of_memory();
    tensor.owner = buffer_create(reader->allocator, size);
    TRY_ALLOC(tensor.owner);
    tensor.data = tensor.owner->data;
    onnx_tensor_read(&tensor, &source, tensor.data, (char *)tensor.data + tensor_bytes(&tensor));
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensor};
    return NULL;
}

static tssa_status *read_sequence(struct reader *reader, const Onnx__SequenceProto *proto,
                                  struct value *value);
static tssa_status *read_optional(struct reader *reader, const Onnx__OptionalProto *proto,
                                  struct value *value);

static tssa_status *map_keys(struct reader *reader, const Onnx__MapProto *proto, struct value *keys)
{
    Onnx__TensorProto tensor = ONNX__TENSOR_PROTO__INIT;
    int64_t count = (int64_t)(proto->n_keys ? proto->n_keys : proto->n_string_keys);
    tensor.n_dims = 1;
    tensor.dims = &count;
    if (proto->key_type == TSSA_STRING) {
        tensor.data_type = TSSA_STRING;
        tensor.n_string_data = proto->n_string_keys;
        tensor.string_data = proto->string_keys;
        count = (int64_t)proto->n_string_keys;
    } else {
        tensor.data_type = TSSA_INT64;
        tensor.n_int64_data = proto->n_keys;
        tensor.int64_data = proto->keys;
        count = (int64_t)proto->n_keys;
    }
    return read_tensor(reader, &tensor, keys);
}

static tssa_status *read_map(struct reader *reader, const Onnx__MapProto *proto,
                             struct value *value)
{
    if (!proto->values)
        return ERROR(TSSA_MALFORMED, "a map has no values");
    struct value keys, values;
    TRY(map_keys(reader, proto, &keys));
    tssa_status *status = read_sequence(reader, proto->values, &values);
    if (!status) {
        status = value_map_create(reader->allocator, &keys, &values, value);
        value_release(&values);
    }
    value_release(&keys);
    return status;
}

static size_t sequence_count(const Onnx__SequenceProto *proto)
{
    switch (proto->elem_type) {
    case ELEMENT_TENSOR:
        return proto->n_tensor_values;
    case ELEMENT_SEQUENCE:
        return proto->n_sequence_values;
    case ELEMENT_MAP:
        return proto->n_map_values;
    case ELEMENT_OPTIONAL:
        return proto->n_optional_values;
    default:
        return 0;
    }
}

static tssa_status *read_element(struct reader *reader, const Onnx__SequenceProto *proto,
                                 size_t index, struct value *value)
{
    switch (proto->elem_type) {
    case ELEMENT_TENSOR:
        return read_tensor(reader, proto->tensor_values[index], value);
    case ELEMENT_SEQUENCE:
        return read_sequence(reader, proto->sequence_values[index], value);
    case ELEMENT_MAP:
        return read_map(reader, proto->map_values[index], value);
    default:
        return read_optional(reader, proto->optional_values[index], value);
    }
}

static tssa_status *read_sequence(struct reader *reader, const Onnx__SequenceProto *proto,
                                  struct value *value)
{
    if (proto->elem_type == ELEMENT_SPARSE || proto->elem_type < 0 ||
        proto->elem_type > ELEMENT_OPTIONAL)
        return ERROR(TSSA_UNSUPPORTED, "a sequence of element type %d", (int)proto->elem_type);
    size_t count = sequence_count(proto);
    tssa_dtype dtype = reader->dtype;
    if (proto->elem_type == ELEMENT_TENSOR && count) {
        int32_t first = proto->tensor_values[0]->data_type;
        if (first > 0 && first < TSSA_DTYPE_COUNT)
            dtype = (tssa_dtype)first;
    }
    struct value sequence;
    TRY(sequence_create(reader->allocator, dtype, &sequence));
    for (size_t i = 0; i < count; i++) {
        struct value element, longer;
        tssa_status *status = read_element(reader, proto, i, &element);
        if (!status && element.kind == TSSA_KIND_TENSOR && element.tensor.dtype != dtype) {
            status = ERROR(TSSA_MALFORMED, "it is of type %s in a sequence of %s",
                           dtype_info(element.tensor.dtype)->name, dtype_info(dtype)->name);
            value_release(&element);
        } else if (!status) {
            status = sequence_insert(&sequence, i, &element, &longer);
            value_release(&element);
        }
        value_release(&sequence);
        if (status)
            return status_prefix(status, "element %zu", i);
        sequence = longer;
    }
    *value = sequence;
    return NULL;
}

static tssa_status *read_optional(struct reader *reader, const Onnx__OptionalProto *proto,
                                  struct value *value)
{
    if (proto->tensor_value)
        return read_tensor(reader, proto->tensor_value, value);
    if (proto->sequence_value)
        return read_sequence(reader, proto->sequence_value, value);
    if (proto->map_value)
        return read_map(reader, proto->map_value, value);
    if (proto->optional_value)
        return read_optional(reader, proto->optional_value, value);
    if (proto->sparse_tensor_value)
        return ERROR(TSSA_UNSUPPORTED, "an optional sparse tensor");
    *value = (struct value){.kind = TSSA_KIND_NONE};
    return NULL;
}

tssa_status *onnx_read_value(const tssa_allocator *allocator, const void *data, size_t size,
                             const struct onnx_value_type *expected, struct value *value)
{
    const ProtobufCMessageDescriptor *descriptor =
        expected->is_optional                  ? &onnx__optional_proto__descriptor
        : expected->kind == TSSA_KIND_SEQUENCE ? &onnx__sequence_proto__descriptor
        : expected->kind == TSSA_KIND_MAP      ? &onnx__map_proto__descriptor
                                               : &onnx__tensor_proto__descriptor;
    struct reader reader = {.allocator = allocator, .dtype = expected->dtype};
    wire_init(&reader.file, allocator);
    ProtobufCMessage *message;
    tssa_status *status = wire_unpack(&reader.file, descriptor, data, size, &message);
    if (!status && expected->is_optional)
        status = read_optional(&reader, (const Onnx__OptionalProto *)message, value);
    else if (!status && expected->kind == TSSA_KIND_SEQUENCE)
        status = read_sequence(&reader, (const Onnx__SequenceProto *)message, value);
    else if (!status && expected->kind == TSSA_KIND_MAP)
        status = read_map(&reader, (const Onnx__MapProto *)message, value);
    else if (!status)
        status = read_tensor(&reader, (const Onnx__TensorProto *)message, value);
    wire_free(&reader.file);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static tssa_status *write_elements(const struct tensor *tensor, struct text *out)
{
    size_t count = tensor_count(tensor), bytes;
    if (tensor->dtype == TSSA_STRING) {
        const tssa_string *strings = tensor->data;
        for (size_t i = 0; i < count; i++)
            wire_put_bytes(out, 6, strings[i].data, strings[i].size);
        return NULL;
    }
    if (!dtype_file_bytes(tensor->dtype, count, &bytes))
        return ERROR(TSSA_LIMIT, "the tensor is too large for a file");
    if (bytes == tensor_bytes(tensor)) {
        wire_put_bytes(out, 9, tensor->data, bytes);
        return NULL;
    }
    uint8_t *packed = allocator_alloc(out->allocator, bytes);
    TRY_ALLOC(packed);
    dtype_pack(tensor->dtype, tensor->data, count, packed);
    wire_put_bytes(out, 9, packed, bytes);
    allocator_free(out->allocator, packed);
    return NULL;
}

static tssa_status *write_tensor(const struct tensor *tensor, const char *name, struct text *out)
{
    for (int i = 0; i < tensor->rank; i++)
        wire_put_int(out, 1, tensor->dims[i]);
    wire_put_int(out, 2, tensor->dtype);
    if (name)
        wire_put_bytes(out, 8, name, strlen(name));
    return write_elements(tensor, out);
}

static tssa_status *write_plain(const struct value *value, const char *name, struct text *out);

/* A value as a field of another message. */
static tssa_status *write_nested(const struct value *value, bool is_optional, uint32_t field,
                                 struct text *out)
{
    struct text inner;
    text_init(&inner, out->allocator);
    tssa_status *status = onnx_write_value(value, is_optional, NULL, &inner);
    if (!status)
        wire_put_bytes(out, field, inner.data, inner.size);
    text_free(&inner);
    return status;
}

static int element_kind(const struct value *value)
{
    switch (value->kind) {
    case TSSA_KIND_TENSOR:
        return ELEMENT_TENSOR;
    case TSSA_KIND_SEQUENCE:
        return ELEMENT_SEQUENCE;
    case TSSA_KIND_MAP:
        return ELEMENT_MAP;
    default:
        return ELEMENT_OPTIONAL;
    }
}

static tssa_status *write_sequence(const struct sequence *sequence, const char *name,
                                   struct text *out)
{
    /* The field of each kind of element, by its number. */
    static const uint32_t fields[] = {0, 3, 4, 5, 6, 7};
    size_t count = sequence_length(sequence);
    int kind = ELEMENT_TENSOR;
    for (size_t i = 0; i < count; i++) {
        int own = element_kind(sequence_element(sequence, i));
        kind = i == 0 || own == kind ? own : ELEMENT_OPTIONAL;
    }
    if (name)
        wire_put_bytes(out, 1, name, strlen(name));
    wire_put_int(out, 2, kind);
    for (size_t i = 0; i < count; i++)
        TRY(write_nested(sequence_element(sequence, i), kind == ELEMENT_OPTIONAL, fields[kind],
                         out));
    return NULL;
}

static tssa_status *write_map(const struct value_map *map, const char *name, struct text *out)
{
    const struct value *keys = value_map_keys(map), *values = value_map_values(map);
    if (keys->kind != TSSA_KIND_TENSOR || values->kind != TSSA_KIND_SEQUENCE)
        return ERROR(TSSA_UNSUPPORTED, "only maps to sequences have a file form");
    const struct tensor *tensor = &keys->tensor;
    size_t size = tssa_dtype_size(tensor->dtype);
    if (name)
        wire_put_bytes(out, 1, name, strlen(name));
    wire_put_int(out, 2, tensor->dtype);
    for (size_t i = 0; i < tensor_count(tensor); i++) {
        const void *key = (const char *)tensor->data + i * size;
        if (tensor->dtype == TSSA_STRING)
            wire_put_bytes(out, 4, ((const tssa_string *)key)->data,
                           ((const tssa_string *)key)->size);
        else
            wire_put_int(out, 3, dtype_load_int64(tensor->dtype, key));
    }
    return write_nested(values, false, 5, out);
}

static tssa_status *write_plain(const struct value *value, const char *name, struct text *out)
{
    switch (value->kind) {
    case TSSA_KIND_TENSOR:
        return write_tensor(&value->tensor, name, out);
    case TSSA_KIND_SEQUENCE:
        return write_sequence(value->sequence, name, out);
    case TSSA_KIND_MAP:
        return write_map(value->map, name, out);
    default:
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "an empty optional has a file form only as an optional");
    }
}

tssa_status *onnx_write_value(const struct value *value, bool is_optional, const char *name,
                              struct text *out)
{
    static const uint32_t fields[] = {0, 3, 4, 5, 6, 7};
    if (!is_optional) {
        TRY(write_plain(value, name, out));
    } else {
        int kind = value->kind == TSSA_KIND_NONE ? ELEMENT_UNDEFINED : element_kind(value);
        if (name)
            wire_put_bytes(out, 1, name, strlen(name));
        wire_put_int(out, 2, kind);
        if (kind != ELEMENT_UNDEFINED)
            TRY(write_nested(value, false, fields[kind], out));
    }
    return out->failed ? status_out_of_memory() : NULL;
}
