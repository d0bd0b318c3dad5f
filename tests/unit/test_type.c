/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/type.h"

static struct arena arena;
static struct dim_table dims;
static struct type_table table;
static struct text text;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, &allocator_default);
    dim_table_init(&dims, &arena);
    text_init(&text, &allocator_default);
    return type_table_init(&table, &arena, &dims) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    text_free(&text);
    type_table_free(&table);
    dim_table_free(&dims);
    arena_clear(&arena);
    return 0;
}

typedef const struct ir_type *T;

/* f32 with dims of which -1 stands for N, -2 for M. */
static T f32(int rank, int64_t a, int64_t b)
{
    const struct dim *made[2];
    int64_t values[2] = {a, b};
    for (int i = 0; i < rank; i++)
        made[i] = values[i] >= 0    ? dim_const(&dims, values[i])
                  : values[i] == -1 ? dim_symbol(&dims, "N")
                                    : dim_symbol(&dims, "M");
    return type_tensor(&table, TSSA_FLOAT, rank, made);
}

static void expect(T type, const char *expected)
{
    text_clear(&text);
    type_print(type, &text);
    assert_string_equal(text_string(&text), expected);
}

static void equal_types_are_one(void **state)
{
    (void)state;
    assert_ptr_equal(f32(2, -1, 4), f32(2, -1, 4));
    assert_ptr_not_equal(f32(2, -1, 4), f32(2, 4, -1));
    assert_ptr_not_equal(f32(1, 4, 0), f32(2, 4, 4));
    assert_ptr_equal(type_tensor_const(&table, TSSA_FLOAT, 1, (int64_t[]){4}), f32(1, 4, 0));
    assert_ptr_equal(type_sequence(&table, f32(1, 4, 0)), type_sequence(&table, f32(1, 4, 0)));
    assert_ptr_not_equal(type_sequence(&table, f32(1, 4, 0)), type_optional(&table, f32(1, 4, 0)));
    assert_ptr_not_equal(type_scalar(&table, TSSA_FLOAT), type_unranked(&table, TSSA_FLOAT));
    assert_ptr_not_equal(type_scalar(&table, TSSA_FLOAT), type_scalar(&table, TSSA_INT64));
    assert_ptr_equal(type_tensor(&table, TSSA_FLOAT, TSSA_MAX_RANK + 1, NULL),
                     type_unranked(&table, TSSA_FLOAT));
}

static void printing(void **state)
{
    (void)state;
    expect(f32(2, -1, 4), "f32[N, 4]");
    expect(type_scalar(&table, TSSA_INT64), "i64[]");
    expect(type_unranked(&table, TSSA_BOOL), "bool[*]");
    expect(type_unranked(&table, TSSA_UNDEFINED), "undefined[*]");
    expect(table.unknown, "?");
    expect(type_opaque(&table, NULL, NULL), "opaque");
    expect(type_optional(&table, type_sequence(&table, f32(1, 3, 0))), "optional(seq(f32[3]))");
    expect(type_map(&table, TSSA_STRING, f32(1, 3, 0)), "map(str, f32[3])");
}

static void joining(void **state)
{
    (void)state;
    T a = f32(2, -1, 4);
    assert_ptr_equal(type_join(&table, a, a), a);
    expect(type_join(&table, a, f32(2, -1, 5)), "f32[N, d#1]");
    expect(type_join(&table, a, f32(1, 4, 0)), "f32[*]");
    expect(type_join(&table, a, type_scalar(&table, TSSA_INT64)), "undefined[*]");
    expect(type_join(&table, a, type_sequence(&table, a)), "?");
    expect(type_join(&table, a, table.unknown), "?");
    expect(type_join(&table, type_sequence(&table, a), type_sequence(&table, f32(1, 4, 0))),
           "seq(f32[*])");
    assert_ptr_equal(
        type_join(&table, type_opaque(&table, NULL, NULL), type_opaque(&table, NULL, NULL)),
        type_opaque(&table, NULL, NULL));
}

static void refining(void **state)
{
    (void)state;
    const struct dim *some[] = {dim_fresh(&dims, "d"), dim_const(&dims, 4)};
    T fresh = type_tensor(&table, TSSA_FLOAT, 2, some);
    expect(type_refine(&table, fresh, f32(2, -1, -2)), "f32[N, 4]");
    expect(type_refine(&table, f32(2, -1, -2), f32(2, 7, -1)), "f32[7, M]");
    expect(type_refine(&table, f32(2, 3, 4), f32(2, 7, 7)), "f32[3, 4]");
    expect(type_refine(&table, type_unranked(&table, TSSA_UNDEFINED), f32(1, 3, 0)), "f32[3]");
    expect(type_refine(&table, f32(1, 3, 0), type_unranked(&table, TSSA_INT64)), "f32[3]");
    expect(type_refine(&table, table.unknown, f32(1, 3, 0)), "f32[3]");
    expect(type_refine(&table, f32(1, 3, 0), table.unknown), "f32[3]");
    expect(type_refine(&table, type_sequence(&table, type_unranked(&table, TSSA_FLOAT)),
                       type_sequence(&table, f32(1, 3, 0))),
           "seq(f32[3])");
    expect(type_refine(&table, type_opaque(&table, NULL, NULL), type_opaque(&table, NULL, NULL)),
           "opaque");
}

static void compatibility(void **state)
{
    (void)state;
    assert_true(type_compatible(f32(2, -1, 4), f32(2, 7, -2)));
    assert_false(type_compatible(f32(2, -1, 4), f32(2, 7, 5)));
    assert_false(type_compatible(f32(2, -1, 4), f32(1, 4, 0)));
    assert_true(type_compatible(f32(2, -1, 4), type_unranked(&table, TSSA_UNDEFINED)));
    assert_false(type_compatible(f32(2, -1, 4), type_unranked(&table, TSSA_INT64)));
    assert_true(type_compatible(f32(2, -1, 4), table.unknown));
    assert_false(type_compatible(f32(1, 4, 0), type_sequence(&table, f32(1, 4, 0))));
    assert_false(
        type_compatible(type_sequence(&table, f32(1, 4, 0)), type_sequence(&table, f32(1, 5, 0))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(equal_types_are_one), TEST(printing), TEST(joining), TEST(refining),
        TEST(compatibility),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
