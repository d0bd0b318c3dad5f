/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that only write one value, in loops: one write of all (distribute, coalesce, batch_writes),
 * which gives the same as the loops did, or fails as they did. Sums that iterations use
 * (parallelize).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

static bool check(const char *text, int64_t size, int64_t scalar, uint64_t seed)
{
    const struct rewrite_check run = {.text = text, .size = size, .scalar = scalar, .seed = seed};
    return rewrite_check(&run);
}

/* x[i, lengths[i, :j].sum() + k, j] := v for all k below lengths[i, j]; the first `%s` is how many
 * columns x has, the second what a length is, the third where k begins. */
static const char *const alignment =
    "graph (%%x: f32[N, %d, N], %%lengths: i64[N, N], %%v: f32[]) -> (%%y as \"y\") {\n"
    "  %%zero = Constant() {value = i64[] 0}\n"
    "  %%one = Constant() {value = i64[] 1}\n"
    "  %%less = Constant() {value = i64[] %d}\n"
    "  %%start = Constant() {value = i64[] %d}\n"
    "  %%shape = Shape(%%lengths)\n"
    "  %%n = Gather(%%shape, %%zero)\n"
    "  %%l = Gather(%%shape, %%one)\n"
    "  %%y = Loop(%%n, _, %%x) {\n"
    "    body(%%i: i64[], %%c: bool[], %%t: f32[N, %d, N]) {\n"
    "      %%row = Gather(%%lengths, %%i)\n"
    "      %%t1, %%last = Loop(%%l, _, %%t, %%start) {\n"
    "        body(%%j: i64[], %%cj: bool[], %%tj: f32[N, %d, N], %%count: i64[]) {\n"
    "          %%given = Gather(%%row, %%j)\n"
    "          %%length = Sub(%%given, %%less)\n"
    "          %%t2 = Loop(%%length, _, %%tj) {\n"
    "            body(%%k: i64[], %%ck: bool[], %%tk: f32[N, %d, N]) {\n"
    "              %%at = Add(%%count, %%k)\n"
    "              %%w = assign(%%tk, %%v, %%i, %%at, %%j) {rule = [select(0, $0), select(0, $1), "
    "select(0, $2)]}\n"
    "              return(%%ck, %%w)\n"
    "            }\n"
    "          }\n"
    "          %%sum = Add(%%count, %%length)\n"
    "          return(%%cj, %%t2, %%sum)\n"
    "        }\n"
    "      }\n"
    "      return(%%c, %%t1)\n"
    "    }\n"
    "  }\n"
    "  return(%%y)\n"
    "}\n";

static void test_alignment(void **state)
{
    char text[4096];
    int ran = 0, failed = 0;
    (void)state;
    for (int less = 0; less < 3;
         less++) /* lengths below zero: positions go back, and count from the end */
        for (int start = -3; start < 2; start += 2)
            for (int columns = 4; columns <= 16; columns += 6) {
                snprintf(text, sizeof text, alignment, columns, less, start, columns, columns,
                         columns);
                assert_int_equal(rewrite_count(text, NULL, "Loop@"), 0);
                for (uint64_t seed = 0; seed < 6; seed++) {
                    bool same = check(text, 4, 0, seed);
                    ran += same;
                    failed += !same;
                }
                assert_true(check(text, 0, 0, 1));
            }
    assert_true(ran > 50 && failed > 20);
}

/*
 * Two loops, of which the outer one carries more, stacks something, and has an odd order of axes.
 */
static void test_two_loops(void **state)
{
    static const char *const text =
        "graph (%x: i32[N, 9], %v: i32[], %n: i64[], %d: i64[]) -> (%y as \"y\", %m as \"m\", %s "
        "as \"s\") {\n"
        "  %three = Constant() {value = i64[] 3}\n"
        "  %y, %m, %s = Loop(%n, _, %x, %d) {\n"
        "    body(%i: i64[], %c: bool[], %t: i32[N, 9], %e: i64[]) {\n"
        "      %t1 = Loop(%e, _, %t) {\n"
        "        body(%k: i64[], %ck: bool[], %tk: i32[N, 9]) {\n"
        "          %at = Add(%k, %i)\n"
        "          %w = assign(%tk, %v, %i, %at) {rule = [select(0, $0), select(0, $1)]}\n"
        "          return(%ck, %w)\n"
        "        }\n"
        "      }\n"
        "      %less = Sub(%three, %e)\n"
        "      return(%c, %t1, %less, %e)\n"
        "    }\n"
        "  }\n"
        "  return(%y, %m, %s)\n"
        "}\n";
    (void)state;
    assert_int_equal(rewrite_count(text, NULL, "ScatterND"), 1);
    assert_int_equal(rewrite_count(text, NULL, "assign"), 0);
    for (int64_t n = -1; n < 5; n++)
        for (int64_t size = 1; size < 5; size++)
            (void)check(text, size, n, 3);
    assert_true(check(text, 4, 3, 3));
}

/* Not written once: the inner loop ends when it has seen a number, the outer one, or a value of its
 * own is written. */
