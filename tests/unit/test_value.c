/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, tensors and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/pool.h"
#include "base/value.h"
#include "common/test_alloc.h"

static void expect_error(tssa_status *status, tssa_code code, const char *part)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), part));
    tssa_status_free(status);
}

static void buffers_are_counted(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    for (size_t size = 0; size < 200; size += 13) {
        struct buffer *buffer = buffer_create(&alloc.allocator, size);
        assert_int_equal((uintptr_t)buffer->data % TENSOR_ALIGNMENT, 0);
        assert_int_equal(buffer->size, size);
        memset(buffer->data, 1, size);
        buffer_retain(buffer);
        buffer_release(buffer);
        assert_int_equal(alloc.live, 2); /* the header and the memory */
        buffer_release(buffer);
        assert_int_equal(alloc.live, 0);
    }
    buffer_retain(NULL);
    buffer_release(NULL);
    assert_null(buffer_create(&alloc.allocator, SIZE_MAX));
    assert_null(buffer_create(&alloc.allocator, SIZE_MAX - 60));
}

static void layouts(void **state)
{
    (void)state;
    size_t count = 0, bytes = 0;
    assert_null(tensor_layout(TSSA_FLOAT, 3, (int64_t[]){2, 3, 5}, &count, &bytes));
    assert_int_equal(count, 30);
    assert_int_equal(bytes, 120);
    assert_null(tensor_layout(TSSA_INT4, 0, NULL, &count, &bytes));
    assert_int_equal(count, 1);
    assert_int_equal(bytes, 1);
    assert_null(tensor_layout(TSSA_STRING, 2, (int64_t[]){7, 0}, &count, &bytes));
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    assert_null(tensor_layout(TSSA_UINT8, 1, (int64_t[]){INT64_MAX}, &count, &bytes));
    assert_int_equal(bytes, INT64_MAX);
}

static void impossible_layouts(void **state)
{
    (void)state;
    size_t count = 11, bytes = 12;
    const int64_t huge = INT64_C(1) << 32;
    int64_t ones[TSSA_MAX_RANK + 1];
    for (int i = 0; i <= TSSA_MAX_RANK; i++)
        ones[i] = INT64_MIN;
    expect_error(tensor_layout(TSSA_UNDEFINED, 0, NULL, &count, &bytes), TSSA_INVALID_ARGUMENT,
                 "type 0");
    expect_error(tensor_layout((tssa_dtype)27, 0, NULL, &count, &bytes), TSSA_INVALID_ARGUMENT,
                 "27");
    expect_error(tensor_layout(TSSA_FLOAT, -1, NULL, &count, &bytes), TSSA_INVALID_ARGUMENT,
                 "rank -1");
    expect_error(tensor_layout(TSSA_FLOAT, TSSA_MAX_RANK + 1, ones, &count, &bytes),
                 TSSA_INVALID_ARGUMENT, "rank 17");
    expect_error(tensor_layout(TSSA_FLOAT, 2, (int64_t[]){3, -4}, &count, &bytes),
                 TSSA_INVALID_ARGUMENT, "dim 1 of f32[3, -4] is negative");
    expect_error(tensor_layout(TSSA_FLOAT, TSSA_MAX_RANK, ones, &count, &bytes),
                 TSSA_INVALID_ARGUMENT, "-9223372036854775808]");
    expect_error(tensor_layout(TSSA_UINT8, 2, (int64_t[]){huge, huge}, &count, &bytes), TSSA_LIMIT,
                 "u8[4294967296, 4294967296]");
    expect_error(tensor_layout(TSSA_DOUBLE, 1, (int64_t[]){INT64_C(1) << 60}, &count, &bytes),
                 TSSA_LIMIT, "f64");
    /* Empty, but its strides would overflow. */
    expect_error(tensor_layout(TSSA_UINT8, 3, (int64_t[]){0, huge, huge}, &count, &bytes),
                 TSSA_LIMIT, "[0, ");
    assert_int_equal(count, 11);
    assert_int_equal(bytes, 12);
}

static void tensors(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct tensor a, b;
    assert_null(tensor_create(&alloc.allocator, TSSA_INT64, 2, (int64_t[]){2, 3}, &a));
    assert_int_equal(tensor_count(&a), 6);
    assert_int_equal(tensor_bytes(&a), 48);
    memset(a.data, 1, 48);
    assert_null(tensor_create(&alloc.allocator, TSSA_STRING, 2, (int64_t[]){2, 3}, &b));
    for (int i = 0; i < 6; i++)
        assert_int_equal(((tssa_string *)b.data)[i].size, 0);
    assert_true(tensor_same_shape(&a, &b));
    b.dims[1] = 2;
    assert_false(tensor_same_shape(&a, &b));
    b.rank = 1;
    assert_false(tensor_same_shape(&a, &b));
    buffer_release(a.owner);
    buffer_release(b.owner);
    assert_int_equal(alloc.live, 0);

    int64_t strides[3];
    tensor_strides(3, (int64_t[]){2, 3, 5}, strides);
    assert_memory_equal(strides, ((int64_t[]){15, 5, 1}), sizeof strides);
    tensor_strides(2, (int64_t[]){4, 0}, strides);
    assert_memory_equal(strides, ((int64_t[]){0, 1}), 2 * sizeof *strides);
}

