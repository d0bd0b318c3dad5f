/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two versions of a loop, behind a question (versions.h): programs give the same for short rows and
 * long ones, and for every number of iterations; what branches tell of sizes (branch_sizes.h) is
 * made use of; what is written and read again stays as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/graph_text.h"
#include "common/rewrite_check.h"
#include "common/rewrite_text.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"

#define PASSES "infer forward_assigns parallelize infer dead_code"

/* Iterations stack a row of x, and what they make of it. */
#define ROWS(trips)                                                                                \
    "  %r = Loop(" trips ", _) {\n"                                                                \
    "    body(%i: i64[], %c: bool[]) {\n"                                                          \
    "      %row = Gather(%x, %i)\n"                                                                \
    "      %a = Mul(%row, %w)\n"                                                                   \
    "      %b = Add(%a, %w)\n"                                                                     \
    "      %d = Mul(%b, %b)\n"                                                                     \
    "      %e = Sub(%d, %b)\n"                                                                     \
    "      return(%c, %e)\n"                                                                       \
    "    }\n"                                                                                      \
    "  }\n"

#define HEAD "graph (%x: f32[1000, N], %w: f32[N], %n: i64[]) -> (%r as \"r\") {\n"

static int count(const char *text, const char *word)
{
    return rewrite_count(text, PASSES, word);
}

static bool check(const char *text, int64_t size, int64_t trips, struct pass_batching batching)
{
    const struct rewrite_check run = {.text = text,
                                      .passes = PASSES,
                                      .size = size,
                                      .scalar = trips,
                                      .batching = batching,
                                      .seed = 3};
    return rewrite_check(&run);
}

/* ---- Both versions --------------------------------------------------------------------------- */

static const char *const programs[] = {
    HEAD ROWS("%n") "  return(%r)\n}\n",
    /* Of another rank, and beside something that is carried. */
    "graph (%x: f32[1000, N], %w: f32[N], %s: bool[], %n: i64[]) -> (%r, %t) {\n"
    "  %axis = Constant() {value = i64[1] [0]}\n"
    "  %n1 = Unsqueeze(%n, %axis)\n"
    "  %t, %r, %q = Loop(%n1, _, %s) {\n"
    "    body(%i: i64[], %c: bool[], %v: bool[]) {\n"
    "      %row = Gather(%x, %i)\n"
    "      %a = Mul(%row, %w)\n"
    "      %b = Add(%a, %w)\n"
    "      %l = Less(%i, %n)\n"
    "      %v1 = And(%v, %l)\n"
    "      return(%c, %v1, %a, %b)\n"
    "    }\n"
    "  }\n"
    "  return(%r, %t)\n"
    "}\n",
    /* What could fail without an iteration. */
    "graph (%x: f32[1000, N], %w: f32[N], %k: i64[], %n: i64[]) -> (%r) {\n"
    "  %four = Constant() {value = i64[] 4}\n"
    "  %at = Sub(%n, %four)\n"
    "  %r = Loop(%n, _) {\n"
    "    body(%i: i64[], %c: bool[]) {\n"
    "      %row = Gather(%x, %i)\n"
    "      %other = Gather(%x, %at)\n"
    "      %a = Mul(%row, %other)\n"
    "      %b = Add(%a, %w)\n"
    "      return(%c, %b)\n"
    "    }\n"
    "  }\n"
    "  return(%r)\n"
    "}\n",
};

static void check_trips(const char *text, int64_t size, struct pass_batching batching)
{
    static const int64_t trips[] = {-1, 0, 1, 2, 3, 5, 6, 7, 8, 16};
    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++)
        check(text, size, trips[i], batching);
}

