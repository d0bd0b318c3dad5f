/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: alignment, zeroing, large objects, copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdalign.h>
#include <string.h>

#include "base/arena.h"
#include "base/status.h"
#include "common/test_alloc.h"

static void objects_do_not_overlap(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct arena arena;
    arena_init(&arena, &alloc.allocator);
    assert_int_equal(alloc.count, 0);

    enum { COUNT = 3000 };
    static unsigned char *objects[COUNT];
    static size_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = i % 97 == 0 ? 5000 + i : i % 41; /* large ones among small ones */
        objects[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(objects[i][k], 0);
        memset(objects[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(objects[i][k], i % 251);
    assert_true(arena.bytes > 31 * 5000 && arena.bytes < 1 << 20);
    /* Chunks grow: thousands of objects take dozens of allocations. */
    assert_true(alloc.count < 60);
    arena_clear(&arena);
    assert_int_equal(alloc.live, 0);
    assert_int_equal(arena.bytes, 0);
    assert_non_null(arena_alloc(&arena, 8));
    arena_clear(&arena);
    assert_int_equal(alloc.live, 0);
}

static void alignments(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    for (size_t round = 0; round < 50; round++) {
        for (size_t alignment = 1; alignment <= 8192; alignment *= 2) {
            size_t size = 1 + (round * 131 + alignment) % 3000;
            char *p = arena_alloc_aligned(&arena, size, alignment);
            assert_int_equal((uintptr_t)p % alignment, 0);
            memset(p, 1, size); /* for the address sanitizer */
        }
    }
    arena_clear(&arena);
}

static void zero_sizes_are_distinct(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    void *a = arena_alloc(&arena, 0), *b = arena_alloc_array(&arena, 0, 8);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    arena_clear(&arena);
}

static void copies(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    const int numbers[] = {1, 2, 3};
    int *copy = arena_copy(&arena, numbers, sizeof numbers);
    assert_memory_equal(copy, numbers, sizeof numbers);
    assert_non_null(arena_copy(&arena, NULL, 0));
    assert_string_equal(arena_string(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_string(&arena, NULL, 0), "");
    assert_string_equal(arena_printf(&arena, "%s-%d", "x", 12), "x-12");
    for (int width = 250; width < 260; width++) { /* around the stack buffer's size */
        char *text = arena_printf(&arena, "%*d", width, 5);
        assert_int_equal(strlen(text), width);
        assert_int_equal(text[width - 1], '5');
    }
    arena_clear(&arena);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    assert_null(arena_alloc_array(&arena, SIZE_MAX / 4, 8));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 20));
    assert_null(arena_alloc_aligned(&arena, SIZE_MAX - 64, 64));
    assert_null(arena_alloc(&arena, (size_t)PTRDIFF_MAX + 1));
    assert_null(arena_string(&arena, "", SIZE_MAX));
    assert_non_null(arena_alloc(&arena, 16)); /* still usable */
    arena_clear(&arena);
}

static tssa_status *fill(const tssa_allocator *allocator)
{
    struct arena arena;
    arena_init(&arena, allocator);
    bool ok = arena_alloc(&arena, 100) && arena_alloc(&arena, 100000) &&
              arena_alloc(&arena, 3990) && arena_alloc(&arena, 500) &&
              arena_string(&arena, "text", 4) && arena_printf(&arena, "%9000d", 1);
    arena_clear(&arena);
    return ok ? NULL : status_out_of_memory();
}

static void survives_failure(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(fill) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap),  cmocka_unit_test(alignments),
        cmocka_unit_test(zero_sizes_are_distinct), cmocka_unit_test(copies),
        cmocka_unit_test(sizes_are_checked),       cmocka_unit_test(survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
