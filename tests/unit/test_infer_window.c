/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of pooling, Resize, TopK, normalizations and losses with symbolic dims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer.h"
#include "ir/parser.h"

/* The type of result `index` of the last op before return. */
static void check(const char *params, const char *ops, uint32_t index, const char *expected)
{
    char source[1024];
    snprintf(source, sizeof source,
             "graph @g opset(\"\": 23) ir_version(10) (%s) -> (%%y) {\n%s\n  return(%%y)\n}\n",
             params, ops);
    struct ir_graph *graph;
    tssa_status *status = ir_parse(&allocator_default, source, strlen(source), &graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (status)
        fail_msg("%s", tssa_status_message(status));
    struct text text;
    text_init(&text, &allocator_default);
    type_print(ir_block_return(graph->body)->prev->results[index].type, &text);
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
    ir_graph_free(graph);
}

static void test_pool(void **state)
{
    (void)state;
    const char *x = "%x: f32[N, 3, H, 9]";
    check(x, "  %y = MaxPool@22(%x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}",
          0, "f32[N, 3, ceildiv(H, 2), 5]");
    check(x,
          "  %y = MaxPool@22(%x) {kernel_shape = [2, 2], strides = [1, 2], auto_pad = "
          "\"SAME_UPPER\"}",
          0, "f32[N, 3, H, 5]");
    check(x, "  %y = AveragePool@22(%x) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1}",
          0, "f32[N, 3, floordiv(H, 2), 4]");
    check(x,
          "  %y = AveragePool@22(%x) {kernel_shape = [1, 2], strides = [3, 3], pads = [0, 0, 0, "
          "2], ceil_mode = 1}",
          0, "f32[N, 3, min(floordiv(H + 1, 3) + 1, ceildiv(H, 3)), 3]");
    check(x, "  %y = MaxPool@22(%x) {kernel_shape = [1, 10], strides = [1, 2], ceil_mode = 1}", 0,
          "f32[N, 3, H, 1]");
    check(x, "  %y = MaxPool@22(%x) {kernel_shape = [1, 11], strides = [1, 2], ceil_mode = 1}", 0,
          "f32[N, 3, H, 0]");
    check(x, "  %y, %i = MaxPool@22(%x) {kernel_shape = [1, 9]}", 1, "i64[N, 3, H, 1]");
    check(x, "  %y = GlobalMaxPool@22(%x)", 0, "f32[N, 3, 1, 1]");
}

static void test_resize(void **state)
{
    (void)state;
    const char *x = "%x: f32[N, 3, H, 9]";
    check(x, "  %s = Constant() {value = f32[4] [1, 1, 2, 0.5]}\n  %y = Resize@19(%x, _, %s)", 0,
          "f32[N, 3, 2*H, 4]");
    check(x, "  %s = Constant() {value = f32[1] [0.5]}\n  %y = Resize@19(%x, _, %s) {axes = [2]}",
          0, "f32[N, 3, floordiv(H, 2), 9]");
    check(x,
          "  %s = Constant() {value = i64[2] [7, 8]}\n  %y = Resize@19(%x, _, _, %s) {axes = [2, "
          "-1]}",
          0, "f32[N, 3, 7, 8]");
}

static void test_others(void **state)
{
    (void)state;
    const char *x = "%x: f32[N, 6], %t: i64[N]";
    check(x, "  %k = Constant() {value = i64[1] [4]}\n  %y, %i = TopK@11(%x, %k)", 1, "i64[N, 4]");
    check(x, "  %y, %mean = LayerNormalization@17(%x, %x)", 1, "f32[N, 1]");
    check(x, "  %y, %mask = Dropout@13(%x)", 1, "bool[N, 6]");
    check(x, "  %y = NegativeLogLikelihoodLoss@22(%x, %t) {reduction = \"none\"}", 0, "f32[N]");
    check(x, "  %y, %p = SoftmaxCrossEntropyLoss@13(%x, %t)", 0, "f32[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