static void test_same(void **state)
{
    static const struct pass_batching ways[] = {
        {0}, {.block = 3, .rows = 8}, {.block_bytes = 256, .rows = 8}};
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            assert_int_equal(rewrite_count_batched(programs[p], PASSES, ways[w], "If@"), 1);
            assert_int_equal(rewrite_count_batched(programs[p], PASSES, ways[w], "Loop@"), 2);
            for (int64_t size = 0; size <= 9; size += size < 7 ? 3 : 1)
                check_trips(programs[p], size, ways[w]);
        }
        /* More rows than there are: an error of either version. */
        assert_false(check(programs[p], 5, 1001, ways[1]));
        assert_false(check(programs[p], 20, 1001, ways[1]));
    }
}

/* All of level 2, which sessions run with other rates than files. */
static void test_levels(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (int64_t trips = 0; trips <= 16; trips += 4) {
            struct rewrite_check run = {.text = programs[p], .size = 5, .scalar = trips, .seed = 4};
            run.lenient = true;
            rewrite_check(&run);
            run.size = 9000;
            if (trips == 8)
                rewrite_check(&run);
        }
}

/* ---- What branches tell ---------------------------------------------------------------------- */

/* The loop in a branch whose condition is computed by these ops, from a length and the number of
 * iterations. */
static void put_branch(char *text, size_t size, const char *question, bool other)
{
    snprintf(text, size,
             "graph (%%x: f32[M, N], %%w: f32[N], %%u: f32[U], %%yes: bool[], "
             "%%n0: i64[]) -> (%%y) {\n"
             "  %%zero = Constant() {value = i64[] 0}\n"
             "  %%one = Constant() {value = i64[] 1}\n"
             "  %%few = Constant() {value = i64[] 100}\n"
             "  %%many = Constant() {value = i64[] 30000}\n"
             "  %%n = Max(%%n0, %%zero)\n"
             "  %%shape = Shape(%%x)\n"
             "  %%shape_u = Shape(%%u)\n"
             "  %%length = Gather(%%shape, %%one)\n"
             "  %%length_u = Gather(%%shape_u, %%zero)\n"
             "  %s\n"
             "  %%y = If(%%question) {\n"
             "    then_branch() {\n%s    }\n"
             "    else_branch() {\n%s    }\n"
             "  }\n"
             "  return(%%y)\n"
             "}\n",
             question, other ? "%o = Neg(%w)\nreturn(%o)\n" : ROWS("%n") "return(%r)\n",
             other ? ROWS("%n") "return(%r)\n" : "%o = Neg(%w)\nreturn(%o)\n");
}

static void test_branches(void **state)
{
    static const struct {
        const char *question;
        bool other; /* the loop is in the else_branch */
        int branches, loops;
    } cases[] = {
        /* Nothing that says anything of a row. */
        {"%question = Less(%length_u, %few)", false, 2, 2},
        {"%question = Identity(%yes)", false, 2, 2},
        {"%question = Less(%few, %length)", false, 2, 2},
        {"%question = Less(%length, %many)", false, 2, 2},
        /* Short: blocks. */
        {"%question = Less(%length, %few)", false, 1, 1},
        {"%question = Greater(%few, %length)", false, 1, 1},
        {"%question = GreaterOrEqual(%length, %few)", true, 1, 1},
        {"%p = Less(%length, %few) %question = And(%yes, %p)", false, 1, 1},
        {"%p = Less(%few, %length) %question = Or(%p, %yes)", true, 1, 1},
        {"%p = Less(%few, %length) %question = Not(%p)", false, 1, 1},
        /* Long: the loop stays. */
        {"%question = Greater(%length, %many)", false, 1, 1},
        {"%question = LessOrEqual(%length, %many)", true, 1, 1},
        {"%p = Greater(%length, %many) %question = And(%p, %yes)", false, 1, 1},
        /* One of them holds: nothing is known. */
        {"%p = Less(%length, %few) %question = Or(%p, %yes)", false, 2, 2},
        {"%p = Less(%length, %few) %question = And(%p, %yes)", true, 2, 2},
    };
    char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_branch(text, sizeof text, cases[i].question, cases[i].other);
        int branches = count(text, "If@"), loops = count(text, "Loop@");
        if (branches != cases[i].branches || loops != cases[i].loops)
            fail_msg("%s, %d: %d branches, %d loops", cases[i].question, cases[i].other, branches,
                     loops);
    }
}

