/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are selected before they are computed: wherever that is done (golden/pass_push_*), the
 * same comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* Scores of classes beside a background, as detectors have them, where a mask is true. */
static const char by_mask[] =
    "graph (%x: f32[1, 9, 13], %m: bool[7]) -> (%a as \"a\") {\n"
    "  %zero = Constant() {value = i64[1] [0]}\n"
    "  %one = Constant() {value = i64[1] [1]}\n"
    "  %two = Constant() {value = i64[1] [2]}\n"
    "  %last = Constant() {value = i64[1] [-1]}\n"
    "  %classes = Slice(%x, %one, %last, %two, %one)\n"
    "  %scores = Sigmoid(%classes)\n"
    "  %none = Constant() {value = f32[1, 9, 1] [0, -0.0, 1, 2, 3, 4, 5, 6, 7]}\n"
    "  %both = Concat(%none, %scores) {axis = -1}\n"
    "  %rows = Squeeze(%both, %zero)\n"
    "  %a = Compress(%rows, %m) {axis = 0}\n"
    "  return(%a)\n"
    "}\n";

/* By numbers that NonZero has found. */
static const char by_numbers[] =
    "graph (%x: f32[1, 9, 13], %m: bool[9], %s: f32[13]) -> (%a as \"a\", %b as \"b\") {\n"
    "  %zero = Constant() {value = i64[1] [0]}\n"
    "  %scaled = Mul(%x, %s)\n"
    "  %rows = Squeeze(%scaled, %zero)\n"
    "  %found = NonZero(%m)\n"
    "  %places = Transpose(%found) {perm = [1, 0]}\n"
    "  %a = GatherND(%rows, %places)\n"
    "  %b = Shape(%a)\n"
    "  return(%a, %b)\n"
    "}\n";

/* By numbers that may be out of range: the run fails, or does not, as before. */
static const char by_any[] = "graph (%x: f32[90, 3], %p: i64[2]) -> (%a as \"a\") {\n"
                             "  %y = Exp(%x)\n"
                             "  %k = Constant() {value = i64[] 30}\n"
                             "  %numbers = Mul(%p, %k)\n"
                             "  %a = Gather(%y, %numbers)\n"
                             "  return(%a)\n"
                             "}\n";

static void check(const char *text, const char *word, int least_runs)
{
    int runs = 0;
    assert_int_equal(rewrite_count(text, NULL, word), 1);
    for (uint64_t seed = 1; seed <= 40; seed++)
        runs += rewrite_check(&(struct rewrite_check){.text = text, .seed = seed});
    assert_true(runs >= least_runs && runs < 40 + (least_runs == 40));
}

static void test_mask(void **state)
{
    (void)state;
    check(by_mask, "Compress@11(%x, ", 40);
}

static void test_numbers(void **state)
{
    (void)state;
    check(by_numbers, "Gather@13(%x, ", 40);
}

static void test_any(void **state)
{
    (void)state;
    check(by_any, "Gather@13(%x, ", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mask), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
