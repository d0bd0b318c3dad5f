/* SPDX-License-Identifier: Apache-2.0 */
/* The scan before protobuf-c: what it refuses, what it keeps, and where payloads stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/test_alloc.h"
#include "onnx/wire.h"

#define BYTES(literal) (literal), sizeof(literal) - 1

static void expect(const ProtobufCMessageDescriptor *type, const void *data, size_t size,
                   tssa_code code, const char *message)
{
    struct wire_file file;
    ProtobufCMessage *unpacked = NULL;
    wire_init(&file, &allocator_default);
    tssa_status *status = wire_unpack(&file, type, data, size, &unpacked);
    if (status && !strstr(tssa_status_message(status), message))
        print_error("expected: %s\ngot: %s\n", message, tssa_status_message(status));
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), message));
    tssa_status_free(status);
    wire_free(&file);
}

static ProtobufCMessage *unpack(struct wire_file *file, const ProtobufCMessageDescriptor *type,
                                const void *data, size_t size)
{
    ProtobufCMessage *message = NULL;
    wire_init(file, &allocator_default);
    tssa_status *status = wire_unpack(file, type, data, size, &message);
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
    assert_non_null(message);
    return message;
}

/* ---- What is refused ------------------------------------------------------------------------- */

static const struct {
    const char *bytes;
    size_t size;
    const char *message;
} malformed[] = {
    {BYTES("\x08"), "byte 0, in ModelProto: a number is cut off"},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a number is cut off or too long"},
    {BYTES("\xff"), "a field's tag is cut off"},
    {BYTES("\x00\x01"), "no field has this number"},
    {BYTES("\xf8\xff\xff\xff\xff\xff\x01\x01"), "no field has this number"},
    {BYTES("\x0b\x0c"), "a wire type that ONNX does not use"}, /* a group */
    {BYTES("\x0e\x01"), "a wire type that ONNX does not use"},
    {BYTES("\x3a\x05\x12\x01g"), "field 7 needs 5 bytes and 3 are left"},
    {BYTES("\x3a\x03\x12\x02g"), "byte 2, in GraphProto: field 2 needs 2 bytes and 1 are left"},
    {BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "needs 18446744073709551615 bytes"},
    {BYTES("\x12\x80"), "a length is cut off"},
    {BYTES("\xf9\x7f\x01\x02"),
     "needs 8 bytes and 2 are left"}, /* unknown fields are bounded too */
    {BYTES("\x0a\x01x"), "ir_version of ModelProto has the wrong wire type"},
    {BYTES("\x38\x01"), "graph of ModelProto has the wrong wire type"},
    {BYTES("\x12\x03"
           "a\0b"),
     "producer_name of ModelProto holds a NUL"},
    {BYTES("\x12\x01\xc3"), "producer_name of ModelProto is not UTF-8"},
    {BYTES("\x12\x02\xc0\x80"), "is not UTF-8"},
    {BYTES("\x3a\x00\x3a\x00"), "graph of ModelProto is there twice"},
};

static void test_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        expect(&onnx__model_proto__descriptor, malformed[i].bytes, malformed[i].size,
               TSSA_MALFORMED, malformed[i].message);
    /* Packed numbers that end inside one: dims (varint), float_data (fixed). */
    expect(&onnx__tensor_proto__descriptor, BYTES("\x0a\x02\x01\x80"), TSSA_MALFORMED,
           "dims of TensorProto ends inside a number");
    expect(&onnx__tensor_proto__descriptor, BYTES("\x22\x03\x01\x02\x03"), TSSA_MALFORMED,
           "float_data of TensorProto ends inside a number");
    expect(&onnx__tensor_proto__descriptor,
           BYTES("\x3a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), TSSA_MALFORMED,
           "int64_data of TensorProto ends inside a number");
}

/* TypeProto with `levels` nested sequence types in it, each two messages. */
static void put_nested_types(struct text *out, int levels)
{
    struct text outer;
    text_init(&outer, &allocator_default);
    for (int i = 0; i < levels; i++) {
        text_clear(&outer);
        wire_put_bytes(&outer, 1, out->data, out->size); /* Sequence.elem_type */
        text_clear(out);
        wire_put_bytes(out, 4, outer.data, outer.size); /* TypeProto.sequence_type */
    }
    text_free(&outer);
}

