/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/pool.h"
#include "common/test_alloc.h"

#define EACH 2 /* allocations of a buffer: its header and its memory */

static void classes_waste_little(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, &allocator_default);
    for (size_t size = 0; size < 3000000; size += 1 + size / 7) {
        struct buffer *buffer = pool_alloc(&pool, size);
        assert_true(buffer->size >= size);
        assert_true(buffer->size <= (size < 256 ? 256 : size + size / 4));
        assert_int_equal((uintptr_t)buffer->data % TENSOR_ALIGNMENT, 0);
        memset(buffer->data, 1, buffer->size);
        assert_int_equal(pool.used_bytes, buffer->size);
        size_t kept = buffer->size;
        buffer_release(buffer);
        assert_int_equal(pool.used_bytes, 0);
        /* The same size comes back from the cache, and so does the whole class's. */
        struct buffer *again = pool_alloc(&pool, kept);
        assert_ptr_equal(again, buffer);
        buffer_release(again);
    }
    pool_clear(&pool);
}

static void class_borders(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, &allocator_default);
    static const size_t sizes[][2] = {{1, 256},      {256, 256},   {257, 320},   {320, 320},
                                      {321, 384},    {448, 448},   {449, 512},   {512, 512},
                                      {513, 640},    {1024, 1024}, {1025, 1280}, {65536, 65536},
                                      {65537, 81920}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buffer *buffer = pool_alloc(&pool, sizes[i][0]);
        assert_int_equal(buffer->size, sizes[i][1]);
        buffer_release(buffer);
    }
    pool_clear(&pool);
}

static void steady_runs_do_not_allocate(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    long after_first = 0;
    for (int run = 0; run < 5; run++) {
        struct buffer *buffers[20];
        for (size_t i = 0; i < 20; i++)
            buffers[i] = pool_alloc(&pool, 100 * (i % 7 + 1));
        for (size_t i = 0; i < 20; i++)
            buffer_release(buffers[i]);
        pool_trim(&pool);
        if (run == 0)
            after_first = alloc.count;
    }
    assert_int_equal(alloc.count, after_first);
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
}

static void trimming_gives_back(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    struct buffer *big = pool_alloc(&pool, 1 << 20), *small = pool_alloc(&pool, 1000);
    buffer_release(big);
    buffer_release(small);
    size_t both = pool.free_bytes;
    assert_int_equal(pool.peak_bytes, both);
    pool_trim(&pool); /* all of it was in use at once */
    assert_int_equal(pool.free_bytes, both);
    small = pool_alloc(&pool, 1000);
    assert_int_equal(pool.peak_bytes, small->size);
    pool_trim(&pool); /* the big one was not needed this time */
    assert_int_equal(pool.free_bytes, 0);
    assert_int_equal(alloc.live, EACH);
    buffer_release(small);
    assert_int_equal(pool.free_bytes, 1024);
    pool_trim(&pool);
    pool_trim(&pool); /* a run without any buffer */
    assert_int_equal(pool.free_bytes, 0);
    assert_int_equal(alloc.live, 0);
    pool_clear(&pool);
}

/* What one run uses one after the other is there for the next. */
static void classes_are_kept_one_by_one(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    for (int run = 0; run < 3; run++) {
        for (size_t size = 1000; size <= 64000; size *= 2)
            for (int i = 0; i < 3; i++)
                buffer_release(pool_alloc(&pool, size));
        pool_trim(&pool);
        assert_int_equal(alloc.count, 7 * EACH);
    }
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
}

