/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager, and running out of memory anywhere between text and optimized text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"

static const char source[] =
    "graph @\"a name\" opset(\"\": 18) metadata(\"k\": \"v\") (%x: f32[2, 3], %c: bool[] = bool[] "
    "true) -> "
    "(%y as \"y\") { %i = Identity(%x) %s = Shape(%i) %t = Mul(%s, %s) %dead = Neg(%i) "
    "%y = If(%c) @branch { then_branch() { %a = Exp(%i) return(%a) } else_branch() { %b = "
    "opaque(\"d\", \"X\", 1)(%t) {v = [1, 2], w = strings [], z = f32[2] [1, 2]}: f32[ceildiv(N + "
    "1, 3)] "
    "return(%b) } } return(%y) }";

static struct ir_graph *parse(void)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, source, strlen(source), &graph);
    assert_null(status);
    assert_null(ir_infer_graph(graph));
    return graph;
}

struct log {
    char passes[256];
    bool saw_dead;
};

static void record(void *user, const char *pass, const char *text, size_t size)
{
    struct log *log = user;
    assert_int_equal(strlen(text), size);
    strcat(strcat(log->passes, pass), " ");
    log->saw_dead = strstr(text, "%dead") != NULL;
}

static void dumps_follow_passes(void **state)
{
    (void)state;
    struct log log = {.saw_dead = true};
    tssa_optimize_options options = {.dump = record, .dump_user = &log, .verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = parse();
    assert_null(pipeline_run(graph, 0, &pipeline));
    assert_string_equal(log.passes, "");
    assert_null(pipeline_run(graph, 1, &pipeline));
    assert_string_equal(log.passes, "separate_names rewrite_mutation block_propagation rename "
                                    "remove_update identity fold_shapes known_branches "
                                    "dead_code ");
    assert_false(log.saw_dead);
    ir_graph_free(graph);

    graph = parse();
    memset(&log, 0, sizeof log);
    options.dump_pass = "identity";
    assert_null(pipeline_run(graph, 1, &pipeline));
    assert_string_equal(log.passes, "identity ");
    assert_true(log.saw_dead);
    ir_graph_free(graph);
}

/* Not at level 1 either: ONNX Runtime makes mistakes of its own of what is left. */
static void no_known_branch_stays(void **state)
{
    static const char text[] =
        "graph @g opset(\"\": 18) ir_version(8) (%x: f32[2, 3]) -> (%y) { %s = Size(%x) "
        "%six = Constant() {value = i64[] 6} %c = Equal(%s, %six) "
        "%y = If(%c) { then_branch() { %a = Exp(%x) return(%a) } else_branch() { %b = "
        "Squeeze(%x) return(%b) } } return(%y) }";
    struct ir_graph *graph = NULL;
    (void)state;
    assert_null(ir_parse(&allocator_default, text, strlen(text), &graph));
    assert_null(ir_infer_graph(graph));
    assert_null(pipeline_run(graph, 1, NULL));
    assert_false(ir_block_has(graph->body, IR_OP_If));
    ir_graph_free(graph);
}

static void expect_refused(tssa_status *status, const char *message)
{
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    assert_string_equal(tssa_status_message(status), message);
    tssa_status_free(status);
}

/* Tables per id are as long as there are values, whatever passes have made and dropped. */
static void values_are_numbered_anew(void **state)
{
    (void)state;
    struct ir_graph *graph = parse();
    assert_null(pipeline_run(graph, 1, NULL));
    assert_null(ir_verify(graph));
    assert_int_equal(graph->body->params[0]->id, 0);
    assert_int_equal(graph->n_values, 6); /* %x, %c, %t, which is a constant now, %y, %a and %b */
    ir_graph_free(graph);
}

static void unknown_names_and_levels(void **state)
{
    (void)state;
    const char *names[] = {"dead_code", "nope"};
    tssa_optimize_options options = {.dump_pass = "none"};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = parse();
    expect_refused(pipeline_run_passes(graph, names, 2, NULL), "no pass is named \"nope\"");
    expect_refused(pipeline_run(graph, 1, &pipeline), "no pass is named \"none\"");
    expect_refused(pipeline_run(graph, 3, NULL), "there is no optimization level 3");
    ir_graph_free(graph);
}

static void the_table_is_complete(void **state)
{
    (void)state;
    size_t count;
    const struct pass *passes = pass_table(&count);
    assert_true(count >= 3);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(pass_find(passes[i].name), &passes[i]);
        assert_true(strlen(passes[i].summary) > 0);
    }
    assert_null(pass_find("nope"));
}

/* Text to optimized text on one allocator. */
static tssa_status *whole_way(const tssa_allocator *allocator)
{
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = NULL;
    struct text text;
    TRY(ir_parse(allocator, source, strlen(source), &graph));
    tssa_status *status = ir_verify(graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = pipeline_run(graph, 1, &pipeline);
    text_init(&text, allocator);
    if (!status) {
        ir_print_graph(graph, true, &text);
        status = text_string(&text) ? NULL : status_out_of_memory();
    }
    text_free(&text);
    ir_graph_free(graph);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(whole_way) > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dumps_follow_passes),       cmocka_unit_test(values_are_numbered_anew),
        cmocka_unit_test(unknown_names_and_levels),  cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(every_allocation_may_fail), cmocka_unit_test(no_known_branch_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