static void descriptions(void **state)
{
    (void)state;
    char text[400];
    struct tensor t = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {2, 3}};
    tensor_describe(&t, text, sizeof text);
    assert_string_equal(text, "f32[2, 3]");
    /* Any room is enough, and always terminated. */
    for (size_t size = 1; size < 12; size++) {
        memset(text, 'x', sizeof text);
        tensor_describe(&t, text, size);
        size_t expected = size - 1 < 9 ? size - 1 : 9;
        assert_int_equal(strlen(text), expected);
        assert_memory_equal(text, "f32[2, 3]", expected);
        for (size_t i = size; i < sizeof text; i++)
            assert_int_equal(text[i], 'x');
    }
    text[0] = 'y';
    tensor_describe(&t, text, 0);
    assert_int_equal(text[0], 'y');
    t.rank = 0;
    t.dtype = TSSA_BOOL;
    tensor_describe(&t, text, sizeof text);
    assert_string_equal(text, "bool[]");
    value_describe(&(struct value){.kind = TSSA_KIND_NONE}, text, sizeof text);
    assert_string_equal(text, "none");
}

static void copies_share(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct value a = {.kind = TSSA_KIND_TENSOR}, b, c;
    assert_null(tensor_create(&alloc.allocator, TSSA_FLOAT, 0, NULL, &a.tensor));
    value_copy(&b, &a);
    assert_ptr_equal(a.tensor.data, b.tensor.data);
    value_move(&c, &b);
    assert_int_equal(b.kind, TSSA_KIND_NONE);
    value_release(&b);
    value_release(&a);
    assert_int_equal(a.kind, TSSA_KIND_NONE);
    assert_int_equal(alloc.live, 2);
    *(float *)c.tensor.data = 1;
    value_release(&c);
    value_release(&c);
    assert_int_equal(alloc.live, 0);

    float borrowed = 2;
    struct value d = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .data = &borrowed, .owner = NULL}};
    value_copy(&a, &d);
    assert_ptr_equal(a.tensor.data, &borrowed);
    value_release(&a);
    value_release(&d);
}

static void detaching_copies_what_is_borrowed(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    int32_t numbers[] = {1, 2, 3};
    struct value from = {.kind = TSSA_KIND_TENSOR,
                         .tensor = {.dtype = TSSA_INT32, .rank = 1, .dims = {3}, .data = numbers}};
    struct value to, again;
    assert_null(value_detach(&alloc.allocator, &from, &to));
    numbers[0] = 9;
    assert_memory_equal(to.tensor.data, ((int32_t[]){1, 2, 3}), 12);
    assert_int_equal(to.tensor.dims[0], 3);
    assert_null(value_detach(&alloc.allocator, &to, &again));
    assert_ptr_equal(again.tensor.data, to.tensor.data); /* owned already: shared */
    value_release(&to);
    value_release(&again);
    from.tensor.dims[0] = 0;
    from.tensor.data = NULL;
    assert_null(value_detach(&alloc.allocator, &from, &to));
    value_release(&to);
    struct value none = {.kind = TSSA_KIND_NONE};
    assert_null(value_detach(&alloc.allocator, &none, &to));
    assert_int_equal(to.kind, TSSA_KIND_NONE);
    assert_int_equal(alloc.live, 0);
}

static void detaching_leaves_the_pool(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    struct buffer *buffer = pool_alloc(&pool, 4);
    memcpy(buffer->data, "abcd", 4);
    struct value from = {
        .kind = TSSA_KIND_TENSOR,
        .tensor = {
            .dtype = TSSA_UINT8, .rank = 1, .dims = {4}, .data = buffer->data, .owner = buffer}};
    struct value to;
    assert_null(value_detach(&alloc.allocator, &from, &to));
    assert_ptr_not_equal(to.tensor.data, from.tensor.data);
    value_release(&from);
    pool_clear(&pool);
    assert_memory_equal(to.tensor.data, "abcd", 4);
    value_release(&to);
    assert_int_equal(alloc.live, 0);
}

static void detaching_strings(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    char text[] = "hello\0world";
    struct value from = {.kind = TSSA_KIND_TENSOR}, to, again;
    assert_null(tensor_create(&alloc.allocator, TSSA_STRING, 1, (int64_t[]){3}, &from.tensor));
    tssa_string *strings = from.tensor.data;
    strings[0] = (tssa_string){text, 11};
    strings[2] = (tssa_string){text + 6, 5};
    /* The elements are owned, their bytes are not. */
    assert_null(value_detach(&alloc.allocator, &from, &to));
    memset(text, 'x', sizeof text);
    value_release(&from);
    const tssa_string *copies = to.tensor.data;
    assert_int_equal(copies[0].size, 11);
    assert_memory_equal(copies[0].data, "hello\0world", 11);
    assert_int_equal(copies[1].size, 0);
    assert_memory_equal(copies[2].data, "world", 5);
    assert_null(value_detach(&alloc.allocator, &to, &again));
    assert_ptr_equal(again.tensor.data, to.tensor.data);
    value_release(&to);
    assert_memory_equal(((tssa_string *)again.tensor.data)[2].data, "world", 5);
    value_release(&again);
    assert_int_equal(alloc.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_counted),
        cmocka_unit_test(layouts),
        cmocka_unit_test(impossible_layouts),
        cmocka_unit_test(tensors),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(copies_share),
        cmocka_unit_test(detaching_copies_what_is_borrowed),
        cmocka_unit_test(detaching_leaves_the_pool),
        cmocka_unit_test(detaching_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