/* Blocks where rows are short: what they are made of stands there. */
static void test_which(void **state)
{
    char text[4096];
    (void)state;
    put_branch(text, sizeof text, "%question = Less(%length, %few)", false);
    assert_int_equal(count(text, "Range@"), 1);
    put_branch(text, sizeof text, "%question = Greater(%length, %many)", false);
    assert_int_equal(count(text, "Range@"), 0);
}

/* ---- Where there is one version -------------------------------------------------------------- */

static void test_one_version(void **state)
{
    (void)state;
    /* The model tells. */
    assert_int_equal(count("graph (%x: f32[16, 20], %w: f32[20], %n: i64[]) -> (%r) {\n" ROWS(
                               "%n") "  return(%r)\n}\n",
                           "If@"),
                     0);
    assert_int_equal(count("graph (%x: f32[16, 20000], %w: f32[20000], %n: i64[]) -> (%r) {\n" ROWS(
                               "%n") "  return(%r)\n}\n",
                           "If@"),
                     0);
}

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    assert_null(ir_parse(&allocator_default, text, strlen(text), &graph));
    assert_null(ir_infer_graph(graph));
    return graph;
}

static int count_with(const char *text, const tssa_optimize_options *options, const char *word)
{
    struct text printed;
    struct ir_graph *graph = parse(text);
    const struct pipeline pipeline = {.options = options};
    int n = 0;
    assert_null(pipeline_run(graph, 2, &pipeline));
    text_init(&printed, &allocator_default);
    print_unnumbered(graph, true, &printed);
    for (const char *at = text_string(&printed); (at = strstr(at, word)); at++)
        n++;
    text_free(&printed);
    ir_graph_free(graph);
    return n;
}

/* A file does not grow by more than it may; a session has no file. */
static void test_file_growth(void **state)
{
    const char *text = HEAD ROWS("%n") "  return(%r)\n}\n";
    tssa_optimize_options options = {.level = 2};
    (void)state;
    assert_int_equal(count_with(text, &options, "If@"), 1);
    options.file_growth = -1;
    assert_int_equal(count_with(text, &options, "If@"), 0);
    assert_int_equal(count_with(text, &options, "Loop@"), 1);
    options.target = TSSA_TARGET_SESSION;
    assert_int_equal(count_with(text, &options, "If@"), 1);
}

/* ---- Again ----------------------------------------------------------------------------------- */

static struct ir_graph *rewrite(struct ir_graph *graph, struct text *bytes)
{
    const tssa_optimize_options options = {.level = 2};
    const struct pipeline pipeline = {.options = &options};
    text_init(bytes, &allocator_default);
    assert_null(pipeline_run(graph, 2, &pipeline));
    struct ir_graph *again = export_import("versions", graph, NULL, bytes);
    ir_graph_free(graph);
    return again;
}

static void test_again(void **state)
{
    struct text bytes[3];
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        struct ir_graph *once = rewrite(parse(programs[p]), &bytes[0]);
        struct text text;
        text_init(&text, &allocator_default);
        print_unnumbered(once, true, &text);
        assert_non_null(strstr(text_string(&text), "If@"));
        struct ir_graph *twice = rewrite(once, &bytes[1]);
        struct text again;
        text_init(&again, &allocator_default);
        print_unnumbered(twice, true, &again);
        assert_string_equal(text_string(&text), text_string(&again));
        ir_graph_free(twice);
        text_free(&text);
        text_free(&again);
        text_free(&bytes[0]);
        text_free(&bytes[1]);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tssa_status *rewrite_on(const tssa_allocator *allocator)
{
    static const char *const names[] = {"parallelize"};
    return rewrite_text(allocator, programs[1], names, 1, NULL);
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(rewrite_on) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_branches),    cmocka_unit_test(test_which),
        cmocka_unit_test(test_one_version), cmocka_unit_test(test_file_growth),
        cmocka_unit_test(test_again),       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
