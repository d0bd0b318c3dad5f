/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that a mask selects, by the places of its true elements: the same comes out, be there
 * none, some or all. */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* What of a tensor is compared and taken, from where it is flattened, and with which places. */
#define MASKED(name, part, list, places)                                                           \
    static const char name[] =                                                                     \
        "graph (%x: f32[N, 6], %y: f32[6, N], %t: f32[]) -> (%a as \"a\", %b as \"b\") {\n"        \
        "  %flat = Constant() {value = i64[1] [-1]}\n"                                             \
        "  %zero = Constant() {value = i64[1] [0]}\n"                                              \
        "  %one = Constant() {value = i64[1] [1]}\n"                                               \
        "  %five = Constant() {value = i64[1] [5]}\n"                                              \
        "  %six = Constant() {value = i64[1] [6]}\n"                                               \
        "  %turned = Transpose(%y) {perm = [1, 0]}\n"                                              \
        "  %e = Exp(%x)\n" part "  %m = Greater(%p, %t)\n"                                         \
        "  %list = " list "\n"                                                                     \
        "  %bits = Reshape(%m, %flat)\n"                                                           \
        "  %a = Compress(%list, %bits) {axis = 0}\n"                                               \
        "  %b = " places "\n"                                                                      \
        "  return(%a, %b)\n"                                                                       \
        "}\n"

MASKED(of_first_columns, "  %p = Slice(%e, %zero, %five, %one)\n", "Reshape(%p, %flat)",
       "NonZero(%m)");
MASKED(of_all_columns, "  %p = Identity(%e)\n", "Reshape(%p, %flat)", "NonZero(%m)");
/* The slice does not begin with the first column; elements of another tensor; of one that lies in
 * another order. */
MASKED(of_last_columns, "  %p = Slice(%e, %one, %six, %one)\n", "Reshape(%p, %flat)",
       "NonZero(%m)");
MASKED(of_others, "  %p = Identity(%e)\n", "Reshape(%turned, %flat)", "NonZero(%m)");
MASKED(of_other_order, "  %p = Identity(%e)\n", "Reshape(%y, %flat)", "NonZero(%m)");
MASKED(without_places, "  %p = Identity(%e)\n", "Reshape(%p, %flat)", "Neg(%list)");

struct wanted {
    const char *text;
    int compress, slice; /* that are left */
};

static void test_masks(void **state)
{
    static const struct wanted all[] = {
        {of_first_columns, 0, 1}, {of_all_columns, 0, 0}, {of_last_columns, 0, 1},
        {of_others, 0, 0},        {of_other_order, 1, 0}, {without_places, 1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rewrite_check one = {.text = all[i].text, .target = TSSA_TARGET_SESSION};
        assert_int_equal(rewrite_count_of(&one, "Compress@"), all[i].compress);
        assert_int_equal(rewrite_count_of(&one, "Slice@"), all[i].slice);
        one.target = TSSA_TARGET_ONNX;
        assert_int_equal(rewrite_count_of(&one, "Compress@"), 1);
        one.target = TSSA_TARGET_SESSION;
        for (one.size = 0; one.size <= 40; one.size += one.size < 5 ? 1 : 7)
            for (one.seed = 1; one.seed <= 10; one.seed++)
                assert_true(rewrite_check(&one));
    }
}

/* The elements come from where the slice takes them, if that begins with the first one. */
static void test_slices(void **state)
{
    const struct rewrite_check first = {.text = of_first_columns, .target = TSSA_TARGET_SESSION},
                               last = {.text = of_last_columns, .target = TSSA_TARGET_SESSION};
    (void)state;
    assert_int_equal(rewrite_count_of(&first, "GatherND@13(%e, "), 1);
    assert_int_equal(rewrite_count_of(&last, "GatherND@13(%p, "), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks), cmocka_unit_test(test_slices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
