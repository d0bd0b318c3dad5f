/* SPDX-License-Identifier: Apache-2.0 */
/* Results of constants (runtime/evaluate.h): large ones lie in the graph's arena at once, and too
 * large ones are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/evaluate.h"

static struct ir_op *constant_of(struct ir_graph *graph, struct tensor *tensor,
                                 struct ir_op *before)
{
    struct ir_op *constant = ir_constant_create(graph, tensor);
    assert_non_null(constant);
    ir_op_insert_before(constant, before);
    no_error(ir_infer_op(constant));
    return constant;
}

/* The elements of the last op but one of a graph of constants; NULL: it has no result. */
static const struct tensor *evaluate(const char *text, struct ir_graph **graph)
{
    struct evaluator evaluator;
    struct tensor *results[2] = {NULL};
    no_error(ir_parse(&allocator_default, text, strlen(text), graph));
    no_error(ir_infer_graph(*graph));
    /* What another evaluator left on the stack is nothing to begin with. */
    evaluator = (struct evaluator){
        .spare_of = *graph, .spare = &evaluator, .spare_bytes = EVALUATOR_MAX_BYTES};
    evaluator_init(&evaluator, &allocator_default);
    no_error(evaluator_run(&evaluator, *graph, ir_block_return((*graph)->body)->prev, results));
    evaluator_free(&evaluator);
    return results[0];
}

static void test_large(void **state)
{
    struct ir_graph *graph;
    (void)state;
    const struct tensor *y = evaluate("graph () -> (%y) {\n"
                                      "  %c = Constant() {value = f32[2, 1] [1, 2]}\n"
                                      "  %s = Constant() {value = i64[2] [2, 300000]}\n"
                                      "  %y = Expand(%c, %s)\n  return(%y)\n}\n",
                                      &graph);
    assert_non_null(y);
    assert_null(y->owner);
    assert_int_equal(tensor_count(y), 600000);
    for (int i = 0; i < 600000; i++)
        assert_true(((const float *)y->data)[i] == (i < 300000 ? 1 : 2));
    ir_graph_free(graph);
}

static void test_too_large(void **state)
{
    struct ir_graph *graph;
    (void)state;
    assert_null(evaluate("graph () -> (%y) {\n"
                         "  %c = Constant() {value = f32[1] [1]}\n"
                         "  %s = Constant() {value = i64[1] [16777217]}\n"
                         "  %y = Expand(%c, %s)\n  return(%y)\n}\n",
                         &graph));
    ir_graph_free(graph);
}

/* Memory of an arena is not given back: what a failed op would have lain in the next one has. */
static void test_failed(void **state)
{
    static const char text[] = "graph () -> (%y) {\n"
                               "  %c = Constant() {value = f32[2, 1] [1, 2]}\n"
                               "  %s = Constant() {value = i64[2] [2, 300000]}\n"
                               "  %x = Expand(%c, %s)\n"
                               "  %i = Constant() {value = i64[2] [0, 7]}\n"
                               "  %y = Gather(%x, %i) {axis = 0}\n  return(%y)\n}\n";
    struct ir_graph *graph;
    struct evaluator evaluator;
    struct tensor *results[1];
    (void)state;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    struct ir_op *gather = ir_block_return(graph->body)->prev, *expand = gather->prev->prev;
    evaluator_init(&evaluator, &allocator_default);
    no_error(evaluator_run(&evaluator, graph, expand, results));
    ir_op_set_operand(gather, 0, &constant_of(graph, results[0], gather)->results[0]);
    no_error(evaluator_run(&evaluator, graph, gather, results));
    assert_null(results[0]);
    const void *spare = evaluator.spare;
    assert_non_null(spare);
    no_error(evaluator_run(&evaluator, graph, gather, results));
    assert_ptr_equal(evaluator.spare, spare);
    no_error(evaluator_run(&evaluator, graph, expand, results));
    assert_ptr_equal(results[0]->data, spare);
    assert_null(evaluator.spare);
    evaluator_free(&evaluator);
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_too_large),
                                       cmocka_unit_test(test_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