static void an_allocator_of_its_own(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    int *numbers = allocator_calloc(&pool.cached, 100, sizeof *numbers);
    for (int i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    void *aligned = allocator_alloc_aligned(&pool.cached, 10, TENSOR_ALIGNMENT);
    assert_int_equal((uintptr_t)aligned % TENSOR_ALIGNMENT, 0);
    assert_null(allocator_alloc_aligned(&pool.cached, 10, 2 * TENSOR_ALIGNMENT));
    allocator_free(&pool.cached, numbers);
    allocator_free(&pool.cached, aligned);
    assert_int_equal(alloc.count, 2 * EACH);
    numbers = allocator_calloc(&pool.cached, 100, sizeof *numbers);
    assert_int_equal(alloc.count, 2 * EACH);
    allocator_free(&pool.cached, numbers);
    assert_int_equal(pool.used_bytes, 0);
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
}

static void buffers_may_leave(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    struct buffer *buffer = pool_alloc(&pool, 500);
    buffer_leave_pool(buffer);
    buffer_leave_pool(buffer); /* a second time does nothing */
    assert_int_equal(pool.used_bytes, 0);
    pool_clear(&pool);
    memset(buffer->data, 1, 500);
    buffer_release(buffer);
    assert_int_equal(alloc.live, 0);
}

static void memory_pressure_empties_the_cache(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct pool pool;
    pool_init(&pool, &alloc.allocator);
    buffer_release(pool_alloc(&pool, 1000));
    assert_int_equal(alloc.live, EACH);
    alloc.fail_at = alloc.count;
    struct buffer *buffer = pool_alloc(&pool, 5000);
    assert_non_null(buffer); /* the second try */
    assert_int_equal(pool.free_bytes, 0);
    assert_int_equal(alloc.live, EACH);
    alloc.fail_at = alloc.count;
    assert_null(pool_alloc(&pool, 1 << 20));
    assert_int_equal(pool.used_bytes, buffer->size);
    buffer_release(buffer);
    assert_null(pool_alloc(&pool, SIZE_MAX));
    assert_null(pool_alloc(&pool, SIZE_MAX - TENSOR_ALIGNMENT));
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
}

/* Pretends to have the memory: nothing touches it. */
static void *lend(void *user, size_t size, size_t alignment)
{
    *(size_t *)user = size; /* the header's comes before */
    return allocator_default.allocate(NULL, 4096, alignment);
}

static void too_large_to_keep(void **state)
{
    (void)state;
    size_t asked = 0;
    tssa_allocator allocator = {&asked, lend, allocator_default.release};
    struct pool pool;
    pool_init(&pool, &allocator);
    const size_t size = (size_t)5 << 30;
    struct buffer *buffer = pool_alloc(&pool, size);
    assert_int_equal(asked, size);
    assert_int_equal(pool.used_bytes, size);
    buffer_release(buffer);
    assert_int_equal(pool.used_bytes, 0);
    assert_int_equal(pool.free_bytes, 0);
    /* The largest class is still kept. */
    buffer_release(pool_alloc(&pool, ((size_t)7 << 29)));
    assert_int_equal(pool.free_bytes, (size_t)7 << 29);
    buffer_release(pool_alloc(&pool, ((size_t)7 << 29) + 1));
    assert_int_equal(pool.free_bytes, (size_t)7 << 29);
    pool_clear(&pool);
}

/* A space whose handles nothing may look behind. */
struct far {
    uintptr_t next;
    size_t given, taken;
    bool none;
};

static void *far_allocate(void *user, size_t size)
{
    struct far *far = user;
    if (far->none)
        return NULL;
    far->given += size;
    return (void *)++far->next;
}

static void far_release(void *user, void *memory, size_t size)
{
    struct far *far = user;
    assert_true((uintptr_t)memory >= 1 && (uintptr_t)memory <= far->next);
    far->taken += size;
}

static void headers_lie_beside(void **state)
{
    (void)state;
    struct far far = {0};
    struct test_alloc alloc;
    struct pool pool;
    const struct buffer_space space = {&far, far_allocate, far_release};
    test_alloc_init(&alloc);
    pool_init_in(&pool, &alloc.allocator, &space);
    struct buffer *a = pool_alloc(&pool, 1000), *b = pool_alloc(&pool, 5000);
    assert_true(a->data == (void *)1 && b->data == (void *)2);
    assert_ptr_equal(a->space, b->space);
    assert_int_equal(alloc.live, 2); /* headers */
    buffer_release(a);
    assert_ptr_equal(pool_alloc(&pool, 1000), a); /* cached */
    far.none = true;
    assert_null(pool_alloc(&pool, 100));
    buffer_release(a);
    buffer_release(b);
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
    assert_int_equal(far.given, far.taken);
    far.none = false;
    buffer_release(pool_alloc(&pool, 100)); /* still of that space */
    pool_clear(&pool);
    assert_int_equal(far.next, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_waste_little),
        cmocka_unit_test(class_borders),
        cmocka_unit_test(steady_runs_do_not_allocate),
        cmocka_unit_test(trimming_gives_back),
        cmocka_unit_test(classes_are_kept_one_by_one),
        cmocka_unit_test(an_allocator_of_its_own),
        cmocka_unit_test(buffers_may_leave),
        cmocka_unit_test(memory_pressure_empties_the_cache),
        cmocka_unit_test(too_large_to_keep),
        cmocka_unit_test(headers_lie_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
