/* SPDX-License-Identifier: Apache-2.0 */
/* How messages name an op: cut to fit, and between characters (ir_op_describe). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "ir/ir.h"

#define E_ACUTE "\xc3\xa9"
#define TEN(x) x x x x x x x x x x

static void op_descriptions(void **state)
{
    static const struct ir_opaque opaque = {
        .domain = "com.acme", .name = TEN(TEN(E_ACUTE)), .overload = "", .opset = 1};
    struct ir_graph *graph = ir_graph_create(&allocator_default);
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Relu), 1, 1);
    char text[200];
    (void)state;
    assert_non_null(op);
    ir_op_describe(op, text, sizeof text);
    assert_string_equal(text, "Relu (node 0)");
    op->name = "conv1/relu";
    ir_op_describe(op, text, sizeof text);
    assert_string_equal(text, "Relu (node \"conv1/relu\")");

    op->name = "a" TEN(TEN(E_ACUTE));
    for (size_t size = 128; size <= sizeof text; size++) {
        ir_op_describe(op, text, size);
        size_t length = strlen(text);
        assert_in_range(length, size - 3, size - 1);
        assert_true(utf8_valid(text, length));
        assert_string_equal(text + length - 2, "\")");
    }
    op->info = ir_op_info(IR_OP_opaque);
    op->opaque = &opaque;
    ir_op_describe(op, text, 128);
    assert_true(utf8_valid(text, strlen(text)));
    assert_non_null(strstr(text, E_ACUTE " (node \"a" E_ACUTE));
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(op_descriptions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
