/* SPDX-License-Identifier: Apache-2.0 */
/* The default allocator and checked arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"

static void alignment_and_sizes(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        for (size_t size = 0; size < 300; size += 37) {
            char *p = allocator_alloc_aligned(&allocator_default, size, alignment);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignment, 0);
            memset(p, 1, size);
            allocator_free(&allocator_default, p);
        }
    }
    allocator_free(&allocator_default, NULL);
}

static void impossible_sizes(void **state)
{
    (void)state;
    assert_null(allocator_alloc(&allocator_default, SIZE_MAX));
    assert_null(allocator_alloc_aligned(&allocator_default, SIZE_MAX - 5, 64));
    assert_null(allocator_calloc(&allocator_default, SIZE_MAX / 2, 3));
    assert_null(allocator_default.allocate(NULL, SIZE_MAX, 64));
}

static void calloc_zeroes(void **state)
{
    (void)state;
    unsigned char *p = allocator_calloc(&allocator_default, 100, 7);
    for (size_t i = 0; i < 700; i++)
        assert_int_equal(p[i], 0);
    allocator_free(&allocator_default, p);
}

static void checked_arithmetic(void **state)
{
    (void)state;
    size_t s = 1;
    assert_true(size_mul(SIZE_MAX / 2, 2, &s));
    assert_int_equal(s, SIZE_MAX - 1);
    assert_false(size_mul(SIZE_MAX / 2 + 1, 2, &s));
    assert_false(size_add(SIZE_MAX, 1, &s));
    assert_int_equal(s, SIZE_MAX - 1); /* untouched */
    int64_t i = 1;
    assert_false(i64_mul(INT64_MIN, -1, &i));
    assert_false(i64_add(INT64_MAX, 1, &i));
    assert_int_equal(i, 1);
    assert_true(i64_mul(-3, 5, &i));
    assert_int_equal(i, -15);
    assert_true(i64_add(INT64_MIN, INT64_MAX, &i));
    assert_int_equal(i, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignment_and_sizes),
        cmocka_unit_test(impossible_sizes),
        cmocka_unit_test(calloc_zeroes),
        cmocka_unit_test(checked_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
