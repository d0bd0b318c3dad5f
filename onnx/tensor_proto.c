/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading TensorProto; the field of each element type is in the table of onnx.proto's TensorProto.
 */
#include "onnx/tensor_proto.h"

#include <string.h>

#include "base/dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is read as it is");

/* Fields of TensorProto that hold data. */
enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};

static uint32_t typed_field(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_FLOAT:
    case TSSA_COMPLEX64:
        return FLOAT_DATA;
    case TSSA_DOUBLE:
    case TSSA_COMPLEX128:
        return DOUBLE_DATA;
    case TSSA_INT64:
        return INT64_DATA;
    case TSSA_UINT32:
    case TSSA_UINT64:
        return UINT64_DATA;
    case TSSA_STRING:
        return STRING_DATA;
    default:
        return INT32_DATA;
    }
}

/* ---- Type and dims --------------------------------------------------------------------------- */

tssa_status *onnx_tensor_header(const Onnx__TensorProto *proto, struct tensor *tensor)
{
    *tensor = (struct tensor){0};
    if (proto->segment)
        return ERROR(TSSA_UNSUPPORTED, "it is one segment of a larger tensor");
    if (proto->data_type <= 0 || proto->data_type >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "element type %d is unknown", (int)proto->data_type);
    if (proto->n_dims > TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "rank %zu is above %d", proto->n_dims, TSSA_MAX_RANK);
    tensor->dtype = (tssa_dtype)proto->data_type;
    tensor->rank = (int)proto->n_dims;
    for (size_t i = 0; i < proto->n_dims; i++) {
        if (proto->dims[i] < 0)
            return ERROR(TSSA_MALFORMED, "dim %zu is %lld", i, (long long)proto->dims[i]);
        tensor->dims[i] = proto->dims[i];
    }
    size_t count, bytes;
    return tensor_layout(tensor->dtype, tensor->rank, tensor->dims, &count, &bytes);
}

/* ---- Finding the data ------------------------------------------------------------------------ */

/* One field of the message, wherever it is: `entries` of protobuf-c's array, or a span. */
struct data_field {
    uint32_t number;
    const char *name;
    const void *entries;
    size_t count;
    size_t entry_size;
};

#define DATA_FIELDS 7

static void data_fields(const Onnx__TensorProto *p, struct data_field fields[DATA_FIELDS])
{
    const struct data_field all[DATA_FIELDS] = {
        {RAW_DATA, "raw_data", p->raw_data.data, p->has_raw_data ? p->raw_data.len : 0, 1},
        {FLOAT_DATA, "float_data", p->float_data, p->n_float_data, sizeof *p->float_data},
        {INT32_DATA, "int32_data", p->int32_data, p->n_int32_data, sizeof *p->int32_data},
        {STRING_DATA, "string_data", p->string_data, p->n_string_data, sizeof *p->string_data},
        {INT64_DATA, "int64_data", p->int64_data, p->n_int64_data, sizeof *p->int64_data},
        {DOUBLE_DATA, "double_data", p->double_data, p->n_double_data, sizeof *p->double_data},
        {UINT64_DATA, "uint64_data", p->uint64_data, p->n_uint64_data, sizeof *p->uint64_data},
    };
    memcpy(fields, all, sizeof all);
}

const char *onnx_tensor_data_field(const struct wire_file *file, const Onnx__TensorProto *proto)
{
    struct data_field fields[DATA_FIELDS];
    data_fields(proto, fields);
    for (size_t i = 0; i < DATA_FIELDS; i++)
        if (fields[i].count > 0 || wire_tensor_span(file, proto, fields[i].number))
            return fields[i].name;
    return NULL;
}

tssa_status *onnx_tensor_locate_bytes(const struct tensor *tensor, const void *data, size_t size,
                                      struct tensor_source *source)
{
    size_t bytes;
    if (tensor->dtype == TSSA_STRING)
        return ERROR(TSSA_MALFORMED, "strings cannot be raw data");
    if (!dtype_file_bytes(tensor->dtype, tensor_count(tensor), &bytes))
        return ERROR(TSSA_MALFORMED, "its size overflows");
    if (size != bytes) {
        char text[128];
        tensor_describe(tensor, text, sizeof text);
        return ERROR(TSSA_MALFORMED, "%s takes %zu bytes of data, not %zu", text, bytes, size);
    }
    *source = (struct tensor_source){
        .kind = TENSOR_SOURCE_BYTES, .data = data, .size = size, .in_file = true};
    return NULL;
}

