/* SPDX-License-Identifier: Apache-2.0 */
/* The scan before protobuf-c; see wire.h. */
#include "onnx/wire.h"

#include <limits.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* The field that stands for a payload in the copy: varint, index into the spans. Protobuf reserves
 * 19000 to 19999, so no schema has it, and unknown fields of the original never reach the copy. */
#define SPAN_FIELD 19000

/* A length that is written before it is known takes the longest form that protobuf-c reads. */
#define LENGTH_BYTES 5

/* Known fields that tssa reads nothing from. Only their length is checked. What is no part of a
 * model any more when it has been read and written has a name. */
static const struct dropped {
    const ProtobufCMessageDescriptor *message;
    uint8_t field;
    const char *name;
} dropped_fields[] = {
    {&onnx__model_proto__descriptor, 20, "training information"},
    {&onnx__model_proto__descriptor, 26, "device configurations"},
    {&onnx__type_proto__descriptor, 6, "denotations of types"},
    {&onnx__tensor_shape_proto__dimension__descriptor, 3, "denotations of dims"},
    {&onnx__attribute_proto__descriptor, 13, "documentation of attributes"},
    {&onnx__function_proto__descriptor, 8, NULL},  /* doc_string: it is in the definition */
    {&onnx__function_proto__descriptor, 14, NULL}, /* metadata_props, the same */
    {&onnx__node_proto__descriptor, 10, NULL},     /* device_configurations: needs the model's */
};
#define N_DROPPED_FIELDS (sizeof dropped_fields / sizeof *dropped_fields)

#define MODEL_FUNCTIONS 25

/* Text for people. Old exporters wrote it in any encoding: it is dropped, not refused. */
static bool is_documentation(const ProtobufCMessageDescriptor *message,
                             const ProtobufCFieldDescriptor *field)
{
    return strcmp(field->name, "doc_string") == 0 ||
           (message == &onnx__string_string_entry_proto__descriptor &&
            strcmp(field->name, "value") == 0);
}

struct scan {
    struct wire_file *file;
    const uint8_t *begin; /* for offsets in messages */
    struct text out;
    size_t messages;
};

/* One field as it lies in the original. */
struct wire_field {
    uint32_t number;
    enum wire_type type;
    const uint8_t *at;   /* the payload, after a length */
    const uint8_t *next; /* behind it */
    size_t size;
};

void wire_init(struct wire_file *file, const tssa_allocator *allocator)
{
    arena_init(&file->arena, allocator);
    vec_init(&file->spans, allocator);
    vec_init(&file->functions, allocator);
    file->dropped = 0;
}

void wire_free(struct wire_file *file)
{
    arena_clear(&file->arena);
    vec_free(&file->spans);
    vec_free(&file->functions);
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool wire_read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    const uint8_t *p = *at;
    for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
        uint8_t byte = *p++;
        if (shift < 64)
            result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at = p;
            *value = result;
            return true;
        }
    }
    return false;
}

static tssa_status *bad(const struct scan *scan, const ProtobufCMessageDescriptor *message,
                        const uint8_t *at, const char *what)
{
    return ERROR(TSSA_MALFORMED, "byte %zu, in %s: %s", (size_t)(at - scan->begin),
                 message->short_name, what);
}

static tssa_status *bad_field(const struct scan *scan, const ProtobufCMessageDescriptor *message,
                              const ProtobufCFieldDescriptor *field, const uint8_t *at,
                              const char *what)
{
    return ERROR(TSSA_MALFORMED, "byte %zu: %s of %s %s", (size_t)(at - scan->begin), field->name,
                 message->short_name, what);
}

