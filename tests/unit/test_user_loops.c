/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops as users write them: whether any is left after level 2, and that all compute the same, and
 * fail the same, before and after, whatever the sizes and numbers of iterations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* A loop over the rows of x, which carries y of the same shape, and a number; `n` of them, or of
 * `k`. */
static const char frame[] =
    "graph (%%x: f32[N, 3], %%p: i64[N], %%k: i64[], %%y: f32[N, 3], %%h: i64[]) ->\n"
    "      (%%out as \"out\", %%s as \"s\", %%b as \"b\") {\n"
    "  %%zero = Constant() {value = i64[] 0}\n"
    "  %%one = Constant() {value = i64[] 1}\n"
    "  %%f = Constant() {value = f32[] 0.5}\n"
    "  %%yes = Constant() {value = bool[] true}\n"
    "  %%no = Constant() {value = bool[] false}\n"
    "  %%shape = Shape(%%x)\n"
    "  %%n = Gather(%%shape, %%zero) {axis = 0}\n"
    "  %%last = Sub(%%n, %%one)\n"
    "  %%out, %%s, %%b = Loop(%%%s, _, %%y, %%h, %%no) {\n"
    "    body(%%i: i64[], %%c: bool[], %%t: f32[N, 3], %%m: i64[], %%a: bool[]) {\n"
    "      %%row = access(%%x, %%i) {rule = [select(0, $0)]}\n"
    "      %%v = access(%%p, %%i) {rule = [select(0, $0)]}\n"
    "      %%sum = ReduceMax(%%row) {keepdims = 0}\n"
    "      %%q = Greater(%%sum, %%f)\n"
    "%s"
    "      return(%%c, %%%s, %%%s, %%%s)\n"
    "    }\n"
    "  }\n"
    "  return(%%out, %%s, %%b)\n"
    "}\n";

#define IF(results, yes, no)                                                                       \
    results " = If(%q) {\nthen_branch() {\n" yes "}\nelse_branch() {\n" no "}\n}\n"
#define ASSIGN(to, from, source, at)                                                               \
    to " = assign(" from ", " source ", " at ") {rule = [select(0, $0)]}\n"

#define WINDOW                                                                                     \
    "%two = Constant() {value = i64[] 2}\n%j = Add(%i, %two)\n%axes = Constant() {value = i64[1] " \
    "[0]}\n"                                                                                       \
    "%w = access(%x, %i, %j) {rule = [slice(0, $0, $1, 1)]}\n"                                     \
    "%most = ReduceMax(%w, %axes) {keepdims = 0}\n" ASSIGN("%t2", "%t", "%most", "%i")

