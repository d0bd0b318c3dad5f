/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: what numpy writes is read, what is written reads back, and nonsense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/test_alloc.h"
#include "tools/common/npy.h"
#include "tools/common/value_file.h"

struct file {
    unsigned char bytes[512];
    size_t size;
};

/* A file of the given version, header text and element bytes. */
static struct file make_file(int version, const char *dict, const void *elements, size_t size)
{
    struct file file = {.size = 0};
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(file.bytes, "\x93NUMPY", 6);
    file.bytes[6] = (unsigned char)version;
    file.bytes[8] = (unsigned char)length;
    memcpy(file.bytes + start, dict, length);
    if (size)
        memcpy(file.bytes + start + length, elements, size);
    file.size = start + length + size;
    return file;
}

static struct value read_file(const struct file *file)
{
    struct value value;
    tssa_status *status = npy_read(&allocator_default, file->bytes, file->size, &value);
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
    return value;
}

static void expect_refused(const struct file *file, tssa_code code, const char *part)
{
    struct value value;
    tssa_status *status = npy_read(&allocator_default, file->bytes, file->size, &value);
    assert_non_null(status);
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), part));
    tssa_status_free(status);
}

static void reads_every_version(void **state)
{
    (void)state;
    const int32_t elements[6] = {1, 2, 3, 4, 5, -6};
    for (int version = 1; version <= 3; version++) {
        struct file file =
            make_file(version, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   \n",
                      elements, 24);
        struct value value = read_file(&file);
        assert_int_equal(value.tensor.dtype, TSSA_INT32);
        assert_int_equal(value.tensor.rank, 2);
        assert_int_equal(value.tensor.dims[1], 3);
        assert_memory_equal(value.tensor.data, elements, 24);
        value_release(&value);
    }
}

static void transposes_column_major(void **state)
{
    (void)state;
    const uint8_t elements[6] = {1, 4, 2, 5, 3, 6}, wanted[6] = {1, 2, 3, 4, 5, 6};
    struct file file =
        make_file(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}\n", elements, 6);
    struct value value = read_file(&file);
    assert_memory_equal(value.tensor.data, wanted, 6);
    value_release(&value);
}

static void reads_scalars_and_empty_arrays(void **state)
{
    (void)state;
    double scalar = 2.5;
    struct file file =
        make_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}\n", &scalar, 8);
    struct value value = read_file(&file);
    assert_int_equal(value.tensor.rank, 0);
    assert_memory_equal(value.tensor.data, &scalar, 8);
    value_release(&value);
    file = make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4L)}\n", NULL, 0);
    value = read_file(&file);
    assert_int_equal(tensor_count(&value.tensor), 0);
    assert_int_equal(value.tensor.dims[1], 4);
    value_release(&value);
}

static void makes_bools_zero_or_one(void **state)
{
    (void)state;
    const uint8_t elements[3] = {0, 7, 1}, wanted[3] = {0, 1, 1};
    struct file file =
        make_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}\n", elements, 3);
    struct value value = read_file(&file);
    assert_memory_equal(value.tensor.data, wanted, 3);
    value_release(&value);
}

static void reads_strings(void **state)
{
    (void)state;
    const uint32_t elements[6] = {'a', 0xe9, 0, 0x65e5, 0x1f600, 'z'};
    struct file file =
        make_file(1, "{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}\n", elements, 24);
    struct value value = read_file(&file);
    const tssa_string *strings = value.tensor.data;
    assert_int_equal(strings[0].size, 3);
    assert_memory_equal(strings[0].data, "a\xc3\xa9", 3);
    assert_int_equal(strings[1].size, 8);
    assert_memory_equal(strings[1].data, "\xe6\x97\xa5\xf0\x9f\x98\x80z", 8);
    value_release(&value);
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    struct file file =
        make_file(1, "{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}", "abcd", 4);
    expect_refused(&file, TSSA_UNSUPPORTED, "big-endian");
    file = make_file(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "abcd", 4);
    expect_refused(&file, TSSA_UNSUPPORTED, "Python objects");
    file =
        make_file(1, "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "abcd", 4);
    expect_refused(&file, TSSA_UNSUPPORTED, "structured");
    file =
        make_file(1, "{'descr': '<M8[us]', 'fortran_order': False, 'shape': (1,)}", "abcdefgh", 8);
    expect_refused(&file, TSSA_UNSUPPORTED, "no ONNX type");
    file = make_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}", "abcd", 4);
    expect_refused(&file, TSSA_MALFORMED, "4 bytes");
    file = make_file(1, "{'descr': '<i4', 'shape': (1,)}", "abcd", 4);
    expect_refused(&file, TSSA_MALFORMED, "lacks");
    file =
        make_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807, 3)}",
                  "abcd", 4);
    expect_refused(&file, TSSA_LIMIT, "");
    file = make_file(1, "{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "\0\xd8\0\0", 4);
    expect_refused(&file, TSSA_MALFORMED, "character");
    file.bytes[6] = 4;
    expect_refused(&file, TSSA_UNSUPPORTED, "version 4");
    file.bytes[0] = 'x';
    expect_refused(&file, TSSA_MALFORMED, "no .npy file");
}

