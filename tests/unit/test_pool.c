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

#define EACH 2 /* allocations of a buffer apart: its header and its memory */
#define GAPS 1 /* of the table of gaps */

static struct pool pool;
static struct test_alloc alloc;

static void setup_pool(void)
{
    test_alloc_init(&alloc);
    pool_init(&pool, &alloc.allocator);
}

static void clear_pool(void)
{
    pool_clear(&pool);
    assert_int_equal(alloc.live, 0);
}

static struct buffer *take(size_t size)
{
    struct buffer *buffer = pool_alloc(&pool, size);
    assert_non_null(buffer);
    assert_true(buffer->size >= size && buffer->size < size + 2 * TENSOR_ALIGNMENT);
    assert_int_equal((uintptr_t)buffer->data % TENSOR_ALIGNMENT, 0);
    memset(buffer->data, 1, buffer->size);
    return buffer;
}

static void sizes_are_rounded_to_lines(void **state)
{
    (void)state;
    setup_pool();
    for (int run = 0; run < 2; run++) {
        for (size_t size = 0; size < 3000000; size += 1 + size / 7) {
            struct buffer *buffer = take(size);
            assert_true(buffer->size - size <= (size ? TENSOR_ALIGNMENT - 1 : TENSOR_ALIGNMENT));
            assert_int_equal(pool.used_bytes, buffer->size);
            buffer_release(buffer);
            assert_int_equal(pool.used_bytes, 0);
        }
        pool_trim(&pool);
    }
    clear_pool();
}

/* What is there at one time is held; the next run has a chunk of that size. */
static void a_first_run_has_no_chunk(void **state)
{
    (void)state;
    setup_pool();
    struct buffer *a = take(1000), *b = take(1 << 20);
    assert_int_equal(pool_held(&pool), a->size + b->size);
    buffer_release(b);
    buffer_release(a);
    assert_int_equal(pool.peak_held, 1024 + (1 << 20));
    const size_t end = pool.end;
    pool_trim(&pool);
    assert_int_equal(pool_held(&pool), 0);
    a = take(1000);
    assert_int_equal(pool_held(&pool), end);
    assert_ptr_equal(a->data, pool.chunk);
    buffer_release(a);
    clear_pool();
}

/* A loop of a first run takes nothing from the allocator from its second iteration on. */
static void what_is_released_is_there_again(void **state)
{
    (void)state;
    setup_pool();
    struct buffer *carried = take(3000);
    long after_two = 0;
    for (int i = 0; i < 50; i++) {
        struct buffer *x = take(1 << 20);
        buffer_release(carried);
        carried = take(3000);
        buffer_release(x);
        if (i == 1)
            after_two = alloc.count;
    }
    assert_int_equal(alloc.count, after_two);
    buffer_release(carried);
    clear_pool();
}

/* However sizes differ, and however much lives. */
static void a_first_run_holds_little_else(void **state)
{
    (void)state;
    setup_pool();
    uint32_t seed = 1;
    size_t most = 0;
    struct buffer *there[10] = {0};
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1664525u + 1013904223u;
        struct buffer **one = &there[(seed >> 8) % 10];
        buffer_release(*one);
        *one = take(((size_t)1 << 20) + ((seed >> 12) % 40 << 17));
        most = pool.used_bytes > most ? pool.used_bytes : most;
        assert_true(pool_held(&pool) <= most + POOL_SPARE);
    }
    assert_true(pool.peak_held > most);
    for (int i = 0; i < 10; i++)
        buffer_release(there[i]);
    pool_trim(&pool);
    assert_int_equal(pool_held(&pool), 0);
    clear_pool();
}

static void run_of_many(struct pool *of)
{
    struct buffer *buffers[20];
    for (size_t i = 0; i < 20; i++)
        buffers[i] = pool_alloc(of, 100 * (i % 7 + 1));
    for (size_t i = 0; i < 20; i += 2)
        buffer_release(buffers[i]);
    for (size_t i = 0; i < 20; i += 2)
        buffers[i] = pool_alloc(of, 150 * (i % 7 + 1));
    for (size_t i = 0; i < 20; i++)
        buffer_release(buffers[i]);
    pool_trim(of);
}

static void steady_runs_do_not_allocate(void **state)
{
    (void)state;
    setup_pool();
    run_of_many(&pool);
    run_of_many(&pool);
    const long after_second = alloc.count;
    for (int run = 0; run < 5; run++)
        run_of_many(&pool);
    assert_int_equal(alloc.count, after_second);
    clear_pool();
}

