/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over so little that only millions of iterations at once are too much: a run chooses between
 * all at once and blocks (versions.h). Both give what the loop gives, take no memory that grows
 * with the iterations, and are left as they are when they are read again.
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
#include "common/no_error.h"
#include "common/rewrite_check.h"
#include "common/rewrite_text.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/loops/choice.h"
#include "passes/pipeline.h"
#include "tssa.h"

#define PASSES "infer forward_assigns induction parallelize infer dead_code"
#define ITERATIONS 12000000
#define MOST_BYTES ((size_t)64 << 20)

/* any |= x * i == y, and the number of them. */
#define SCALARS(trips)                                                                             \
    "  %r, %k = Loop(" trips ", _, %s, %zero) {\n"                                                 \
    "    body(%i: i64[], %c: bool[], %v: bool[], %m: i64[]) {\n"                                   \
    "      %a = Mul(%x, %i)\n"                                                                     \
    "      %e = Equal(%a, %y)\n"                                                                   \
    "      %o = Or(%v, %e)\n"                                                                      \
    "      %q = Cast(%e) {to = 7}\n"                                                               \
    "      %p = Add(%m, %q)\n"                                                                     \
    "      return(%c, %o, %p)\n"                                                                   \
    "    }\n"                                                                                      \
    "  }\n"
#define HEAD                                                                                       \
    "graph (%x: i64[1], %y: i64[1], %s: bool[1], %n: i64[]) -> (%r, %k) {\n"                       \
    "  %zero = Constant() {value = i64[1] [0]}\n"

static const char *const programs[] = {
    HEAD SCALARS("%n") "  return(%r, %k)\n}\n",
    /* What could fail without an iteration: one is asked for as well. */
    "graph (%x: i64[1], %y: i64[1], %s: bool[1], %n: i64[]) -> (%r) {\n"
    "  %r = Loop(%n, _, %s) {\n"
    "    body(%i: i64[], %c: bool[], %v: bool[1]) {\n"
    "      %a = Mul(%x, %i)\n"
    "      %d = Div(%a, %y)\n"
    "      %e = Equal(%d, %i)\n"
    "      %o = Or(%v, %e)\n"
    "      return(%c, %o)\n"
    "    }\n"
    "  }\n"
    "  return(%r)\n"
    "}\n",
};

static int count(const char *text, const char *word)
{
    return rewrite_count(text, PASSES, word);
}

/* ---- Both versions --------------------------------------------------------------------------- */

static void test_same(void **state)
{
    static const int64_t trips[] = {
        -1, 0, 1, 2, 7, CHOICE_MANY - 1, CHOICE_MANY, CHOICE_MANY + 1, 2 * CHOICE_MANY + 77};
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        assert_int_equal(count(programs[p], "If@"), 1);
        assert_int_equal(count(programs[p], "Loop@"), 1);
        for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
            struct rewrite_check run = {
                .text = programs[p], .passes = PASSES, .scalar = trips[i], .seed = 5};
            rewrite_check(&run);
            run.passes = NULL;
            run.lenient = true;
            rewrite_check(&run);
            run.target = TSSA_TARGET_SESSION;
            rewrite_check(&run);
        }
    }
}

/* ---- Where there is one version -------------------------------------------------------------- */

static void test_one_version(void **state)
{
    (void)state;
    /* The model tells how many, or a branch does. */
    const char *known =
        HEAD "  %few = Constant() {value = i64[] 1000}\n" SCALARS("%few") "  return(%r, %k)\n}\n";
    assert_int_equal(count(known, "If@"), 0);
    assert_int_equal(count(known, "Loop@"), 0);
    const char *asked = "graph (%x: i64[1], %y: i64[1], %s: bool[1], %n: i64[]) -> (%r0, %k0) {\n"
                        "  %zero = Constant() {value = i64[1] [0]}\n"
                        "  %least = Constant() {value = i64[] 0}\n"
                        "  %m0 = Max(%n, %least)\n"
                        "  %few = Constant() {value = i64[] 1000}\n"
                        "  %question = Less(%m0, %few)\n"
                        "  %r0, %k0 = If(%question) {\n"
                        "    then_branch() {\n" SCALARS("%m0") "      return(%r, %k)\n"
                                                               "    }\n"
                                                               "    else_branch() {\n"
                                                               "      return(%s, %zero)\n"
                                                               "    }\n"
                                                               "  }\n"
                                                               "  return(%r0, %k0)\n}\n";
    assert_int_equal(count(asked, "If@"), 1);
    assert_int_equal(count(asked, "Loop@"), 0);
}

