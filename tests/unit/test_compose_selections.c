/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are selected of selected rows: wherever they are taken from (golden/pass_compose_*),
 * the same comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* The best of each class, and of these where a mask is true; then the best of those. */
static const char of_pairs[] =
    "graph (%x: f32[9, 3], %s: f32[4, 9], %m: bool[4, 7]) -> (%a as \"a\") {\n"
    "  %seven = Constant() {value = i64[1] [7]}\n"
    "  %two = Constant() {value = i64[1] [2]}\n"
    "  %values, %best = TopK(%s, %seven) {axis = 1}\n"
    "  %rows = Gather(%x, %best)\n"
    "  %found = NonZero(%m)\n"
    "  %places = Transpose(%found) {perm = [1, 0]}\n"
    "  %some = GatherND(%rows, %places)\n"
    "  %scores = GatherND(%values, %places)\n"
    "  %all = Shape(%scores)\n"
    "  %fewer = Min(%all, %two)\n"
    "  %highest, %order = TopK(%scores, %fewer)\n"
    "  %a = Gather(%some, %order)\n"
    "  return(%a)\n"
    "}\n";

/* By numbers that may be out of range: the run fails, or does not, as before. */
static const char of_rows[] = "graph (%x: f32[90, 3], %t: f32[45], %p: i64[2]) -> (%a as \"a\") {\n"
                              "  %k = Constant() {value = i64[1] [9]}\n"
                              "  %values, %order = TopK(%t, %k)\n"
                              "  %rows = Gather(%x, %order)\n"
                              "  %three = Constant() {value = i64[] 3}\n"
                              "  %numbers = Mul(%p, %three)\n"
                              "  %a = Gather(%rows, %numbers)\n"
                              "  return(%a)\n"
                              "}\n";

/* A selection that fails is not passed. */
static const char of_wrong_rows[] =
    "graph (%x: f32[3, 3], %t: f32[45], %p: i64[2]) -> (%a as \"a\") {\n"
    "  %k = Constant() {value = i64[1] [9]}\n"
    "  %values, %order = TopK(%t, %k)\n"
    "  %rows = Gather(%x, %order)\n"
    "  %a = Gather(%rows, %p)\n"
    "  return(%a)\n"
    "}\n";

static void check(const char *text, const char *word, int wanted, int least_runs)
{
    int runs = 0;
    assert_int_equal(rewrite_count(text, NULL, word), wanted);
    for (uint64_t seed = 1; seed <= 40; seed++)
        runs += rewrite_check(&(struct rewrite_check){.text = text, .seed = seed});
    assert_true(runs >= least_runs && runs < 40 + (least_runs == 40));
}

static void test_pairs(void **state)
{
    (void)state;
    check(of_pairs, "GatherND@13(%best, ", 1, 40);
}

static void test_rows(void **state)
{
    (void)state;
    check(of_rows, "Gather@13(%order, ", 1, 1);
    check(of_wrong_rows, "Gather@13(%order, ", 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
