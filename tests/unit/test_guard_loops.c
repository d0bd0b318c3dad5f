/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that may make no iteration, in which something could fail that does not change
 * (guard_loops), or that all iterations would compute at once (parallelize): for every number of
 * iterations programs give the same before and after, and fail before and after; without an
 * iteration nothing fails.
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
#include "ir/total.h"
#include "passes/pipeline.h"

#define GUARD "infer guard_loops hoist infer dead_code"
#define PARALLELIZE "infer forward_assigns parallelize infer dead_code"

static bool check(const char *text, const char *passes, int64_t n)
{
    const struct rewrite_check run = {
        .text = text, .passes = passes, .size = 3, .scalar = n, .lenient = true, .seed = 5};
    return rewrite_check(&run);
}

/* ---- What does not change -------------------------------------------------------------------- */

/* Row 4 - n of four: it is there for one to four iterations, and for any number but those the loop
 * fails. */
#define ROW                                                                                        \
    "  %%four = Constant() {value = i64[] 4}\n"                                                    \
    "  %%at = Sub(%%four, %%n)\n"

static const struct {
    const char *trips, *condition, *ops;
} invariants[] = {
    {"%n", "_", "%row = Gather(%x, %at)\n%e = MatMul(%row, %w)\n%d = Sin(%e)"},
    {"%n", "%yes", "%row = Gather(%x, %at)\n%e = MatMul(%row, %w)\n%d = Sin(%e)"},
    {"%n", "%more", "%row = Gather(%x, %at)\n%e = MatMul(%row, %w)\n%d = Sin(%e)"},
    {"%n1", "_", "%row = Gather(%x, %at)\n%e = MatMul(%row, %w)\n%d = Sin(%e)"},
    /* In a branch, of a condition that does not change either. */
    {"%n", "_",
     "%e = If(%more) {then_branch() {%r0 = Gather(%x, %at) %s0 = MatMul(%r0, %w) return(%s0)} "
     "else_branch() {%r1 = Gather(%x, %at) %r2 = Neg(%r1) return(%r2)}}\n"
     "%d = Sin(%e)\n%m = MatMul(%e, %w)\n%m1 = MatMul(%m, %w)"},
};

static void put_invariant(char *text, size_t size, size_t i, bool stacked)
{
    snprintf(text, size,
             "graph (%%x: f32[4, 3], %%w: f32[3, 3], %%z: f32[3], %%n: i64[]) -> (%%y as \"y\"%s) "
             "{\n" ROW "  %%zero = Constant() {value = i64[] 0}\n"
             "  %%yes = Constant() {value = bool[] true}\n"
             "  %%more = Less(%%at, %%four)\n"
             "  %%axis = Constant() {value = i64[1] [0]}\n"
             "  %%n1 = Unsqueeze(%%n, %%axis)\n"
             "  %%y%s = Loop(%s, %s, %%z) {\n"
             "    body(%%i: i64[], %%c: bool[], %%v: f32[3]) {\n"
             "      %s\n"
             "      %%v1 = Add(%%v, %%d)\n"
             "      return(%%c, %%v1%s)\n"
             "    }\n"
             "  }\n"
             "  return(%%y%s)\n"
             "}\n",
             stacked ? ", %s as \"s\"" : "", stacked ? ", %s" : "", invariants[i].trips,
             invariants[i].condition, invariants[i].ops, stacked ? ", %d" : "",
             stacked ? ", %s" : "");
}

static void test_invariants(void **state)
{
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof invariants / sizeof *invariants; i++)
        for (int stacked = 0; stacked < 2; stacked++) {
            put_invariant(text, sizeof text, i, stacked);
            int asked = rewrite_count(text, GUARD, "Greater@");
            if (asked != 1)
                fail_msg("%d questions in\n%s", asked, text);
            for (int64_t n = -2; n <= 4; n++)
                assert_true(check(text, GUARD, n));
            /* Out of range, before and after; what the condition keeps from running, runs. */
            assert_false(check(text, GUARD, 9));
        }
}

/* A branch in front of a loop that makes no iteration more than it says is of no use. */
static void test_not_asked(void **state)
{
    static const struct {
        const char *trips, *op;
    } cases[] = {
        {"%one", "%d = Gather(%x, %at)"},  /* it runs */
        {"%some", "%d = Gather(%x, %at)"}, /* it runs */
        {"%n", "%d = Sin(%z)"},            /* it cannot fail */
        {"%n", "%d = Gather(%x, %i)"},     /* it changes */
        {"%few", "%d = Gather(%z, %at)"},  /* too little is won */
    };
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(
            text, sizeof text,
            "graph (%%x: f32[4, 3], %%z: f32[3], %%l: f32[L], %%n: i64[]) -> (%%y as \"y\") {\n" ROW
            "  %%one = Constant() {value = i64[] 1}\n"
            "  %%some = Max(%%n, %%one)\n"
            "  %%sizes = Shape(%%l)\n"
            "  %%zero = Constant() {value = i64[] 0}\n"
            "  %%size = Gather(%%sizes, %%zero)\n"
            "  %%few = Min(%%size, %%four)\n"
            "  %%y = Loop(%s, _, %%z) {\n"
            "    body(%%i: i64[], %%c: bool[], %%v: f32[3]) {\n"
            "      %s\n"
            "      %%v1 = Add(%%v, %%d)\n"
            "      return(%%c, %%v1)\n"
            "    }\n"
            "  }\n"
            "  return(%%y)\n"
            "}\n",
            cases[i].trips, cases[i].op);
        if (rewrite_count(text, GUARD, "If@"))
            fail_msg("asked in\n%s", text);
        check(text, GUARD, 2);
    }
}