static void test_near_misses(void **state)
{
    static const char *const shape =
        "graph (%%x: f32[N, 9], %%v: f32[], %%n: i64[], %%d: i64[], %%stop: bool[N]) -> (%%y as "
        "\"y\") {\n"
        "  %%y = Loop(%%n, _, %%x) {\n"
        "    body(%%i: i64[], %%c: bool[], %%t: f32[N, 9]) {\n"
        "      %%f = Cast(%%i) {to = 1}\n"
        "      %%go = Gather(%%stop, %%i)\n"
        "      %%t1 = Loop(%%d, _, %%t) {\n"
        "        body(%%k: i64[], %%ck: bool[], %%tk: f32[N, 9]) {\n"
        "          %%w = assign(%%tk, %s, %%i, %%k) {rule = [select(0, $0), select(0, $1)]}\n"
        "          return(%s, %%w)\n"
        "        }\n"
        "      }\n"
        "      return(%s, %%t1)\n"
        "    }\n"
        "  }\n"
        "  return(%%y)\n"
        "}\n";
    static const char *const cases[][3] = {
        {"%v", "%go", "%c"}, {"%v", "%ck", "%go"}, {"%f", "%ck", "%c"}, {"%v", "%ck", "%c"}};
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, shape, cases[i][0], cases[i][1], cases[i][2]);
        for (uint64_t seed = 0; seed < 4; seed++)
            for (int64_t n = -1; n < 4; n++)
                assert_true(check(text, 3, n, seed));
    }
    assert_int_equal(rewrite_count(text, NULL, "Loop@"), 0);
}

/* The sum so far, before and after the term, in numbers and in rows; sums of sums. */
static void test_sums(void **state)
{
    static const char *const shape =
        "graph (%%x: %s[N, 2], %%n: i64[], %%a: %s[2]) -> (%%y as \"y\", %%z as \"z\", %%s as "
        "\"s\", %%t as \"t\") {\n"
        "  %%y, %%z, %%s, %%t = Loop(%%n, _, %%a, %%a) {\n"
        "    body(%%i: i64[], %%c: bool[], %%sum: %s[2], %%all: %s[2]) {\n"
        "      %%row = Gather(%%x, %%i)\n"
        "      %%twice = Mul(%%sum, %%sum)\n"
        "      %%next = Add(%%row, %%sum)\n"
        "      %%of = %s(%%all, %%next)\n"
        "      %%u = Sub(%%of, %%twice)\n"
        "      return(%%c, %%next, %%of, %%u, %%all)\n"
        "    }\n"
        "  }\n"
        "  return(%%y, %%z, %%s, %%t)\n"
        "}\n";
    static const char *const dtypes[] = {"i64", "i32", "f32", "i8"}, *const ops[] = {"Add", "Max"};
    char text[2048];
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int o = 0; o < 2; o++) {
            const char *t = dtypes[d];
            snprintf(text, sizeof text, shape, t, t, t, t, ops[o]);
            /* CumSum has no 8 bits, and Max no such operator */
            assert_int_equal(rewrite_count(text, NULL, "Loop@"), d > 2 || o);
            for (int64_t n = -1; n < 5; n++)
                assert_true(check(text, 4, n, (uint64_t)n + 5));
            assert_false(check(text, 3, 4, 1));
        }
}

/* Rows of an unknown length: sessions write them one by one. */
static void test_rows(void **state)
{
    (void)state;
    const char *rows = "graph (%x: u8[N, 3], %v: u8[], %lengths: i64[N]) -> (%y) {\n"
                       "  %zero = Constant() {value = i64[] 0}\n"
                       "  %less = Constant() {value = i64[] 1}\n"
                       "  %shape = Shape(%lengths)\n"
                       "  %n = Gather(%shape, %zero)\n"
                       "  %y = Loop(%n, _, %x) {\n"
                       "    body(%i: i64[], %c: bool[], %t: u8[N, 3]) {\n"
                       "      %given = Gather(%lengths, %i)\n"
                       "      %length = Sub(%given, %less)\n"
                       "      %t1 = Loop(%length, _, %t) {\n"
                       "        body(%k: i64[], %ck: bool[], %s: u8[N, 3]) {\n"
                       "          %at = Add(%k, %less)\n"
                       "          %s1 = assign(%s, %v, %i, %at) {rule = [select(0, $0), "
                       "select(0, $1)]}\n"
                       "          return(%ck, %s1)\n"
                       "        }\n"
                       "      }\n"
                       "      return(%c, %t1)\n"
                       "    }\n"
                       "  }\n"
                       "  return(%y)\n"
                       "}\n";
    /* In a session, where each call of the loop's counts, what an iteration writes to a row is one
     * write. */
    const struct rewrite_check session = {.text = rows, .target = TSSA_TARGET_SESSION};
    assert_int_equal(rewrite_count_of(&session, "Loop@"), 1);
    assert_int_equal(rewrite_count_of(&session, "span(0, 1"), 1);
    assert_int_equal(rewrite_count_of(&session, "ScatterND@"), 0);
    assert_int_equal(rewrite_count(rows, NULL, "Max@"), 1);
    for (int64_t size = 0; size <= 6; size++)
        for (int target = TSSA_TARGET_ONNX; target <= TSSA_TARGET_SESSION; target++) {
            const struct rewrite_check run = {
                .text = rows, .size = size, .seed = 6, .target = (tssa_target)target};
            assert_true(rewrite_check(&run));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment),   cmocka_unit_test(test_two_loops),
        cmocka_unit_test(test_near_misses), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