/* A buffer lies in the first gap that is long enough, and gaps that touch are one. */
static void gaps_are_used_from_the_first(void **state)
{
    (void)state;
    struct buffer *b[6];
    setup_pool();
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < 6; i++)
            b[i] = take(1024);
        assert_true(run == 0 || pool.chunk);
        for (int i = 0; run == 0 && i < 6; i++)
            buffer_release(b[i]);
        if (run == 0)
            pool_trim(&pool);
    }
    void *const first = b[0]->data, *const second = b[1]->data, *const fourth = b[3]->data;
    buffer_release(b[3]);
    buffer_release(b[1]);
    b[1] = take(500);
    assert_ptr_equal(b[1]->data, second);
    b[3] = take(1000);
    assert_ptr_equal(b[3]->data, fourth);
    /* behind, before, and between what is free */
    buffer_release(b[2]);
    buffer_release(b[1]);
    buffer_release(b[0]);
    b[0] = take(3 * 1024);
    assert_ptr_equal(b[0]->data, first);
    assert_int_equal(pool.apart_bytes, 0);
    buffer_release(b[0]);
    buffer_release(b[3]);
    buffer_release(b[5]);
    buffer_release(b[4]);
    assert_int_equal(pool.n_gaps, 1);
    clear_pool();
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

/* AddressSanitizer sees who writes behind a buffer, and to one that was given back. */
static void what_is_free_is_watched(void **state)
{
    (void)state;
    setup_pool();
    for (int run = 0; run < 2; run++) {
        struct buffer *a = take(100), *b = take(200);
        char *const data = a->data;
        assert_true(__asan_address_is_poisoned(data + a->size));
        assert_false(__asan_address_is_poisoned(data + a->size - 1));
        buffer_release(a);
        assert_true(__asan_address_is_poisoned(data));
        buffer_release(b);
        pool_trim(&pool);
    }
    clear_pool();
}
#endif

static void the_chunk_fits_the_last_run(void **state)
{
    (void)state;
    setup_pool();
    for (int run = 0; run < 3; run++) {
        buffer_release(take(1 << 20));
        pool_trim(&pool);
    }
    const size_t size = pool.size;
    assert_true(size >= 1 << 20);
    buffer_release(take((1 << 20) - 1000)); /* a little less: it stays */
    pool_trim(&pool);
    assert_int_equal(pool.size, size);
    buffer_release(take(1000));
    pool_trim(&pool);
    assert_int_equal(pool_held(&pool), 0);
    struct buffer *small = take(1000);
    assert_true(pool.size >= 1024 && pool.size < 2048);
    struct buffer *other = take(1 << 20); /* behind the end of the chunk */
    assert_int_equal(pool.apart_bytes, 1 << 20);
    buffer_release(small);
    buffer_release(other);
    buffer_release(take(1 << 20)); /* what is of no use is not held beside it */
    assert_int_equal(pool.size, 0);
    pool_trim(&pool);
    pool_trim(&pool); /* a run without any buffer */
    assert_int_equal(pool_held(&pool), 0);
    assert_int_equal(alloc.live, GAPS);
    clear_pool();
}

