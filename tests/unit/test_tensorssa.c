/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The imperative programs of the golden tests (tests/golden/tensorssa_*.tir) give the same when
 * they are run with real aliasing and converted; and conversion takes time linear in the size of a
 * program.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/imperative_check.h"
#include "common/op_run.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"

#define FOLDER TSSA_SOURCE_DIR "/tests/golden"
#define MAX_INPUTS 8

/* ---- Golden programs ------------------------------------------------------------------------- */

static char *read_file(const char *name)
{
    char path[4096];
    struct text text;
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text_init(&text, &allocator_default);
    for (int c; (c = fgetc(file)) != EOF;)
        text_putc(&text, (char)c);
    fclose(file);
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

/* Integers and bools are `scalar`; symbolic dims 5. */
static void make_input(const struct ir_type *type, int64_t scalar, struct random *random,
                       struct value *value)
{
    int64_t dims[TSSA_MAX_RANK];
    assert_int_equal(type->kind, TYPE_TENSOR);
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]))
            dims[i] = 5;
    value->kind = TSSA_KIND_TENSOR;
    assert_null(tensor_create(&allocator_default, type->dtype, type->rank, dims, &value->tensor));
    size_t count = tensor_count(&value->tensor), width = dtype_info(type->dtype)->size;
    for (size_t i = 0; i < count; i++) {
        char *element = (char *)value->tensor.data + i * width;
        if (dtype_is_float(type->dtype))
            dtype_store_double(type->dtype, element, (double)random_int(random, -64, 64) / 32);
        else
            dtype_store_int64(type->dtype, element, type->dtype == TSSA_BOOL ? scalar & 1 : scalar);
    }
}

static enum imperative_outcome check_program(const char *text, int64_t scalar, struct text *message)
{
    struct value inputs[MAX_INPUTS] = {0};
    const struct value *given[MAX_INPUTS], *const *runs[] = {given};
    struct random random = {7};
    struct ir_graph *graph;
    assert_null(imperative_read(text, &graph));
    uint32_t n = graph->body->n_params;
    assert_true(n <= MAX_INPUTS);
    for (uint32_t i = 0; i < n; i++) {
        make_input(graph->body->params[i]->type, scalar, &random, &inputs[i]);
        given[i] = &inputs[i];
    }
    ir_graph_free(graph);
    enum imperative_outcome outcome = imperative_check(text, runs, 1, message);
    for (uint32_t i = 0; i < n; i++)
        value_release(&inputs[i]);
    return outcome;
}

/* The programs once, not once for every step; those with sequences and Scan are not run. */
static bool is_run(const char *name)
{
    return strncmp(name, "tensorssa_", 10) == 0 && strstr(name, ".tir") && !strstr(name, "_1_") &&
           !strstr(name, "_2_") && !strstr(name, "_3_") && !strstr(name, "_4_") &&
           !strstr(name, "missed") && !strstr(name, "moved");
}

static void golden_programs_mean_the_same(void **state)
{
    (void)state;
    int programs = 0;
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!is_run(entry->d_name))
            continue;
        programs++;
        char *source = read_file(entry->d_name);
        for (int64_t scalar = 0; scalar < 4; scalar++) {
            struct text message;
            text_init(&message, &allocator_default);
            if (check_program(source, scalar, &message) != IMPERATIVE_SAME)
                fail_msg("%s with %d: %s", entry->d_name, (int)scalar, text_string(&message));
            text_free(&message);
        }
        free(source);
    }
    closedir(folder);
    assert_true(programs >= 15);
}

/* ---- Large programs -------------------------------------------------------------------------- */

/* `n` views of x, each of which is read and written to; in `depth` nested loops. */
static char *large_program(int n, int depth)
{
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%x: f32[8, 8], %n: i64[]) -> (%x as \"x\") {\n");
    for (int i = 0; i < depth; i++)
        text_printf(&text, "Loop(%%n, _) {\nbody(%%i%d: i64[], %%c%d: bool[]) {\n", i, i);
    for (int i = 0; i < n; i++)
        text_printf(&text, "%%v%d = view(%%x) {rule = [select(0, %d)]}\n", i, i % 8);
    for (int i = 0; i < n; i++)
        text_printf(&text, "%%e%d = Exp(%%v%d)\nwrite(%%v%d, %%e%d)\n", i, i, i, i);
    for (int i = depth; i-- > 0;)
        text_printf(&text, "return(%%c%d)\n}\n}\n", i);
    text_puts(&text, "return(%x)\n}\n");
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

static uint32_t ops_after_conversion(int n, int depth)
{
    static const char *const steps[] = {"separate_names", "rewrite_mutation", "block_propagation",
                                        "rename", "remove_update"};
    char *text = large_program(n, depth);
    struct ir_graph *graph;
    assert_null(imperative_read(text, &graph));
    assert_null(pipeline_run_passes(graph, steps, sizeof steps / sizeof *steps, NULL));
    assert_false(ir_block_is_imperative(graph->body));
    uint32_t n_ops = graph->n_ops;
    ir_graph_free(graph);
    free(text);
    return n_ops;
}

/* No view is accessed anew after a write before which nobody reads it. */
static void conversion_is_linear(void **state)
{
    (void)state;
    for (int depth = 0; depth < 60; depth += 20) {
        uint32_t small = ops_after_conversion(200, depth),
                 large = ops_after_conversion(2000, depth);
        assert_in_range(large, 0, 11 * small);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/*
 * Views of views, a param that is written to, nested blocks, a view made outside and read inside.
 */
static const char every_part[] =
    "graph (%x: f32[4, 4], %n: i64[], %c: bool[]) -> (%x as \"x\", %z as \"z\") {\n"
    "  %i = Identity(%n)\n"
    "  %row = view(%x, %i) {rule = [select(0, $0)]}\n"
    "  %part = view(%row) {rule = [slice(0, 0, 2, 1)]}\n"
    "  write(%i, %n)\n"
    "  %y = Neg(%x)\n"
    "  %z = Loop(%n, _, %y) {\n"
    "    body(%j: i64[], %go: bool[], %carried: f32[4, 4]) {\n"
    "      If(%c) {\n"
    "        then_branch() {\n"
    "          %e = Exp(%part)\n"
    "          write(%part, %e)\n"
    "          return()\n"
    "        }\n"
    "        else_branch() {\n"
    "          write(%carried, %row)\n"
    "          return()\n"
    "        }\n"
    "      }\n"
    "      return(%go, %carried)\n"
    "    }\n"
    "  }\n"
    "  return(%x, %z)\n"
    "}\n";

static tssa_status *convert(const tssa_allocator *allocator)
{
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = NULL;
    TRY(ir_parse(allocator, every_part, sizeof every_part - 1, &graph));
    tssa_status *status = ir_verify(graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = pipeline_run(graph, 1, &pipeline);
    if (!status && ir_block_is_imperative(graph->body))
        status = ERROR(TSSA_INTERNAL, "views or writes are left");
    ir_graph_free(graph);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(convert) > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_programs_mean_the_same),
                                       cmocka_unit_test(conversion_is_linear),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
