/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "base/vec.h"
#include "common/test_alloc.h"

static void pushes(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    VEC(int64_t) v = VEC_INIT(&alloc.allocator);
    for (int64_t i = 0; i < 10000; i++)
        assert_true(vec_push(&v, i * i));
    assert_int_equal(v.count, 10000);
    for (int64_t i = 0; i < 10000; i++)
        assert_int_equal(v.data[i], i * i);
    assert_true(alloc.count < 30); /* amortised growth */
    vec_free(&v);
    assert_null(v.data);
    assert_int_equal(v.capacity, 0);
    assert_int_equal(alloc.live, 0);
    assert_true(vec_push(&v, 1)); /* usable again */
    vec_free(&v);
}

static void holds_pointers_and_structs(void **state)
{
    (void)state;
    struct pair {
        char c;
        double d;
    };
    VEC(struct pair) pairs;
    VEC(const char *) names;
    vec_init(&pairs, &allocator_default);
    vec_init(&names, &allocator_default);
    for (int i = 0; i < 100; i++) {
        assert_true(vec_push(&pairs, ((struct pair){(char)i, i / 2.0})));
        assert_true(vec_push(&names, "x"));
    }
    assert_true(pairs.data[99].d == 49.5 && pairs.data[99].c == 99);
    assert_string_equal(names.data[99], "x");
    vec_free(&pairs);
    vec_free(&names);
}

static void reserves_at_once(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    VEC(int) v = VEC_INIT(&alloc.allocator);
    assert_true(vec_reserve(&v, 1000));
    assert_true(v.capacity >= 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(vec_push(&v, i));
    assert_int_equal(alloc.count, 1);
    size_t none = 0;
    assert_true(vec_reserve(&v, none));
    assert_int_equal(alloc.count, 1);
    vec_free(&v);
}

static void failure_changes_nothing(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    VEC(int) v = VEC_INIT(&alloc.allocator);
    assert_true(vec_push(&v, 5));
    size_t capacity = v.capacity;
    assert_false(vec_reserve(&v, SIZE_MAX));
    assert_false(vec_reserve(&v, SIZE_MAX / 4));
    alloc.fail_at = alloc.count;
    assert_false(vec_reserve(&v, 1000));
    assert_int_equal(v.count, 1);
    assert_int_equal(v.capacity, capacity);
    assert_int_equal(v.data[0], 5);
    vec_free(&v);
    assert_int_equal(alloc.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes),
        cmocka_unit_test(holds_pointers_and_structs),
        cmocka_unit_test(reserves_at_once),
        cmocka_unit_test(failure_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
