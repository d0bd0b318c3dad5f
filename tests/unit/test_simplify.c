/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the golden tests of simplifying passes compute after the pass, and after all of level 2,
 * what they computed before, to the bit: with sizes and numbers of iterations from 0 on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* ---- Memory --------------------------------------------------------------------------------------- */

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
        "algebra",        "carried_values", "fold_constants", "hoist",     "common_subexpressions",
        "infer",          "sequences",      "unroll",         "induction", "loop_conditions",
        "stack_sequences"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = read_file(names[i]);
        swept = text;
        assert_true(test_alloc_sweep(parse_and_optimize) > 0);
        free(text);
    }
}

int main(void)
{
    static const char *const names[] = {"algebra", "carried_values", "hoist", "known_branches",
                                        "select_branches"};
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[N + 1];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){names[i], results_are_the_same, NULL, NULL, (void *)names[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(memory_may_run_out_anywhere);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
