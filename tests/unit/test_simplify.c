/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the golden tests of simplifying passes compute after the pass, and after all of
 * level 2, what they computed before, to the bit: with sizes and numbers of iterations from 0 on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/graph_text.h"
#include "common/rewrite_check.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

#define FOLDER TSSA_SOURCE_DIR "/tests/golden/"

static char *read_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, FOLDER "pass_%s.tir", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void check_program(const char *text, const char *passes)
{
    static const int64_t sizes[] = {1, 5, 0}, scalars[] = {0, 1, 3};
    int ran = 0;
    for (uint64_t seed = 1; seed <= 4; seed++)
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < 3; k++)
                ran += rewrite_check(&(struct rewrite_check){.text = text,
                                                             .passes = passes,
                                                             .size = sizes[i],
                                                             .scalar = scalars[k],
                                                             .seed = seed});
    assert_true(ran > 0);
}

static void results_are_the_same(void **state)
{
    char *text = read_file(*state);
    check_program(text, *state);
    check_program(text, NULL);
    free(text);
}

/* Parts of one row each, and positions that are out of range. */
static void rows_are_parts(void **state)
{
    (void)state;
    char *text = read_file("sequences_rows");
    check_program(text, "sequences");
    check_program(text, NULL);
    free(text);
}

/* Types of unknown ranks are one type: of a part and of the whole, of one number and of what it is
 * written to. */
static void a_part_is_no_whole(void **state)
{
    static const char *const names[][2] = {{"identity_no_rank", "identity"},
                                           {"forward_assigns_no_rank_whole", "forward_assigns"},
                                           {"forward_assigns_no_rank_part", "forward_assigns"}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = read_file(names[i][0]);
        check_program(text, names[i][1]);
        check_program(text, NULL);
        free(text);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static const char *swept;

static tssa_status *optimize(const tssa_allocator *allocator, struct ir_graph *graph)
{
    struct evaluator evaluator;
    evaluator_init(&evaluator, allocator);
    const struct pipeline pipeline = {.evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status = ir_infer_graph(graph);
    if (!status)
        status = pipeline_run(graph, PIPELINE_MAX_LEVEL, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

static tssa_status *parse_and_optimize(const tssa_allocator *allocator)
{
    struct ir_graph *graph;
    TRY(ir_parse(allocator, swept, strlen(swept), &graph));
    tssa_status *status = optimize(allocator, graph);
    ir_graph_free(graph);
    return status;
}

static void memory_may_run_out_anywhere(void **state)
{
    static const char *const names[] = {
        "algebra",     "batch_writes",    "carried_values", "common_subexpressions",
        "hoist",       "fold_constants",  "fold_lookups",   "infer",
        "induction",   "loop_conditions", "scan_outputs",   "sequences",
        "unroll",      "stack_sequences", "branch_writes",  "chosen_terms",
        "outer_shapes"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = read_file(names[i]);
        swept = text;
        assert_true(test_alloc_sweep(parse_and_optimize) > 0);
        free(text);
    }
}

/* ---- What may never run ---------------------------------------------------------------------- */

/* Constants that are folded tell that each of these branches could only fail. */
static const char impossible[] = "graph (%x: f32[3], %b: bool[]) -> (%y as \"y\", %z as \"z\") {\n"
                                 "%two = Constant() {value = f32[1] [2]}\n"
                                 "%zero = Constant() {value = i64[1] [0]}\n"
                                 "%shape = Cast(%two) {to = 7}\n"
                                 "%there = Slice(%x, %zero, %shape)\n"
                                 "%y = If(%b) {\n"
                                 "then_branch() {%r = Reshape(%x, %shape) return(%r)}\n"
                                 "else_branch() {return(%x)}\n}\n"
                                 "%z = If(%b) {\n"
                                 "then_branch() {%s = Add(%x, %there) return(%s)}\n"
                                 "else_branch() {return(%x)}\n}\n"
                                 "return(%y, %z)\n}\n";

static void what_cannot_run_can_be_read(void **state)
{
    (void)state;
    struct ir_graph *graph = NULL;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    assert_null(ir_parse(&allocator_default, impossible, strlen(impossible), &graph));
    assert_null(optimize(&allocator_default, graph));
    struct ir_graph *again = export_import("impossible", graph, NULL, &bytes);
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&bytes);
}

int main(void)
{
    static const char *const names[] = {"algebra",         "branch_writes", "carried_values",
                                        "chosen_terms",    "hoist",         "known_branches",
                                        "loop_conditions", "outer_shapes",  "select_branches"};
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[N + 4];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){names[i], results_are_the_same, NULL, NULL, (void *)names[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(memory_may_run_out_anywhere);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(what_cannot_run_can_be_read);
    tests[N + 2] = (struct CMUnitTest)cmocka_unit_test(a_part_is_no_whole);
    tests[N + 3] = (struct CMUnitTest)cmocka_unit_test(rows_are_parts);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