static void test_nesting(void **state)
{
    (void)state;
    struct text out;
    struct wire_file file;
    text_init(&out, &allocator_default);
    put_nested_types(&out, 50);
    unpack(&file, &onnx__type_proto__descriptor, out.data, out.size);
    wire_free(&file);
    put_nested_types(&out, 1);
    expect(&onnx__type_proto__descriptor, out.data, out.size, TSSA_LIMIT,
           "nested more than 100 messages deep");
    put_nested_types(&out, 20000);
    expect(&onnx__type_proto__descriptor, out.data, out.size, TSSA_LIMIT, "nested more than 100");
    text_free(&out);
}

static void test_every_truncation(void **state)
{
    (void)state;
    /*
     * ModelProto { graph { node { input "x", attribute { name "abc", ints [1, 300] } }, name "" } }
     */
    static const char model[] = "\x3a\x13\x0a\x0f\x0a\x01x\x2a\x0a\x0a\x03"
                                "abc\x42\x03\x01\xac\x02\x12\x00";
    struct wire_file file;
    const size_t whole = sizeof model - 1;
    Onnx__ModelProto *unpacked =
        (Onnx__ModelProto *)unpack(&file, &onnx__model_proto__descriptor, model, whole);
    assert_int_equal(unpacked->graph->node[0]->attribute[0]->ints[1], 300);
    wire_free(&file);
    for (size_t size = 1; size < whole; size++)
        expect(&onnx__model_proto__descriptor, model, size, TSSA_MALFORMED, "byte ");
}

static void test_too_large(void **state)
{
    (void)state;
    /* Not a byte of it is read. */
    expect(&onnx__model_proto__descriptor, "", (size_t)1 << 31, TSSA_LIMIT,
           "large weights belong into external data");
}

/* ---- What is kept ---------------------------------------------------------------------------- */

static void test_packed_and_not(void **state)
{
    (void)state;
    struct wire_file file;
    /* dims is 2, 3 unpacked, then 300, 4 packed; float_data 1 (unpacked), then 2 packed. */
    static const char bytes[] = "\x08\x02\x08\x03\x0a\x03\xac\x02\x04"
                                "\x25\x00\x00\x80\x3f\x22\x04\x00\x00\x00\x40";
    Onnx__TensorProto *tensor = (Onnx__TensorProto *)unpack(&file, &onnx__tensor_proto__descriptor,
                                                            bytes, sizeof bytes - 1);
    assert_int_equal(tensor->n_dims, 4);
    assert_int_equal(tensor->dims[1], 3);
    assert_int_equal(tensor->dims[2], 300);
    assert_int_equal(tensor->dims[3], 4);
    assert_int_equal(tensor->n_float_data, 2);
    assert_true(tensor->float_data[0] == 1 && tensor->float_data[1] == 2);
    wire_free(&file);
}

static void test_dropped(void **state)
{
    (void)state;
    struct wire_file file;
    /* An unknown field of every wire type, field 19000 (that of spans), and a documentation in
     * Latin-1. */
    static const char bytes[] = "\x08\x07\xf8\x7f\x01\xf9\x7f"
                                "12345678\xfa\x7f\x02\xff\xff\xfd\x7f"
                                "1234\xc0\xa3\x09\x00\x32\x01\xe9";
    Onnx__ModelProto *model =
        (Onnx__ModelProto *)unpack(&file, &onnx__model_proto__descriptor, bytes, sizeof bytes - 1);
    assert_int_equal(model->ir_version, 7);
    assert_null(model->doc_string);
    assert_int_equal(model->base.n_unknown_fields, 0);
    wire_free(&file);
}

static void test_last_scalar_wins(void **state)
{
    (void)state;
    struct wire_file file;
    static const char bytes[] = "\x08\x07\x08\x08\x12\x01x\x12\x02yz";
    Onnx__ModelProto *model =
        (Onnx__ModelProto *)unpack(&file, &onnx__model_proto__descriptor, bytes, sizeof bytes - 1);
    assert_int_equal(model->ir_version, 8);
    assert_string_equal(model->producer_name, "yz");
    wire_free(&file);
}