/* Elements that share one entry of int32_data. */
static size_t elements_per_entry(tssa_dtype dtype)
{
    unsigned bits = dtype_info(dtype)->file_bits;
    return bits && bits < 8 ? 8 / bits : 1;
}

static tssa_status *check_entries(const struct tensor *tensor, const char *name, size_t entries)
{
    size_t per = elements_per_entry(tensor->dtype), count = tensor_count(tensor);
    size_t wanted = count / per + (count % per != 0);
    if (entries == wanted)
        return NULL;
    char text[128];
    tensor_describe(tensor, text, sizeof text);
    return ERROR(TSSA_MALFORMED, "%s takes %zu entries of %s, not %zu", text, wanted, name,
                 entries);
}

static size_t varint_count(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += data[i] < 0x80;
    return count;
}

static tssa_status *locate_strings(const struct tensor *tensor, const struct data_field *field,
                                   struct tensor_source *source)
{
    TRY(check_entries(tensor, field->name, field->count));
    const ProtobufCBinaryData *strings = field->entries;
    size_t size = 0;
    for (size_t i = 0; i < field->count; i++)
        size += strings[i].len; /* no more than the file's size together */
    *source = (struct tensor_source){
        .kind = TENSOR_SOURCE_STRINGS, .data = strings, .size = field->count, .string_size = size};
    return NULL;
}

/* A field whose bytes are those of raw_data: floats, doubles, and integers that are as wide. */
static bool is_raw_form(tssa_dtype dtype, uint32_t field)
{
    return field == RAW_DATA || field == FLOAT_DATA || field == DOUBLE_DATA ||
           field == INT64_DATA || (field == INT32_DATA && dtype == TSSA_INT32) ||
           (field == UINT64_DATA && dtype == TSSA_UINT64);
}

static tssa_status *locate_span(const struct tensor *tensor, const struct data_field *field,
                                const struct wire_span *span, struct tensor_source *source)
{
    if (span->field == RAW_DATA || span->field == FLOAT_DATA || span->field == DOUBLE_DATA)
        return onnx_tensor_locate_bytes(tensor, span->data, span->size, source);
    TRY(check_entries(tensor, field->name, varint_count(span->data, span->size)));
    *source = (struct tensor_source){
        .kind = TENSOR_SOURCE_VARINTS, .data = span->data, .size = span->size, .in_file = true};
    return NULL;
}

static tssa_status *locate_field(const struct tensor *tensor, const struct data_field *field,
                                 const struct wire_span *span, struct tensor_source *source)
{
    if (field->number != RAW_DATA && field->number != typed_field(tensor->dtype))
        return ERROR(TSSA_MALFORMED, "elements of type %s cannot be in %s",
                     dtype_info(tensor->dtype)->name, field->name);
    if (span)
        return locate_span(tensor, field, span, source);
    if (field->number == STRING_DATA)
        return locate_strings(tensor, field, source);
    if (is_raw_form(tensor->dtype, field->number)) {
        TRY(onnx_tensor_locate_bytes(tensor, field->entries, field->count * field->entry_size,
                                     source));
        source->in_file = false;
        return NULL;
    }
    TRY(check_entries(tensor, field->name, field->count));
    *source = (struct tensor_source){.kind = field->number == INT32_DATA ? TENSOR_SOURCE_INT32
                                                                         : TENSOR_SOURCE_UINT64,
                                     .data = field->entries,
                                     .size = field->count};
    return NULL;
}