/* ---- All iterations at once ------------------------------------------------------------------ */

static void test_at_once(void **state)
{
    static const char *const bodies[] = {
        /* The same row in all iterations, and one that moves. */
        "%row = Gather(%x, %at)\n%e = Gather(%x, %i)\n%d = Mul(%row, %e)",
        /* A number that may be zero divides. */
        "%e = Gather(%x, %i)\n%k = Div(%four, %n)\n%f = Cast(%k) {to = 1}\n%d = Mul(%e, %f)",
    };
    static const struct pass_batching ways[] = {{0}, {.block = 1}, {.block = 2}};
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        snprintf(text, sizeof text,
                 "graph (%%x: f32[4, 3], %%z: f32[4, 3], %%n: i64[]) -> (%%y as \"y\", %%s as "
                 "\"s\") {\n" ROW "  %%three = Constant() {value = i64[] 3}\n"
                 "  %%axis = Constant() {value = i64[1] [0]}\n"
                 "  %%y, %%s = Loop(%%n, _, %%z) {\n"
                 "    body(%%i: i64[], %%c: bool[], %%v: f32[4, 3]) {\n"
                 "      %s\n"
                 "      %%sum = ReduceMax(%%d) {keepdims = 0}\n"
                 "      %%v1 = assign(%%v, %%d, %%i) {rule = [select(0, $0)]}\n"
                 "      return(%%c, %%v1, %%sum)\n"
                 "    }\n"
                 "  }\n"
                 "  return(%%y, %%s)\n"
                 "}\n",
                 bodies[i]);
        if (rewrite_count(text, PARALLELIZE, "Loop@") ||
            rewrite_count(text, PARALLELIZE, "If@") != 1)
            fail_msg("not at once: %s", text);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
            for (int64_t n = -1; n <= 4; n++) {
                const struct rewrite_check run = {.text = text,
                                                  .passes = PARALLELIZE,
                                                  .size = 3,
                                                  .scalar = n,
                                                  .lenient = true,
                                                  .batching = ways[k],
                                                  .seed = 5};
                rewrite_check(&run);
            }
        assert_true(check(text, PARALLELIZE, 0));
        assert_true(check(text, PARALLELIZE, 4));
    }
}

/* ---- What asks already ----------------------------------------------------------------------- */

static bool runs(const char *question)
{
    char text[1024];
    struct ir_graph *graph = NULL;
    snprintf(text, sizeof text,
             "graph (%%x: f32[3], %%n: i64[], %%m: i64[], %%b: bool[]) -> (%%y as \"y\") {\n"
             "  %%zero = Constant() {value = i64[] 0}\n"
             "  %%minus = Constant() {value = i64[] -1}\n"
             "  %s\n"
             "  %%y = If(%%q) {\n"
             "    then_branch() {\n"
             "      %%r = Loop(%%n, _, %%x) {body(%%i: i64[], %%c: bool[], %%v: f32[3]) {"
             "%%w = Sin(%%v) return(%%c, %%w)}}\n"
             "      return(%%r)\n"
             "    }\n"
             "    else_branch() {return(%%x)}\n"
             "  }\n"
             "  return(%%y)\n"
             "}\n",
             question);
    assert_null(ir_parse(&allocator_default, text, strlen(text), &graph));
    assert_null(ir_infer_graph(graph));
    const struct ir_op *branch = graph->body->first;
    while (!ir_op_is(branch, IR_OP_If))
        branch = branch->next;
    bool result = ir_loop_runs(branch->blocks[0]->first);
    ir_graph_free(graph);
    return result;
}

static void test_questions(void **state)
{
    (void)state;
    assert_true(runs("%q = Greater(%n, %zero)"));
    assert_true(runs("%q = Less(%zero, %n)"));
    assert_true(runs("%p = Less(%zero, %n) %q = And(%b, %p)"));
    assert_false(runs("%q = Greater(%m, %zero)"));
    assert_false(runs("%q = Greater(%n, %minus)"));
    assert_false(runs("%q = Less(%n, %zero)"));
    assert_false(runs("%p = Less(%zero, %n) %q = Or(%b, %p)"));
    assert_false(runs("%p = Less(%zero, %n) %q = Not(%p)"));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tssa_status *rewrite_on(const tssa_allocator *allocator)
{
    static const char *const passes[2][2] = {{"guard_loops", "hoist"}, {"parallelize", "hoist"}};
    char text[2048];
    put_invariant(text, sizeof text, 2, true);
    TRY(rewrite_text(allocator, text, passes[0], 2, NULL));
    return rewrite_text(allocator, text, passes[1], 2, NULL);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(rewrite_on) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants),    cmocka_unit_test(test_not_asked),
        cmocka_unit_test(test_at_once),       cmocka_unit_test(test_questions),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
