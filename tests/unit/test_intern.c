/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "base/status.h"
#include "common/test_alloc.h"

static void equal_text_is_one_pointer(void **state)
{
    (void)state;
    struct arena arena;
    struct intern_table table;
    arena_init(&arena, &allocator_default);
    intern_init(&table, &arena);
    assert_null(intern_find(&table, "a"));
    char text[] = "abc";
    const char *abc = intern(&table, text, 3);
    const char *ab = intern(&table, text, 2);
    assert_ptr_not_equal(abc, text);
    text[0] = 'x'; /* the table has its own copy */
    assert_string_equal(abc, "abc");
    assert_string_equal(ab, "ab");
    assert_ptr_equal(intern_str(&table, "abc"), abc);
    assert_ptr_equal(intern_find(&table, "ab"), ab);
    const char *empty = intern_str(&table, "");
    assert_string_equal(empty, "");
    assert_ptr_equal(intern(&table, NULL, 0), empty);
    intern_free(&table);
    arena_clear(&arena);
}

static tssa_status *fill(const tssa_allocator *allocator)
{
    struct arena arena;
    struct intern_table table;
    arena_init(&arena, allocator);
    intern_init(&table, &arena);
    bool ok = true;
    for (int i = 0; ok && i < 1000; i++) {
        char text[64];
        sprintf(text, "a name of some length %d", i);
        const char *name = intern_str(&table, text);
        ok = name != NULL;
        if (ok)
            assert_ptr_equal(intern_str(&table, text), name);
    }
    intern_free(&table);
    arena_clear(&arena);
    return ok ? NULL : status_out_of_memory();
}

static void survives_failure(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(fill) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_text_is_one_pointer),
        cmocka_unit_test(survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