/* ---- Spans ----------------------------------------------------------------------------------- */

static void test_spans(void **state)
{
    (void)state;
    char payload[WIRE_SPAN_MIN] = {1, 2, 3};
    struct text out;
    struct wire_file file;
    text_init(&out, &allocator_default);
    wire_put_int(&out, 2, TSSA_UINT8);
    wire_put_bytes(&out, 9, payload, sizeof payload);
    wire_put_bytes(&out, 5, payload, sizeof payload);     /* int32_data, packed */
    wire_put_bytes(&out, 4, payload, sizeof payload - 4); /* float_data, below the limit */
    Onnx__TensorProto *tensor =
        (Onnx__TensorProto *)unpack(&file, &onnx__tensor_proto__descriptor, out.data, out.size);
    const struct wire_span *raw = wire_tensor_span(&file, tensor, 9);
    const struct wire_span *ints = wire_tensor_span(&file, tensor, 5);
    assert_non_null(raw);
    assert_non_null(ints);
    assert_int_equal(raw->size, sizeof payload);
    assert_memory_equal(raw->data, payload, sizeof payload);
    assert_true((const char *)raw->data > out.data &&
                (const char *)raw->data < out.data + out.size);
    assert_true(ints->data > raw->data);
    assert_null(wire_tensor_span(&file, tensor, 4));
    assert_int_equal(tensor->n_float_data, sizeof payload / 4 - 1);
    assert_false(tensor->has_raw_data);
    assert_int_equal(tensor->n_int32_data, 0);
    wire_free(&file);

    /* Twice the same field: protobuf's rules decide, so nothing stays behind. */
    wire_put_bytes(&out, 9, payload, sizeof payload);
    tensor =
        (Onnx__TensorProto *)unpack(&file, &onnx__tensor_proto__descriptor, out.data, out.size);
    assert_null(wire_tensor_span(&file, tensor, 9));
    assert_true(tensor->has_raw_data);
    assert_int_equal(tensor->raw_data.len, sizeof payload);
    wire_free(&file);
    text_free(&out);
}

/* A payload that starts with what looks like a span of another tensor. */
static void test_spans_cannot_be_forged(void **state)
{
    (void)state;
    char payload[WIRE_SPAN_MIN] = {0};
    struct text inner, out;
    struct wire_file file;
    text_init(&inner, &allocator_default);
    text_init(&out, &allocator_default);
    wire_put_bytes(&inner, 9, payload, sizeof payload);
    wire_put_bytes(&out, 5, inner.data, inner.size); /* GraphProto.initializer */
    text_clear(&inner);
    wire_put_int(&inner, 19000, 0);
    wire_put_bytes(&out, 5, inner.data, inner.size);
    Onnx__GraphProto *graph =
        (Onnx__GraphProto *)unpack(&file, &onnx__graph_proto__descriptor, out.data, out.size);
    assert_int_equal(graph->n_initializer, 2);
    assert_non_null(wire_tensor_span(&file, graph->initializer[0], 9));
    assert_null(wire_tensor_span(&file, graph->initializer[1], 9));
    wire_free(&file);
    text_free(&inner);
    text_free(&out);
}

static tssa_status *unpack_some(const tssa_allocator *allocator)
{
    char payload[2 * WIRE_SPAN_MIN] = {0};
    struct text out;
    text_init(&out, &allocator_default);
    for (int i = 0; i < 40; i++)
        wire_put_bytes(&out, 9, payload, (size_t)i * 50); /* of which the last counts */
    struct wire_file file;
    ProtobufCMessage *message;
    wire_init(&file, allocator);
    tssa_status *status =
        wire_unpack(&file, &onnx__tensor_proto__descriptor, out.data, out.size, &message);
    wire_free(&file);
    text_free(&out);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(unpack_some) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_packed_and_not),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_last_scalar_wins),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_cannot_be_forged),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