/* In another loop a question would cost in every iteration. */
static void test_in_a_loop(void **state)
{
    (void)state;
    const char *nested = "graph (%x: i64[1], %y: i64[1], %s: bool[1], %n: i64[], %l: i64[], %w: "
                         "i64[1]) -> (%q1, %h) {\n"
                         "  %zero = Constant() {value = i64[1] [0]}\n"
                         "  %q1, %h = Loop(%l, _, %s, %w) {\n"
                         "    body(%j: i64[], %d: bool[], %u: bool[1], %f: i64[1]) {\n" SCALARS(
                             "%n") "      %f1 = Sub(%k, %f)\n"
                                   "      %u1 = And(%u, %r)\n"
                                   "      return(%d, %u1, %f1)\n"
                                   "    }\n"
                                   "  }\n"
                                   "  return(%q1, %h)\n"
                                   "}\n";
    assert_int_equal(count(nested, "If@"), 0);
    assert_int_equal(count(nested, "Loop@"), 1);
}

/* ---- Again ----------------------------------------------------------------------------------- */

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    assert_null(ir_parse(&allocator_default, text, strlen(text), &graph));
    assert_null(ir_infer_graph(graph));
    return graph;
}

static struct ir_graph *rewrite(struct ir_graph *graph, int64_t file_growth, struct text *bytes)
{
    const tssa_optimize_options options = {.level = 2, .file_growth = file_growth};
    const struct pipeline pipeline = {.options = &options};
    text_init(bytes, &allocator_default);
    assert_null(pipeline_run(graph, 2, &pipeline));
    struct ir_graph *again = export_import("few", graph, NULL, bytes);
    ir_graph_free(graph);
    return again;
}

static void test_again(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        struct text bytes[2], text, again;
        struct ir_graph *once = rewrite(parse(programs[p]), 0, &bytes[0]);
        text_init(&text, &allocator_default);
        print_unnumbered(once, true, &text);
        assert_non_null(strstr(text_string(&text), "If@"));
        struct ir_graph *twice = rewrite(once, 0, &bytes[1]);
        text_init(&again, &allocator_default);
        print_unnumbered(twice, true, &again);
        assert_string_equal(text_string(&text), text_string(&again));
        ir_graph_free(twice);
        text_free(&again);
        text_free(&text);
        text_free(&bytes[0]);
        text_free(&bytes[1]);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tssa_value *make_integer(tssa_context *context, int rank, int64_t element)
{
    const int64_t dims[] = {1};
    tssa_value *value;
    no_error(tssa_tensor_create(context, TSSA_INT64, rank, dims, &value));
    *(int64_t *)tssa_tensor_data(value) = element;
    return value;
}

/* Of a program whose loop holds some numbers, whatever the number of its iterations. */
static size_t bytes_of_run(const char *program, tssa_target target, int64_t file_growth)
{
    struct text bytes;
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_memory_use use;
    tssa_value *outputs[2] = {0};
    const int64_t one[] = {1};
    size_t n_outputs = strstr(program, "%k") ? 2 : 1;
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = 2, .target = target, .file_growth = file_growth};
    text_init(&bytes, &allocator_default);
    struct ir_graph *graph = parse(program);
    ir_graph_free(export_import("few", graph, NULL, &bytes));
    ir_graph_free(graph);
    no_error(tssa_context_create(NULL, &context));
    no_error(tssa_model_load_memory(context, text_string(&bytes), bytes.size, NULL, &model));
    no_error(tssa_model_optimize(model, &options));
    no_error(tssa_session_create(model, NULL, &session));
    tssa_value *inputs[] = {make_integer(context, 1, 3), make_integer(context, 1, 7), NULL,
                            make_integer(context, 0, ITERATIONS)};
    no_error(tssa_tensor_create(context, TSSA_BOOL, 1, one, &inputs[2]));
    *(bool *)tssa_tensor_data(inputs[2]) = false;
    no_error(tssa_session_run(session, 4, inputs, n_outputs, outputs));
    no_error(tssa_session_memory(session, &use));
    for (size_t i = 0; i < 4; i++)
        tssa_value_free(inputs[i]);
    for (size_t i = 0; i < n_outputs; i++)
        tssa_value_free(outputs[i]);
    tssa_session_free(session);
    tssa_model_free(model);
    tssa_context_free(context);
    text_free(&bytes);
    return use.peak;
}

static void test_memory_of_runs(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        assert_in_range(bytes_of_run(programs[p], TSSA_TARGET_ONNX, 0), 1, MOST_BYTES);
        assert_in_range(bytes_of_run(programs[p], TSSA_TARGET_SESSION, 0), 1, MOST_BYTES);
        /* Where the file may not grow, there are blocks alone. */
        assert_in_range(bytes_of_run(programs[p], TSSA_TARGET_ONNX, -1), 1, MOST_BYTES);
    }
}

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
        cmocka_unit_test(test_same),           cmocka_unit_test(test_one_version),
        cmocka_unit_test(test_in_a_loop),      cmocka_unit_test(test_again),
        cmocka_unit_test(test_memory_of_runs), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
