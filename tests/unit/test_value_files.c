/* SPDX-License-Identifier: Apache-2.0 */
/* Values to .pb files and back: every element type, sequences, optionals, maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/test_alloc.h"
#include "onnx/tensor_proto.h"

static const struct onnx_value_type a_tensor = {.kind = TSSA_KIND_TENSOR};

static void check(tssa_status *status)
{
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
}

static struct value make_tensor(tssa_dtype dtype, int rank, const int64_t *dims)
{
    struct value value = {.kind = TSSA_KIND_TENSOR};
    check(tensor_create(&allocator_default, dtype, rank, dims, &value.tensor));
    uint8_t *data = value.tensor.data;
    size_t bytes = tensor_bytes(&value.tensor);
    unsigned bits = dtype_info(dtype)->file_bits;
    for (size_t i = 0; i < bytes && dtype != TSSA_STRING; i++) {
        data[i] = (uint8_t)(i * 37 + 11);
        if (dtype == TSSA_BOOL)
            data[i] &= 1;
        if (bits < 8) /* as it is in memory: sign-extended, or the code */
            dtype_unpack(dtype, &data[i], 1, &data[i]);
    }
    return value;
}

static void round_trip(const struct value *value, const struct onnx_value_type *type,
                       struct value *back)
{
    struct text text;
    text_init(&text, &allocator_default);
    check(onnx_write_value(value, type->is_optional, "name", &text));
    check(onnx_read_value(&allocator_default, text.data, text.size, type, back));
    text_free(&text);
}

static void assert_same(const struct tensor *a, const struct tensor *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_true(tensor_same_shape(a, b));
    if (tensor_bytes(a))
        assert_memory_equal(a->data, b->data, tensor_bytes(a));
}

static void test_every_dtype(void **state)
{
    (void)state;
    static const int64_t small[] = {3, 5}, large[] = {1, 3001}, none[] = {0, 4};
    const int64_t *const shapes[] = {small, large, none};
    for (int dtype = 1; dtype < TSSA_DTYPE_COUNT; dtype++)
        for (int shape = 0; shape < 4 && dtype != TSSA_STRING; shape++) {
            struct value back, value = make_tensor((tssa_dtype)dtype, shape < 3 ? 2 : 0,
                                                   shape < 3 ? shapes[shape] : NULL);
            round_trip(&value, &a_tensor, &back);
            assert_same(&value.tensor, &back.tensor);
            value_release(&value);
            value_release(&back);
        }
}

static void test_strings(void **state)
{
    (void)state;
    static const int64_t dims[] = {3};
    struct value back, value = make_tensor(TSSA_STRING, 1, dims);
    tssa_string *strings = value.tensor.data;
    strings[0] = (tssa_string){"a\0b", 3};
    strings[2] = (tssa_string){"\xff", 1}; /* any bytes */
    round_trip(&value, &a_tensor, &back);
    value_release(&value);
    strings = back.tensor.data;
    assert_int_equal(strings[0].size, 3);
    assert_memory_equal(strings[0].data, "a\0b", 3);
    assert_int_equal(strings[1].size, 0);
    assert_memory_equal(strings[2].data, "\xff", 1);
    value_release(&back);
}

static void test_sequences(void **state)
{
    (void)state;
    static const int64_t dims[] = {2};
    struct onnx_value_type type = {.kind = TSSA_KIND_SEQUENCE, .dtype = TSSA_INT32};
    struct value back, empty, one, two, element = make_tensor(TSSA_INT32, 1, dims);
    check(sequence_create(&allocator_default, TSSA_INT32, &empty));
    check(sequence_insert(&empty, 0, &element, &one));
    check(sequence_insert(&one, 1, &element, &two));
    round_trip(&two, &type, &back);
    assert_int_equal(sequence_length(back.sequence), 2);
    assert_int_equal(sequence_dtype(back.sequence), TSSA_INT32);
    assert_same(&sequence_element(back.sequence, 1)->tensor, &element.tensor);
    value_release(&back);
    round_trip(&empty, &type, &back);
    assert_int_equal(sequence_length(back.sequence), 0);
    assert_int_equal(sequence_dtype(back.sequence), TSSA_INT32);
    value_release(&back);

    /* A sequence of sequences. */
    struct value nested;
    check(sequence_insert(&empty, 0, &two, &nested));
    round_trip(&nested, &type, &back);
    assert_int_equal(sequence_element(back.sequence, 0)->kind, TSSA_KIND_SEQUENCE);
    assert_int_equal(sequence_length(sequence_element(back.sequence, 0)->sequence), 2);
    value_release(&back);

    /* An optional sequence. */
    type.is_optional = true;
    round_trip(&one, &type, &back);
    assert_int_equal(sequence_length(back.sequence), 1);
    value_release(&back);
    value_release(&nested);
    value_release(&two);
    value_release(&one);
    value_release(&empty);
    value_release(&element);
}

