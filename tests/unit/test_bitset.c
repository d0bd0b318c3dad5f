/* SPDX-License-Identifier: Apache-2.0 */
/* Bit sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bitset.h"
#include "base/status.h"
#include "common/test_alloc.h"

static void members(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    static const size_t sizes[] = {0, 1, 63, 64, 65, 128, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct bitset set;
        if (!bitset_init(&set, &arena, sizes[s])) {
            fail();
            return;
        }
        assert_int_equal(set.size, sizes[s]);
        assert_int_equal(bitset_count(&set), 0);
        size_t count = 0;
        for (size_t i = 0; i < sizes[s]; i += 3, count++)
            bitset_add(&set, i);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_int_equal(bitset_has(&set, i), i % 3 == 0);
        assert_int_equal(bitset_count(&set), count);
        for (size_t i = 0; i < sizes[s]; i++)
            bitset_remove(&set, i);
        assert_int_equal(bitset_count(&set), 0);
    }
    arena_clear(&arena);
}

static void unions(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, &allocator_default);
    struct bitset a, b;
    if (!bitset_init(&a, &arena, 200) || !bitset_init(&b, &arena, 200)) {
        fail();
        return;
    }
    bitset_add(&a, 3);
    bitset_add(&b, 3);
    assert_false(bitset_or(&a, &b)); /* nothing new */
    bitset_add(&b, 199);
    assert_true(bitset_or(&a, &b));
    assert_false(bitset_or(&a, &b));
    assert_true(bitset_has(&a, 199) && bitset_has(&a, 3));
    assert_int_equal(bitset_count(&a), 2);
    arena_clear(&arena);
}

static tssa_status *make(const tssa_allocator *allocator)
{
    struct arena arena;
    arena_init(&arena, allocator);
    struct bitset set;
    bool ok = bitset_init(&set, &arena, 100000);
    arena_clear(&arena);
    return ok ? NULL : status_out_of_memory();
}

static void survives_failure(void **state)
{
    (void)state;
    assert_int_equal(test_alloc_sweep(make), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(unions),
        cmocka_unit_test(survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