/* The field at `at`, all of which lies before `end`. */
static tssa_status *read_field(const struct scan *scan, const ProtobufCMessageDescriptor *message,
                               const uint8_t *at, const uint8_t *end, struct wire_field *field)
{
    const uint8_t *start = at;
    uint64_t tag, length = 0;
    if (!wire_read_varint(&at, end, &tag))
        return bad(scan, message, start, "a field's tag is cut off");
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return bad(scan, message, start, "no field has this number");
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    field->at = at;
    switch (tag & 7) {
    case WIRE_VARINT:
        if (!wire_read_varint(&at, end, &length))
            return bad(scan, message, start, "a number is cut off or too long");
        length = (uint64_t)(at - field->at);
        break;
    case WIRE_FIXED64:
        length = 8;
        break;
    case WIRE_FIXED32:
        length = 4;
        break;
    case WIRE_BYTES:
        if (!wire_read_varint(&at, end, &length))
            return bad(scan, message, start, "a length is cut off or too long");
        field->at = at;
        break;
    default:
        return bad(scan, message, start, "a field has a wire type that ONNX does not use");
    }
    size_t left = (size_t)(end - field->at);
    if (length > left)
        return ERROR(TSSA_MALFORMED, "byte %zu, in %s: field %u needs %llu bytes and %zu are left",
                     (size_t)(start - scan->begin), message->short_name, (unsigned)field->number,
                     (unsigned long long)length, left);
    field->size = (size_t)length;
    field->next = field->at + field->size;
    return NULL;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void wire_put_varint(struct text *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    do {
        bytes[size] = (uint8_t)(value & 0x7f);
        value >>= 7;
        bytes[size++] |= value ? 0x80 : 0;
    } while (value);
    text_append(out, bytes, size);
}

static void put_tag(struct text *out, uint32_t field, enum wire_type type)
{
    wire_put_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_put_int(struct text *out, uint32_t field, int64_t value)
{
    put_tag(out, field, WIRE_VARINT);
    wire_put_varint(out, (uint64_t)value);
}

void wire_put_bytes(struct text *out, uint32_t field, const void *data, size_t size)
{
    put_tag(out, field, WIRE_BYTES);
    wire_put_varint(out, size);
    text_append(out, data, size);
}

/* Fills in a length that was left open at `position`. */
static void patch_length(struct text *out, size_t position)
{
    if (out->failed)
        return;
    uint64_t length = out->size - position - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        bool last = i + 1 == LENGTH_BYTES;
        out->data[position + i] = (char)((length & 0x7f) | (last ? 0 : 0x80));
        length >>= 7;
    }
}

/* ---- Checking and copying fields ------------------------------------------------------------- */

/* How a single element of the field's type is encoded. */
static enum wire_type element_wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

/* Whether packed elements fill the payload exactly. */
static bool packed_is_whole(const struct wire_field *field, enum wire_type element)
{
    if (element == WIRE_FIXED32)
        return field->size % 4 == 0;
    if (element == WIRE_FIXED64)
        return field->size % 8 == 0;
    unsigned run = 0;
    for (size_t i = 0; i < field->size; i++) {
        run = field->at[i] & 0x80 ? run + 1 : 0;
        if (run == 10)
            return false;
    }
    return run == 0;
}

static bool is_tensor_payload(const ProtobufCMessageDescriptor *message, uint32_t number)
{
    return message == &onnx__tensor_proto__descriptor &&
           (number == 4 || number == 5 || number == 7 || (number >= 9 && number <= 11));
}

/* Whether the field occurs once in [at, end). Its first occurrence may then be replaced by a span;
 * several are joined (or override each other) by protobuf-c. */
static tssa_status *occurs_once(const struct scan *scan, const ProtobufCMessageDescriptor *message,
                                const uint8_t *at, const uint8_t *end, uint32_t number, bool *once)
{
    size_t count = 0;
    while (at < end) {
        struct wire_field field = {0};
        TRY(read_field(scan, message, at, end, &field));
        count += field.number == number;
        at = field.next;
    }
    *once = count == 1;
    return NULL;
}

static tssa_status *put_span(struct scan *scan, const struct wire_field *field)
{
    struct wire_span span = {field->number, field->at, field->size};
    if (!vec_push(&scan->file->spans, span))
        return status_out_of_memory();
    put_tag(&scan->out, SPAN_FIELD, WIRE_VARINT);
    wire_put_varint(&scan->out, scan->file->spans.count - 1);
    return NULL;
}

static void put_field(struct scan *scan, const struct wire_field *field)
{
    put_tag(&scan->out, field->number, field->type);
    if (field->type == WIRE_BYTES)
        wire_put_varint(&scan->out, field->size);
    text_append(&scan->out, field->at, field->size);
}

static tssa_status *scan_message(struct scan *scan, const ProtobufCMessageDescriptor *message,
                                 const uint8_t *at, const uint8_t *end, unsigned depth);

static tssa_status *scan_submessage(struct scan *scan, const ProtobufCMessageDescriptor *message,
                                    const ProtobufCFieldDescriptor *descriptor,
                                    const struct wire_field *field, unsigned depth)
{
    if (depth == WIRE_MAX_DEPTH)
        return ERROR(TSSA_LIMIT, "byte %zu: %s of %s is nested more than %d messages deep",
                     (size_t)(field->at - scan->begin), descriptor->name, message->short_name,
                     WIRE_MAX_DEPTH);
    if (++scan->messages > WIRE_MAX_MESSAGES)
        return ERROR(TSSA_LIMIT, "more than %d messages", WIRE_MAX_MESSAGES);
    const struct wire_span span = {field->number, field->at, field->size};
    if (message == &onnx__model_proto__descriptor && field->number == MODEL_FUNCTIONS &&
        !vec_push(&scan->file->functions, span))
        return status_out_of_memory();
    put_tag(&scan->out, field->number, WIRE_BYTES);
    size_t position = scan->out.size;
    text_append(&scan->out, "\0\0\0\0\0", LENGTH_BYTES);
    TRY(scan_message(scan, descriptor->descriptor, field->at, field->next, depth + 1));
    patch_length(&scan->out, position);
    return NULL;
}

static tssa_status *scan_string(struct scan *scan, const ProtobufCMessageDescriptor *message,
                                const ProtobufCFieldDescriptor *descriptor,
                                const struct wire_field *field)
{
    const char *wrong = memchr(field->at, 0, field->size)                    ? "holds a NUL"
                        : field->size && !utf8_valid(field->at, field->size) ? "is not UTF-8"
                                                                             : NULL;
    if (!wrong)
        put_field(scan, field);
    else if (!is_documentation(message, descriptor))
        return bad_field(scan, message, descriptor, field->at, wrong);
    return NULL;
}

/* `seen`: one bit per field of the message that was there before. */
static tssa_status *scan_field(struct scan *scan, const ProtobufCMessageDescriptor *message,
                               const ProtobufCFieldDescriptor *descriptor,
                               const struct wire_field *field, const uint8_t *message_begin,
                               const uint8_t *message_end, uint64_t *seen, unsigned depth)
{
    uint64_t bit = UINT64_C(1) << (descriptor - message->fields);
    bool again = *seen & bit, repeated = descriptor->label == PROTOBUF_C_LABEL_REPEATED;
    *seen |= bit;
    enum wire_type element = element_wire_type(descriptor->type);
    bool packed = repeated && element != WIRE_BYTES && field->type == WIRE_BYTES;
    if (field->type != element && !packed)
        return bad_field(scan, message, descriptor, field->at, "has the wrong wire type");
    if (packed && !packed_is_whole(field, element))
        return bad_field(scan, message, descriptor, field->at, "ends inside a number");
    if (descriptor->type == PROTOBUF_C_TYPE_MESSAGE) {
        /* protobuf would merge the two, at a cost that grows with the square of their number. */
        if (again && !repeated)
            return bad_field(scan, message, descriptor, field->at, "is there twice");
        return scan_submessage(scan, message, descriptor, field, depth);
    }
    if (descriptor->type == PROTOBUF_C_TYPE_STRING)
        return scan_string(scan, message, descriptor, field);
    if (field->size >= WIRE_SPAN_MIN && is_tensor_payload(message, field->number) && !again) {
        bool once;
        TRY(occurs_once(scan, message, message_begin, message_end, field->number, &once));
        if (once)
            return put_span(scan, field);
    }
    put_field(scan, field);
    return NULL;
}

static bool drop(struct wire_file *file, const ProtobufCMessageDescriptor *message, uint32_t number)
{
    for (size_t i = 0; i < N_DROPPED_FIELDS; i++)
        if (dropped_fields[i].message == message && dropped_fields[i].field == number) {
            file->dropped |= UINT32_C(1) << i;
            return true;
        }
    return false;
}

const char *wire_dropped(const struct wire_file *file, size_t *index)
{
    while (*index < N_DROPPED_FIELDS) {
        const char *name = dropped_fields[*index].name;
        if (file->dropped >> (*index)++ & 1 && name)
            return name;
    }
    return NULL;
}

static tssa_status *scan_message(struct scan *scan, const ProtobufCMessageDescriptor *message,
                                 const uint8_t *at, const uint8_t *end, unsigned depth)
{
    const uint8_t *begin = at;
    uint64_t seen = 0;
    while (at < end) {
        struct wire_field field = {0};
        TRY(read_field(scan, message, at, end, &field));
        at = field.next;
        const ProtobufCFieldDescriptor *descriptor =
            protobuf_c_message_descriptor_get_field(message, field.number);
        if (descriptor && !drop(scan->file, message, field.number))
            TRY(scan_field(scan, message, descriptor, &field, begin, end, &seen, depth));
    }
    return NULL;
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

static void *arena_allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void arena_release(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

tssa_status *wire_unpack(struct wire_file *file, const ProtobufCMessageDescriptor *descriptor,
                         const void *data, size_t size, ProtobufCMessage **message)
{
    if (size > INT_MAX)
        return ERROR(TSSA_LIMIT,
                     "%zu bytes are more than the 2 GiB that protobuf allows: large weights belong "
                     "into external data",
                     size);
    struct scan scan = {.file = file, .begin = data};
    text_init(&scan.out, file->arena.allocator);
    tssa_status *status = scan_message(&scan, descriptor, data, (const uint8_t *)data + size, 0);
    if (!status && scan.out.failed)
        status = status_out_of_memory();
    if (!status) {
        ProtobufCAllocator allocator = {arena_allocate, arena_release, &file->arena};
        *message = protobuf_c_message_unpack(descriptor, &allocator, scan.out.size,
                                             (const uint8_t *)scan.out.data);
        /* The copy is well-formed: only memory can have run out. */
        if (!*message)
            status = status_out_of_memory();
    }
    text_free(&scan.out);
    return status;
}

const struct wire_span *wire_tensor_span(const struct wire_file *file,
                                         const Onnx__TensorProto *tensor, uint32_t field)
{
    for (unsigned i = 0; i < tensor->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *unknown = &tensor->base.unknown_fields[i];
        const uint8_t *at = unknown->data;
        uint64_t index;
        if (unknown->tag == SPAN_FIELD && wire_read_varint(&at, at + unknown->len, &index) &&
            index < file->spans.count && file->spans.data[index].field == field)
            return &file->spans.data[index];
    }
    return NULL;
}