tssa_status *onnx_tensor_locate(const struct wire_file *file, const Onnx__TensorProto *proto,
                                const struct tensor *tensor, struct tensor_source *source)
{
    *source = (struct tensor_source){.kind = TENSOR_SOURCE_NONE};
    if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return ERROR(TSSA_UNSUPPORTED,
                     "its data is in another file, which is allowed in models only");
    struct data_field fields[DATA_FIELDS];
    const struct data_field *found = NULL;
    const struct wire_span *span = NULL;
    data_fields(proto, fields);
    for (size_t i = 0; i < DATA_FIELDS; i++) {
        const struct wire_span *here = wire_tensor_span(file, proto, fields[i].number);
        if (!here && fields[i].count == 0)
            continue;
        if (found)
            return ERROR(TSSA_MALFORMED, "it has data in both %s and %s", found->name,
                         fields[i].name);
        found = &fields[i];
        span = here;
    }
    if (found)
        return locate_field(tensor, found, span, source);
    if (tensor_count(tensor) > 0) {
        char text[128];
        tensor_describe(tensor, text, sizeof text);
        return ERROR(TSSA_MALFORMED, "%s has no data", text);
    }
    return NULL;
}

/* ---- Reading the data ------------------------------------------------------------------------ */

bool onnx_tensor_can_borrow(const struct tensor *tensor, const struct tensor_source *source)
{
    if (source->kind != TENSOR_SOURCE_BYTES || !source->in_file || tensor->dtype == TSSA_BOOL ||
        elements_per_entry(tensor->dtype) != 1)
        return false;
    size_t alignment = tssa_dtype_size(tensor->dtype);
    return (uintptr_t)source->data % alignment == 0;
}

static void read_bytes(const struct tensor *tensor, const uint8_t *from, uint8_t *elements)
{
    size_t count = tensor_count(tensor);
    if (elements_per_entry(tensor->dtype) != 1)
        dtype_unpack(tensor->dtype, from, count, elements);
    else if (tensor->dtype == TSSA_BOOL)
        for (size_t i = 0; i < count; i++)
            elements[i] = from[i] != 0;
    else if (count)
        memcpy(elements, from, count * tssa_dtype_size(tensor->dtype));
}

static uint64_t next_entry(const struct tensor_source *source, size_t index, const uint8_t **at)
{
    uint64_t value = 0;
    if (source->kind == TENSOR_SOURCE_INT32)
        value = (uint64_t)((const int32_t *)source->data)[index];
    else if (source->kind == TENSOR_SOURCE_UINT64)
        value = ((const uint64_t *)source->data)[index];
    else if (!wire_read_varint(at, (const uint8_t *)source->data + source->size, &value))
        value = 0; /* cannot be: entries were counted */
    return value;
}

/* Entries hold values or bit patterns; the low bytes are the element. */
static void read_entries(const struct tensor *tensor, const struct tensor_source *source,
                         uint8_t *elements)
{
    size_t count = tensor_count(tensor), size = tssa_dtype_size(tensor->dtype);
    size_t per = elements_per_entry(tensor->dtype);
    const uint8_t *at = source->data;
    for (size_t i = 0, entry = 0; i < count; i += per, entry++) {
        uint64_t value = next_entry(source, entry, &at);
        uint8_t byte = (uint8_t)value;
        if (per > 1)
            dtype_unpack(tensor->dtype, &byte, count - i < per ? count - i : per, elements + i);
        else if (tensor->dtype == TSSA_BOOL)
            elements[i] = value != 0;
        else
            memcpy(elements + i * size, &value, size);
    }
}

static void read_strings(const struct tensor_source *source, tssa_string *elements, char *text)
{
    const ProtobufCBinaryData *strings = source->data;
    for (size_t i = 0; i < source->size; i++) {
        if (strings[i].len)
            memcpy(text, strings[i].data, strings[i].len);
        elements[i] = (tssa_string){text, strings[i].len};
        text += strings[i].len;
    }
}

void onnx_tensor_read(const struct tensor *tensor, const struct tensor_source *source,
                      void *elements, char *text)
{
    if (source->kind == TENSOR_SOURCE_BYTES)
        read_bytes(tensor, source->data, elements);
    else if (source->kind == TENSOR_SOURCE_STRINGS)
        read_strings(source, elements, text);
    else if (source->kind != TENSOR_SOURCE_NONE)
        read_entries(tensor, source, elements);
}
