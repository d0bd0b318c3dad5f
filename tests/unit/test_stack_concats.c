/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that append rows to a tensor give the same when the rows are stacked: for any number of
 * iterations, none among them, along either axis, to a tensor that is empty or not, with rows whose
 * size data says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

#define PASSES "infer stack_concats carried_values dead_code infer identity dead_code"

/* `init` rows before the first one; `row` is what makes %row, along `axis`. */
static void check(const char *init, const char *row, int axis, const char *condition)
{
    char text[2048];
    snprintf(text, sizeof text,
             "graph (%%n: i64[], %%a: f32[%s], %%v: f32[N, 3]) -> (%%y) {\n"
             "  %%one = Constant() {value = i64[] 1}\n"
             "  %%zero1 = Constant() {value = i64[1] [0]}\n"
             "  %%y = Loop(%%n, _, %%a) {\n"
             "    body(%%i: i64[], %%go: bool[], %%t: f32[*]) {\n"
             "      %%x = Cast(%%i) {to = 1}\n"
             "      %%vx = Add(%%v, %%x)\n"
             "      %s\n"
             "      %s\n"
             "      %%u = Concat(%%t, %%row) {axis = %d}\n"
             "      return(%%next, %%u)\n"
             "    }\n"
             "  }\n"
             "  return(%%y)\n"
             "}\n",
             init, row, condition, axis);
    assert_int_equal(rewrite_count(text, PASSES, "t: f32"), 0);
    for (int64_t size = 0; size < 4; size++)
        for (int64_t n = -1; n < 5; n++) {
            struct rewrite_check run = {
                .text = text, .passes = PASSES, .size = size, .scalar = n, .seed = 3};
            rewrite_check(&run);
            run.passes = NULL;
            rewrite_check(&run);
        }
}

static const char always[] = "%next = Identity(%go)";
static const char until[] = "%next = Less(%i, %one)";

static void rows_are_stacked(void **state)
{
    (void)state;
    check("0, N, 3", "%row = Unsqueeze(%vx, %zero1)", 0, always);
    check("2, N, 3", "%row = Unsqueeze(%vx, %zero1)", 0, always);
    check("0, N, 3", "%row = Unsqueeze(%vx, %zero1)", -3, until);
}

static void columns_are_stacked(void **state)
{
    (void)state;
    check("N, 1, 3", "%at = Constant() {value = i64[1] [1]}\n %row = Unsqueeze(%vx, %at)", 1,
          always);
    check("N, 0, 3", "%at = Constant() {value = i64[1] [1]}\n %row = Unsqueeze(%vx, %at)", -2,
          until);
}

/* Two rows of v, or as many as there are. */
static void sizes_that_a_run_tells(void **state)
{
    (void)state;
    check("0, 2, 3",
          "%two1 = Constant() {value = i64[1] [2]}\n"
          "%cut = Slice(%vx, %zero1, %two1, %zero1)\n"
          "%row = Unsqueeze(%cut, %zero1)",
          0, always);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_stacked),
                                       cmocka_unit_test(columns_are_stacked),
                                       cmocka_unit_test(sizes_that_a_run_tells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