static void an_allocator_of_its_own(void **state)
{
    (void)state;
    setup_pool();
    int *numbers = allocator_calloc(&pool.cached, 100, sizeof *numbers);
    for (int i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    void *aligned = allocator_alloc_aligned(&pool.cached, 10, TENSOR_ALIGNMENT);
    assert_int_equal((uintptr_t)aligned % TENSOR_ALIGNMENT, 0);
    assert_null(allocator_alloc_aligned(&pool.cached, 10, 2 * TENSOR_ALIGNMENT));
    allocator_free(&pool.cached, numbers);
    allocator_free(&pool.cached, aligned);
    assert_int_equal(alloc.count, GAPS + 2 * EACH);
    pool_trim(&pool);
    numbers = allocator_calloc(&pool.cached, 100, sizeof *numbers);
    assert_int_equal(alloc.count, GAPS + 2 * EACH + 1); /* the chunk */
    allocator_free(&pool.cached, numbers);
    assert_int_equal(pool.used_bytes, 0);
    clear_pool();
}

/* What leaves has memory of its own in the next run; once it is wrongly taken for one that stays.
 */
static void buffers_may_leave(void **state)
{
    (void)state;
    setup_pool();
    for (int run = 0; run < 4; run++) {
        struct buffer *stays = take(700), *leaves[2] = {take(500), take(900)};
        if (run == 2) /* one more than before */
            assert_false(buffer_leave_pool(stays));
        assert_true(run == 0 || pool.chunk || run == 3);
        for (int i = 1; i >= 0; i--) {
            assert_true(buffer_leave_pool(leaves[i]));
            assert_true(buffer_leave_pool(leaves[i])); /* a second time does nothing */
        }
        assert_int_equal(pool.used_bytes, stays->size);
        buffer_release(stays);
        pool_trim(&pool);
        for (int i = 0; i < 2; i++) {
            memset(leaves[i]->data, 1, leaves[i]->size);
            buffer_release(leaves[i]);
        }
    }
    clear_pool();
}

/* What comes before it in the chunk is gone by then, and nothing is held beside it. */
static void the_chunk_may_leave(void **state)
{
    (void)state;
    setup_pool();
    long each = 0;
    for (int run = 0; run < 5; run++) {
        const long before = alloc.count;
        buffer_release(take(100000));
        struct buffer *leaves = pool_alloc(&pool, 99000);
        memset(leaves->data, 1, leaves->size);
        assert_true(run == 0 || pool.peak_held < 101000);
        assert_true(buffer_leave_pool(leaves));
        pool_trim(&pool);
        assert_int_equal(pool_held(&pool), 0);
        buffer_release(leaves);
        if (run == 2)
            each = alloc.count - before;
        assert_true(run < 2 || each == alloc.count - before);
    }
    assert_int_equal(each, EACH);
    clear_pool();
}

static void memory_pressure_empties_the_pool(void **state)
{
    (void)state;
    setup_pool();
    buffer_release(take(5000));
    pool_trim(&pool);
    buffer_release(take(5000));
    assert_int_equal(pool.apart_bytes, 0);
    assert_true(pool.size >= 5000);
    alloc.fail_at = alloc.count;
    struct buffer *buffer = pool_alloc(&pool, 9000);
    if (!buffer) /* the chunk was gone already */
        buffer = take(9000);
    assert_int_equal(pool.size, 0);
    alloc.fail_at = alloc.count;
    assert_null(pool_alloc(&pool, 1 << 20));
    assert_int_equal(pool.used_bytes, buffer->size);
    buffer_release(buffer);
    assert_null(pool_alloc(&pool, SIZE_MAX));
    assert_null(pool_alloc(&pool, SIZE_MAX - TENSOR_ALIGNMENT));
    assert_null(pool_alloc(&pool, PTRDIFF_MAX));
    clear_pool();
}

/* A run whose chunk is not to be had does without. */
static void no_chunk_is_no_error(void **state)
{
    (void)state;
    setup_pool();
    struct buffer *a = take(1000), *b = take(2000);
    buffer_release(a);
    buffer_release(b);
    pool_trim(&pool);
    alloc.fail_at = alloc.count;
    a = take(1000);
    assert_null(pool.chunk);
    assert_int_equal(pool_held(&pool), a->size);
    buffer_release(a);
    clear_pool();
}

/* Buffers do not lie on one another, in runs that take and give back in any order. */
static void buffers_keep_what_is_in_them(void **state)
{
    (void)state;
    enum { MOST = 200 };
    struct buffer *there[MOST];
    uint32_t seed = 1;
    setup_pool();
    for (int run = 0; run < 20; run++) {
        int n = 0;
        for (int i = 0; i < 2000; i++) {
            seed = seed * 1664525u + 1013904223u;
            if (n < MOST && seed >> 31) {
                there[n] = take(1 + (seed >> 8) % 4000);
                memset(there[n]->data, (int)(there[n]->take & 0x7f), there[n]->size);
                n++;
            } else if (n) {
                const int at = (int)((seed >> 8) % (uint32_t)n);
                const char *bytes = there[at]->data;
                for (size_t k = 0; k < there[at]->size; k += 7)
                    assert_int_equal(bytes[k], there[at]->take & 0x7f);
                buffer_release(there[at]);
                there[at] = there[--n];
            }
        }
        while (n)
            buffer_release(there[--n]);
        assert_int_equal(pool.used_bytes, 0);
        assert_int_equal(pool.n_gaps, 1);
        pool_trim(&pool);
        assert_int_equal(pool.apart_bytes, 0);
    }
    clear_pool();
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
    const struct buffer_space space = {&far, far_allocate, far_release};
    test_alloc_init(&alloc);
    pool_init_in(&pool, &alloc.allocator, &space);
    struct buffer *a = pool_alloc(&pool, 1000), *b = pool_alloc(&pool, 5000);
    assert_true(a->data == (void *)1 && b->data == (void *)2);
    assert_ptr_equal(a->space, b->space);
    assert_int_equal(alloc.live, GAPS + 2); /* headers */
    buffer_release(a);
    buffer_release(b);
    pool_trim(&pool);
    a = pool_alloc(&pool, 1000);
    b = pool_alloc(&pool, 5000);
    assert_true(a->data == (void *)3 && b->data == (void *)3); /* the chunk */
    assert_int_equal(a->offset, 0);
    assert_true(b->offset >= 1000);
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
    assert_int_equal(far.next, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded_to_lines),
        cmocka_unit_test(a_first_run_has_no_chunk),
        cmocka_unit_test(what_is_released_is_there_again),
        cmocka_unit_test(a_first_run_holds_little_else),
        cmocka_unit_test(steady_runs_do_not_allocate),
        cmocka_unit_test(gaps_are_used_from_the_first),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(what_is_free_is_watched),
#endif
        cmocka_unit_test(the_chunk_fits_the_last_run),
        cmocka_unit_test(an_allocator_of_its_own),
        cmocka_unit_test(buffers_may_leave),
        cmocka_unit_test(the_chunk_may_leave),
        cmocka_unit_test(memory_pressure_empties_the_pool),
        cmocka_unit_test(no_chunk_is_no_error),
        cmocka_unit_test(buffers_keep_what_is_in_them),
        cmocka_unit_test(headers_lie_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
