/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations that are written out (peel): loops of every number of iterations compute the same
 * before and after, what only one iteration decides is gone, and no loop is peeled twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/rewrite_check.h"
#include "common/rewrite_text.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"

#define CLEAN                                                                                      \
    " infer fold_shapes identity algebra known_branches carried_values hoist "                     \
    "common_subexpressions "                                                                       \
    "carried_values unroll infer fold_shapes known_branches dead_code"
#define PASSES "infer peel" CLEAN

/* A loop with a trip count, a condition, the ops that make bool %q from i64 %i, and the next
 * condition. */
struct body {
    const char *trips, *condition, *question, *next;
};

static void put_program(char *text, size_t size, const struct body *body, bool where, bool stacked)
{
    snprintf(text, size,
             "graph (%%x: f32[7, 3], %%z: f32[3], %%n: i64[]) -> (%%a as \"a\", %%k as \"k\", %%%s "
             "as \"s\") {\n"
             "  %%zero = Constant() {value = i64[] 0}\n"
             "  %%one = Constant() {value = i64[] 1}\n"
             "  %%two = Constant() {value = i64[] 2}\n"
             "  %%five = Constant() {value = i64[] 5}\n"
             "  %%yes = Constant() {value = bool[] true}\n"
             "  %%no = Constant() {value = bool[] false}\n"
             "  %%limit = Constant() {value = f32[] 2}\n"
             "  %%some = Max(%%n, %%one)\n"
             "  %%last = Sub(%%some, %%one)\n"
             "  %%a, %%k, %%flag%s = Loop(%s, %s, %%z, %%zero, %%yes) {\n"
             "    body(%%i: i64[], %%c: bool[], %%v: f32[3], %%j: i64[], %%f: bool[]) {\n"
             "      %%row = Gather(%%x, %%i)\n"
             "      %%j1 = Add(%%j, %%i)\n"
             "      %s\n"
             "      %%e = Sin(%%row)\n"
             "      %%w = %s\n"
             "      %%sum = ReduceSum(%%e) {keepdims = 0}\n"
             "      %%low = Less(%%sum, %%limit)\n"
             "      return(%s, %%w, %%j1, %%no%s)\n"
             "    }\n"
             "  }\n"
             "  return(%%a, %%k, %%%s)\n"
             "}\n",
             stacked ? "s" : "a", stacked ? ", %s" : "", body->trips, body->condition,
             body->question,
             where ? "Where(%q, %e, %v)"
                   : "If(%q) {then_branch() {%t0 = Sub(%v, %e) return(%t0)} "
                     "else_branch() {%t1 = Mul(%v, %e) return(%t1)}}",
             body->next, stacked ? ", %w" : "", stacked ? "s" : "a");
}

static bool check(const char *text, const char *passes, int64_t n)
{
    const struct rewrite_check run = {
        .text = text, .passes = passes, .size = 3, .scalar = n, .lenient = true, .seed = 11};
    return rewrite_check(&run);
}

static int choices(const char *text)
{
    return rewrite_count(text, PASSES, "If@") + rewrite_count(text, PASSES, "Where@");
}

/* Every trip count, with every question, in all ways to go on. */
static void test_questions(void **state)
{
    static const char *const trips[] = {"%five", "%two", "%one", "%some", "%n", "_"};
    static const struct {
        const char *text;
        bool first, last; /* of five iterations decides */
    } questions[] = {
        {"%q = Equal(%i, %zero)", true, false},
        {"%q = Greater(%i, %zero)", true, false},
        {"%q = Less(%i, %one)", true, false},
        {"%q = GreaterOrEqual(%i, %one)", true, false},
        {"%p = Equal(%zero, %i)\n%q = Not(%p)", true, false},
        {"%u = Add(%i, %two)\n%q = LessOrEqual(%u, %two)", true, false},
        {"%q = Identity(%f)", true, false},
        {"%q = Not(%f)", true, false},
        {"%four = Sub(%five, %one)\n%q = Equal(%i, %four)", false, true},
        {"%u = Add(%i, %one)\n%q = Less(%u, %five)", false, true},
        {"%q = Equal(%i, %last)", false, false},
        {"%q = Equal(%i, %two)", false, false},
        {"%q = Less(%i, %two)", false, false},
    };
    static const char *const next[] = {"%c", "%yes", "%low"};
    char text[4096];
    int ran = 0;
    (void)state;
    for (size_t t = 0; t < sizeof trips / sizeof *trips; t++)
        for (size_t q = 0; q < sizeof questions / sizeof *questions; q++)
            for (size_t k = 0; k < 6; k++) {
                if (k % 3 < 2 && strcmp(trips[t], "_") == 0)
                    continue;
                const struct body body = {trips[t], k % 2 ? "%yes" : "_", questions[q].text,
                                          next[k % 3]};
                put_program(text, sizeof text, &body, k > 2, t < 2 && k % 3 < 2);
                bool known = t == 0 && ((k % 3 < 2 && questions[q].last) || questions[q].first);
                if (t == 0)
                    assert_int_equal(choices(text), known ? 0 : 1);
                if (t != 2) /* which is written out by the passes behind */
                    assert_int_equal(rewrite_count(text, PASSES, "Sin@"),
                                     rewrite_count(text, PASSES " peel" CLEAN, "Sin@"));
                for (int64_t n = -1; n <= 7; n += t < 3 ? 8 : 1) {
                    ran += check(text, PASSES, n);
                    check(text, NULL, n);
                }
            }
    assert_true(ran > 500);
}

/* The first iteration is given nothing, all others a row. */
static void test_sizes(void **state)
{
    static const char text[] = "graph (%x: f32[7, 3], %n: i64[]) -> (%a as \"a\") {\n"
                               "  %none = Constant() {value = f32[0] []}\n"
                               "  %one = Constant() {value = i64[] 1}\n"
                               "  %some = Max(%n, %one)\n"
                               "  %a = Loop(%some, _, %none) {\n"
                               "    body(%i: i64[], %c: bool[], %v: f32[*]) {\n"
                               "      %row = Gather(%x, %i)\n"
                               "      %old = ReduceSum(%v) {keepdims = 0}\n"
                               "      %new = Sub(%row, %old)\n"
                               "      return(%c, %new)\n"
                               "    }\n"
                               "  }\n"
                               "  return(%a)\n"
                               "}\n";
    (void)state;
    assert_int_equal(rewrite_count(text, PASSES, "carried"), 0);
    assert_int_equal(rewrite_count(text, "infer", "carried") > 0, 1);
    assert_int_equal(rewrite_count(text, PASSES, "Gather@"), 2);
    for (int64_t n = -1; n < 9; n++)
        assert_int_equal(check(text, PASSES, n), n <= 7);
}

static tssa_status *rewrite_on(const tssa_allocator *allocator)
{
    static const char *const names[] = {"infer", "peel", "known_branches"};
    static const struct body body = {"%five", "_", "%q = Equal(%i, %zero)", "%low"},
                             last = {"%five", "_", "%q = Less(%i, %last)", "%c"};
    char text[2][4096];
    tssa_status *status = NULL;
    put_program(text[0], sizeof text[0], &body, false, false);
    put_program(text[1], sizeof text[1], &last, true, true);
    for (int i = 0; i < 2 && !status; i++)
        status = rewrite_text(allocator, text[i], names, sizeof names / sizeof *names, NULL);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(rewrite_on) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_questions),
                                       cmocka_unit_test(test_sizes), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
