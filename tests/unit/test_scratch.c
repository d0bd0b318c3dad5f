/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SIZE 1024

static struct buffer *take(struct step_scratch *scratch, struct scratch_use *use, struct pool *pool,
                           size_t size, int fill)
{
    struct buffer *buffer = scratch_take(scratch, use, pool, size);
    assert_non_null(buffer);
    assert_true(buffer->size >= size && (uintptr_t)buffer->data % TENSOR_ALIGNMENT == 0);
    memset(buffer->data, fill, size);
    return buffer;
}

static bool is_filled(const struct buffer *buffer, size_t size, char with)
{
    for (size_t i = 0; i < size; i++)
        if (((const char *)buffer->data)[i] != with)
            return false;
    return true;
}

/* Whatever the order in which they are released, and what comes after finds their room. */
static void test_stacked(void **state)
{
    (void)state;
    static _Alignas(TENSOR_ALIGNMENT) char memory[SIZE];
    bool missed = false;
    struct step_scratch scratch = {memory, SIZE, 0, &missed};
    struct pool pool;
    pool_init(&pool, &allocator_default);
    for (int run = 0; run < 2; run++) {
        struct scratch_use use = {0};
        struct buffer *a = take(&scratch, &use, &pool, 100, 1);
        struct buffer *b = take(&scratch, &use, &pool, 1, 2);
        struct buffer *c = take(&scratch, &use, &pool, 64, 3);
        assert_true(is_filled(a, 100, 1) && is_filled(b, 1, 2) && is_filled(c, 64, 3));
        buffer_release(b);
        struct buffer *d = take(&scratch, &use, &pool, 64, 4);
        assert_true(is_filled(a, 100, 1) && is_filled(c, 64, 3));
        buffer_release(c);
        buffer_release(d);
        struct buffer *e = take(&scratch, &use, &pool, 200, 5);
        assert_ptr_equal(e->data, b->data);
        assert_true(is_filled(a, 100, 1));
        buffer_release(e);
        buffer_release(a);
        assert_ptr_equal(take(&scratch, &use, &pool, SIZE - TENSOR_ALIGNMENT, 6)->data, a->data);
    }
    assert_false(missed);
    assert_int_equal(scratch.most, SIZE);
    assert_int_equal(pool.takes, 0);
    pool_clear(&pool);
}

/* What is missing is told, at least as much. */
static void test_learnt(void **state)
{
    (void)state;
    static _Alignas(TENSOR_ALIGNMENT) char memory[SIZE];
    bool missed = false;
    struct step_scratch scratch = {memory, 256, 0, &missed};
    struct scratch_use use = {0};
    struct pool pool;
    pool_init(&pool, &allocator_default);
    struct buffer *a = take(&scratch, &use, &pool, 100, 1);
    struct buffer *b = take(&scratch, &use, &pool, 300, 2);
    struct buffer *c = take(&scratch, &use, &pool, 300, 3);
    assert_true(missed && scratch.most >= 800 && pool.takes == 2);
    assert_true(is_filled(a, 100, 1) && is_filled(b, 300, 2) && is_filled(c, 300, 3));
    buffer_release(a);
    buffer_release(b);
    buffer_release(c);
    assert_null(scratch_take(&scratch, &use, &pool, SIZE_MAX));
    assert_null(scratch_take(&scratch, &use, &pool, SIZE_MAX - 100));
    pool_clear(&pool);
}

static void test_none(void **state)
{
    (void)state;
    struct step_scratch none = {NULL, 0, 0, NULL};
    struct scratch_use use = {0};
    struct pool pool;
    pool_init(&pool, &allocator_default);
    buffer_release(take(NULL, &use, &pool, 100, 1));
    buffer_release(take(&none, &use, &pool, 100, 1));
    assert_true(pool.takes == 2 && none.most == 0);
    pool_clear(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacked),
        cmocka_unit_test(test_learnt),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