static const struct {
    const char *what, *trips, *body, *t, *m, *a; /* what is carried on */
    int loops;                                   /* that are left */
} cases[] = {
    {"rows where a condition holds", "n",
     IF("%t2", "%w = Mul(%row, %f)\n" ASSIGN("%t3", "%t", "%w", "%i") "return(%t3)\n",
        "return(%t)\n"),
     "t2", "m", "a", 0},
    {"one element of rows where it does not hold", "last",
     IF("%t2", "return(%t)\n",
        "%j = Add(%i, %one)\n"
        "%t3 = assign(%t, %sum, %j) {rule = [select(0, $0), select(0, 1)]}\nreturn(%t3)\n"),
     "t2", "m", "a", 0},
    {"both sides write, in as many iterations as are asked for", "k",
     IF("%t2", ASSIGN("%t3", "%t", "%row", "%i") "return(%t3)\n",
        "%w = Neg(%row)\n" ASSIGN("%t4", "%t", "%w", "%i") "return(%t4)\n"),
     "t2", "m", "a", 0},
    {"rows that may not be there where nobody writes", "last",
     "%far = Add(%i, %k)\n" IF("%t2", ASSIGN("%t3", "%t", "%row", "%far") "return(%t3)\n",
                               "return(%t)\n"),
     "t2", "m", "a", 1},
    {"a branch in a branch", "n",
     "%even = Greater(%v, %one)\n" IF(
         "%t2",
         "%t4 = If(%even) {\nthen_branch() {\n" ASSIGN(
             "%t3", "%t", "%row",
             "%i") "return(%t3)\n}\nelse_branch() {\nreturn(%t)\n}\n}\nreturn(%t4)\n",
         "return(%t)\n"),
     "t2", "m", "a", 0},
    {"rows in a place that a count tells", "n",
     IF("%t2, %m2", ASSIGN("%t3", "%t", "%row", "%m") "%m3 = Add(%m, %one)\nreturn(%t3, %m3)\n",
        "return(%t, %m)\n"),
     "t2", "m2", "a", 1},
    {"a count", "n", IF("%m2", "%m3 = Add(%m, %one)\nreturn(%m3)\n", "return(%m)\n"), "t", "m2",
     "a", 0},
    {"a sum of what is below", "k", IF("%m2", "return(%m)\n", "%m3 = Add(%v, %m)\nreturn(%m3)\n"),
     "t", "m2", "a", 0},
    {"the largest", "n",
     "%g = Greater(%v, %m)\n%m2 = If(%g) {\nthen_branch() {\nreturn(%v)\n}\n"
     "else_branch() {\nreturn(%m)\n}\n}\n",
     "t", "m2", "a", 0},
    {"the least, the other way round", "n", "%g = Less(%m, %v)\n%m2 = Where(%g, %m, %v)\n", "t",
     "m2", "a", 0},
    {"the first of the largest", "n", "%g = Greater(%v, %m)\n%m2 = Where(%g, %i, %m)\n", "t", "m2",
     "a", 1},
    {"is there any", "n", IF("%a2", "return(%yes)\n", "return(%a)\n"), "t", "m", "a2", 0},
    {"are all", "n", IF("%a2", "return(%a)\n", "return(%no)\n"), "t", "m", "a2", 0},
    {"all three", "n",
     IF("%t2, %m2, %a2",
        ASSIGN("%t3", "%t", "%row", "%i") "%m3 = Add(%m, %one)\nreturn(%t3, %m3, %yes)\n",
        "return(%t, %m, %a)\n"),
     "t2", "m2", "a2", 0},
    {"the size of what is carried", "n",
     "%size = Shape(%t)\n%rows = Gather(%size, %zero) {axis = 0}\n%j = Mod(%i, %rows)\n" ASSIGN(
         "%t2", "%t", "%row", "%j"),
     "t2", "m", "a", 0},
    {"modulo a size that is reached", "k", "%j = Mod(%i, %n)\n" ASSIGN("%t2", "%t", "%row", "%j"),
     "t2", "m", "a", 1},
    {"windows of two rows", "last", WINDOW, "t2", "m", "a", 0},
    {"windows, the last of which is shorter", "n", WINDOW, "t2", "m", "a", 1},
    {"backwards", "n", "%j = Sub(%last, %i)\n" ASSIGN("%t2", "%t", "%row", "%j"), "t2", "m", "a",
     0},
    {"backwards, from what is there", "n",
     "%j = Sub(%last, %i)\n%there = access(%t, %j) {rule = [select(0, $0)]}\n"
     "%w = Add(%there, %row)\n" ASSIGN("%t2", "%t", "%w", "%j"),
     "t2", "m", "a", 0},
    {"backwards, as often as is asked for", "k",
     "%j = Sub(%last, %i)\n" ASSIGN("%t2", "%t", "%row", "%j"), "t2", "m", "a", 1},
};

/* Where there is memory for anything. */
static const struct pass_batching all_at_once = {.budget = INT64_C(1) << 50};