static void test_optionals(void **state)
{
    (void)state;
    struct onnx_value_type type = {.kind = TSSA_KIND_TENSOR, .is_optional = true};
    struct value back, none = {.kind = TSSA_KIND_NONE}, scalar = make_tensor(TSSA_DOUBLE, 0, NULL);
    round_trip(&none, &type, &back);
    assert_int_equal(back.kind, TSSA_KIND_NONE);
    round_trip(&scalar, &type, &back);
    assert_same(&scalar.tensor, &back.tensor);
    value_release(&back);
    struct text text;
    text_init(&text, &allocator_default);
    tssa_status *status = onnx_write_value(&none, false, NULL, &text);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    text_free(&text);
    value_release(&scalar);
}

static void test_maps(void **state)
{
    (void)state;
    static const int64_t dims[] = {1};
    const struct onnx_value_type type = {.kind = TSSA_KIND_MAP};
    struct value key = make_tensor(TSSA_INT64, 1, dims), item = make_tensor(TSSA_FLOAT, 0, NULL);
    struct value empty, items, map, back;
    check(sequence_create(&allocator_default, TSSA_FLOAT, &empty));
    check(sequence_insert(&empty, 0, &item, &items));
    check(value_map_create(&allocator_default, &key, &items, &map));
    round_trip(&map, &type, &back);
    assert_same(&value_map_keys(back.map)->tensor, &key.tensor);
    assert_same(&sequence_element(value_map_values(back.map)->sequence, 0)->tensor, &item.tensor);
    value_release(&back);
    value_release(&map);
    value_release(&items);
    value_release(&empty);
    value_release(&item);
    value_release(&key);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuse(const char *bytes, size_t size, const struct onnx_value_type *type,
                   const char *message)
{
    struct value value;
    tssa_status *status = onnx_read_value(&allocator_default, bytes, size, type, &value);
    assert_non_null(status);
    if (!strstr(tssa_status_message(status), message))
        print_error("expected: %s\ngot: %s\n", message, tssa_status_message(status));
    assert_non_null(strstr(tssa_status_message(status), message));
    tssa_status_free(status);
}

static void test_bad_files(void **state)
{
    (void)state;
    const struct onnx_value_type sequence = {.kind = TSSA_KIND_SEQUENCE};
    const struct onnx_value_type map = {.kind = TSSA_KIND_MAP};
    refuse("", 0, &a_tensor, "element type 0 is unknown");
    refuse("\x08\x04\x10\x01", 4, &a_tensor, "f32[4] has no data");
    refuse("\x10\x02\x4a\x02xy", 6, &a_tensor, "u8[] takes 1 bytes of data, not 2");
    refuse("\x10\x02\x70\x01", 4, &a_tensor, "its data is in another file");
    refuse("\x10\x02\x1a\x03xyz", 7, &sequence, "byte");
    refuse("\x10\x01\x1a\x02\x10\x02", 6, &sequence, "element 0: u8[] has no data");
    refuse("\x10\x09", 2, &sequence, "a sequence of element type 9");
    refuse("\x10\x07", 2, &map, "a map has no values");
    refuse("\x10\x01\x1a\x05\x10\x02\x4a\x01x\x1a\x05\x10\x03\x4a\x01y", 16, &sequence,
           "element 1: it is of type INT8 in a sequence of UINT8");
}

static tssa_status *read_sequence(const tssa_allocator *allocator)
{
    static const char bytes[] = "\x10\x01\x1a\x05\x10\x08\x32\x01x\x1a\x05\x10\x08\x32\x01y";
    const struct onnx_value_type type = {.kind = TSSA_KIND_SEQUENCE};
    struct value value;
    TRY(onnx_read_value(allocator, bytes, sizeof bytes - 1, &type, &value));
    struct text text;
    text_init(&text, allocator);
    tssa_status *status = onnx_write_value(&value, true, "x", &text);
    text_free(&text);
    value_release(&value);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(read_sequence) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),   cmocka_unit_test(test_strings),
        cmocka_unit_test(test_sequences),     cmocka_unit_test(test_optionals),
        cmocka_unit_test(test_maps),          cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