static void survives_truncation(void **state)
{
    (void)state;
    const float elements[2] = {1, 2};
    struct file whole =
        make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", elements, 8);
    for (size_t size = 0; size < whole.size; size++) {
        struct value value;
        char *exact = malloc(size ? size : 1); /* so that a sanitizer sees a read behind the end */
        assert_non_null(exact);
        memcpy(exact, whole.bytes, size);
        tssa_status *status = npy_read(&allocator_default, exact, size, &value);
        assert_non_null(status);
        assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
        tssa_status_free(status);
        free(exact);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static struct value write_and_read(const struct tensor *tensor, tssa_dtype dtype)
{
    char path[] = "/tmp/tssa-npy-XXXXXX.npy";
    struct file_writer writer;
    struct value value;
    int descriptor = mkstemps(path, 4);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_null(file_writer_open(&allocator_default, path, &writer));
    assert_null(npy_write(tensor, &writer));
    assert_null(file_writer_commit(&writer));
    const struct onnx_value_type type = {.kind = TSSA_KIND_TENSOR, .dtype = dtype};
    assert_null(value_file_read(&allocator_default, path, &type, &value));
    unlink(path);
    return value;
}

static void writes_every_type(void **state)
{
    (void)state;
    unsigned char bytes[6 * 16];
    for (int dtype = 1; dtype < TSSA_DTYPE_COUNT; dtype++) {
        if (dtype == TSSA_STRING)
            continue;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(dtype == TSSA_BOOL ? i & 1 : i * 37);
        if (dtype_info((tssa_dtype)dtype)->file_bits < 8) {
            unsigned char packed[6] = {0x1e, 0x72, 0xf8, 0x30, 0x55, 0xaa};
            dtype_unpack((tssa_dtype)dtype, packed, 6, bytes);
        }
        struct tensor tensor = {
            .dtype = (tssa_dtype)dtype, .rank = 2, .dims = {2, 3}, .data = bytes};
        struct value value = write_and_read(&tensor, (tssa_dtype)dtype);
        assert_int_equal(value.tensor.dtype, dtype);
        assert_true(tensor_same_shape(&value.tensor, &tensor));
        assert_memory_equal(value.tensor.data, bytes, tensor_bytes(&tensor));
        value_release(&value);
    }
}

static void writes_strings(void **state)
{
    (void)state;
    tssa_string strings[3] = {{"", 0}, {"\xf0\x9f\x98\x80!", 5}, {"abc", 3}};
    struct tensor tensor = {.dtype = TSSA_STRING, .rank = 1, .dims = {3}, .data = strings};
    struct value value = write_and_read(&tensor, TSSA_STRING);
    const tssa_string *read = value.tensor.data;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read[i].size, strings[i].size);
        assert_memory_equal(read[i].data, strings[i].data, strings[i].size);
    }
    value_release(&value);
}

static tssa_status *allocation_scenario(const tssa_allocator *allocator)
{
    const uint32_t elements[2] = {'a', 0x65e5};
    struct file file =
        make_file(1, "{'descr': '<U1', 'fortran_order': False, 'shape': (2,)}", elements, 8);
    struct value value;
    TRY(npy_read(allocator, file.bytes, file.size, &value));
    value_release(&value);
    return NULL;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(allocation_scenario) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_version),
        cmocka_unit_test(transposes_column_major),
        cmocka_unit_test(reads_scalars_and_empty_arrays),
        cmocka_unit_test(makes_bools_zero_or_one),
        cmocka_unit_test(reads_strings),
        cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(survives_truncation),
        cmocka_unit_test(writes_every_type),
        cmocka_unit_test(writes_strings),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