/* How many runs succeed. */
static int run_all(const char *text)
{
    static const int64_t sizes[] = {0, 1, 2, 7}, scalars[] = {-1, 0, 1, 3, 7, 8};
    int ran = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof scalars / sizeof *scalars; k++)
            for (uint64_t seed = 1; seed <= 3; seed++)
                ran += rewrite_check(&(struct rewrite_check){
                    .text = text, .size = sizes[i], .scalar = scalars[k], .seed = seed});
    return ran;
}

static void test_loops(void **state)
{
    static char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, frame, cases[i].trips, cases[i].body, cases[i].t, cases[i].m,
                 cases[i].a);
        int loops = rewrite_count_batched(text, NULL, all_at_once, "Loop@");
        if (loops != cases[i].loops)
            fail_msg("%s: %d loops are left, not %d", cases[i].what, loops, cases[i].loops);
        assert_true(run_all(text) > 0);
    }
}

/* ---- Rows that data tells ---------------------------------------------------------------------
 */

static const char scatter_frame[] =
    "graph (%%x: %s[N, 2], %%p: i64[N], %%h: %s[4, 2]) -> (%%out as \"out\") {\n"
    "  %%n = Size(%%p)\n"
    "  %%out = Loop(%%n, _, %%h) {\n"
    "    body(%%i: i64[], %%c: bool[], %%t: %s[4, 2]) {\n"
    "      %%j = access(%%p, %%i) {rule = [select(0, $0)]}\n"
    "      %%row = access(%%x, %%i) {rule = [select(0, $0)]}\n"
    "      %%old = access(%%t, %%j) {rule = [select(0, $0)]}\n"
    "      %%gathered = Gather(%%t, %%j) {axis = 0}\n"
    "      %%new = %s\n"
    "      %%t2 = assign(%%t, %%new, %%j) {rule = [select(0, $0)]}\n"
    "      return(%%c, %%t2)\n"
    "    }\n"
    "  }\n"
    "  return(%%out)\n"
    "}\n";

static const struct {
    const char *dtype, *combine;
    int loops[2]; /* that are left in a file, in a session */
} scatters[] = {
    {"i64", "Add(%old, %row)", {0, 0}},
    {"i32", "Add(%row, %old)", {0, 0}},
    {"i64", "Mul(%old, %row)", {0, 0}},
    {"i32", "Max(%row, %old)", {0, 0}},
    {"i64", "Min(%old, %row)", {0, 0}},
    {"f32", "Add(%old, %row)", {1, 0}},
    {"f64", "Mul(%row, %old)", {1, 0}},
    {"f32", "Max(%old, %row)", {1, 1}},
    {"f32", "Neg(%row)", {1, 0}},
    {"i64", "Sub(%old, %row)", {1, 1}},
    {"f16", "Add(%old, %row)", {1, 1}},
    {"i64", "Add(%old, %old)", {1, 1}},
    {"i64", "Add(%gathered, %row)", {0, 0}},
};

static void test_scatters(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 9};
    static char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof scatters / sizeof *scatters; i++) {
        const char *dtype = scatters[i].dtype;
        snprintf(text, sizeof text, scatter_frame, dtype, dtype, dtype, scatters[i].combine);
        for (int session = 0; session < 2; session++)
            for (size_t k = 0; k < 4 * (sizeof sizes / sizeof *sizes); k++) {
                const struct rewrite_check check = {
                    .text = text,
                    .size = sizes[k / 4],
                    .batching = {.budget = INT64_C(1) << 50, .block = k % 4 == 3 ? 2 : 0},
                    .target = session ? TSSA_TARGET_SESSION : TSSA_TARGET_ONNX,
                    .seed = 1 + k};
                if (k % 4 < 3 && rewrite_count_of(&check, "Loop@") != scatters[i].loops[session])
                    fail_msg("%s %s: other loops are left, %d", dtype, scatters[i].combine,
                             session);
                assert_true(rewrite_check(&check));
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops),
                                       cmocka_unit_test(test_scatters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
