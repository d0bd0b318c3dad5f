/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of one number throughout, made by ConstantOfShape in sessions, share their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/ir.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

#define WEIGHTS(name, shape, dtype, number)                                                        \
    "  %s" name " = Constant() {value = i64[2] [" shape "]}\n"                                     \
    "  %" name " = ConstantOfShape(%s" name ") {value = " dtype "[1] [" number "]}\n"

static const char text[] =
    "graph (%x: f32[4, 256], %z: f64[4, 256]) -> (%a as \"a\", %b as \"b\", %c as \"c\", %d as "
    "\"d\", %e as \"e\") {\n" WEIGHTS("u", "256, 512", "f32", "0.5")
        WEIGHTS("v", "256, 300", "f32", "0.5") WEIGHTS("w", "256, 300", "f32", "0.25")
            WEIGHTS("s", "256, 300", "f64", "0.5")
                WEIGHTS("t", "256, 600", "f32", "0.25") "  %a = MatMul(%x, %u)\n"
                                                        "  %b = MatMul(%x, %v)\n"
                                                        "  %c = MatMul(%x, %w)\n"
                                                        "  %d = MatMul(%z, %s)\n"
                                                        "  %e = MatMul(%x, %t)\n"
                                                        "  return(%a, %b, %c, %d, %e)\n"
                                                        "}\n";

static const struct tensor *weights_of(const struct ir_graph *graph, uint32_t result)
{
    const struct ir_value *product = ir_operand(ir_block_return(graph->body), result);
    const struct tensor *weights = ir_value_constant(ir_operand(product->op, 1));
    assert_non_null(weights);
    return weights;
}

static double number_at(const struct tensor *tensor, size_t i)
{
    return tensor->dtype == TSSA_DOUBLE ? ((const double *)tensor->data)[i]
                                        : (double)((const float *)tensor->data)[i];
}

static void test_shared(void **state)
{
    static const double numbers[] = {0.5, 0.5, 0.25, 0.5, 0.25};
    static const char *const names[] = {"infer", "fold_constants"};
    const tssa_optimize_options options = {.target = TSSA_TARGET_SESSION};
    struct evaluator evaluator;
    struct ir_graph *graph;
    (void)state;
    no_error(ir_parse(&allocator_default, text, sizeof text - 1, &graph));
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {
        .options = &options, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    no_error(pipeline_run_passes(graph, names, 2, &pipeline));
    for (uint32_t k = 0; k < 5; k++) {
        const struct tensor *weights = weights_of(graph, k);
        assert_int_equal(weights->dims[0], 256);
        for (size_t i = 0; i < tensor_count(weights); i++)
            assert_true(number_at(weights, i) == numbers[k]);
    }
    assert_int_equal(weights_of(graph, 1)->dims[1], 300);
    assert_ptr_equal(weights_of(graph, 0)->data, weights_of(graph, 1)->data);
    /* Another number, another type, and one that is larger than what there was. */
    for (uint32_t k = 2; k < 5; k++)
        assert_ptr_not_equal(weights_of(graph, 0)->data, weights_of(graph, k)->data);
    evaluator_free(&evaluator);
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
