/* SPDX-License-Identifier: Apache-2.0 */
/* Copying, moving and rebuilding ops and blocks (ir/clone.h, ir/rebuild.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/rebuild.h"
#include "ir/verifier.h"

static const char looped[] = "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> "
                             "(%a as \"a\", %s as \"s\") {\n"
                             "  %cond = Constant@13() {value = bool[] true}: bool[]\n"
                             "  %a, %b, %s, %t = Loop@16(%n, %cond, %x, %x): f32[N], f32[N], "
                             "f32[trips#1, N], f32[trips#1, N] {\n"
                             "    body(%i: i64[], %c: bool[], %p: f32[N], %q: f32[N]) {\n"
                             "      %p1 = Add@14(%p, %x): f32[N]\n"
                             "      %y = If@16(%c): f32[N] {\n"
                             "        then_branch() {\n"
                             "          return(%p1)\n"
                             "        }\n"
                             "        else_branch() {\n"
                             "          %e = Neg@13(%p1): f32[N]\n"
                             "          return(%e)\n"
                             "        }\n"
                             "      }\n"
                             "      return(%c, %y, %q, %p, %y)\n"
                             "    }\n"
                             "  }\n"
                             "  return(%a, %s)\n"
                             "}\n";

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    return graph;
}

static struct ir_op *find(const struct ir_block *block, enum ir_op_id id)
{
    struct ir_op *op = block->first;
    while (op && !ir_op_is(op, id))
        op = op->next;
    assert_non_null(op);
    return op;
}

/* Everything after the header. */
static void expect(struct ir_graph *graph, const char *body)
{
    struct text text;
    no_error(ir_verify(graph));
    text_init(&text, &allocator_default);
    ir_print_graph(graph, false, &text);
    const char *string = text_string(&text);
    assert_non_null(string);
    assert_string_equal(strstr(string, "{\n"), body);
    text_free(&text);
    ir_graph_free(graph);
}

static void copies_have_new_types_and_mapped_operands(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(looped);
    struct ir_op *loop = find(graph->body, IR_OP_Loop);
    struct ir_block *body = loop->blocks[0];
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, graph);
    struct ir_value *carried = ir_operand(loop, 2);
    for (int i = 0; i < 2; i++) {
        ir_cloner_reset(&cloner);
        assert_true(ir_cloner_map(&cloner, body->params[1], ir_operand(loop, 1)));
        assert_true(ir_cloner_map(&cloner, body->params[2], carried));
        no_error(ir_clone_ops(&cloner, body, loop));
        carried = ir_cloner_get(&cloner, ir_operand(ir_block_return(body), 1));
    }
    ir_cloner_free(&cloner);
    ir_value_replace(&loop->results[0], carried);
    ir_value_replace(&loop->results[2], carried);
    ir_release_blocks(loop);
    ir_op_remove(loop);
    expect(graph, "{\n"
                  "  %cond = Constant@13() {value = bool[] true}: bool[]\n"
                  "  %0 = Add@14(%x, %x): f32[N]\n"
                  "  %1 = If@16(%cond): f32[N] {\n"
                  "    then_branch() {\n"
                  "      return(%0)\n"
                  "    }\n"
                  "    else_branch() {\n"
                  "      %2 = Neg@13(%0): f32[N]\n"
                  "      return(%2)\n"
                  "    }\n"
                  "  }\n"
                  "  %3 = Add@14(%1, %x): f32[N]\n"
                  "  %4 = If@16(%cond): f32[N] {\n"
                  "    then_branch() {\n"
                  "      return(%3)\n"
                  "    }\n"
                  "    else_branch() {\n"
                  "      %5 = Neg@13(%3): f32[N]\n"
                  "      return(%5)\n"
                  "    }\n"
                  "  }\n"
                  "  return(%4, %4)\n"
                  "}\n");
}

static void moved_ops_keep_names(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(looped);
    struct ir_op *loop = find(graph->body, IR_OP_Loop);
    struct ir_op *branch = find(loop->blocks[0], IR_OP_If);
    struct ir_block *chosen = ir_op_block(branch, "else_branch");
    struct ir_value *result = ir_operand(ir_block_return(chosen), 0);
    ir_move_ops(chosen, branch);
    ir_value_replace(&branch->results[0], result);
    ir_release_blocks(branch);
    ir_op_remove(branch);
    expect(graph, "{\n"
                  "  %cond = Constant@13() {value = bool[] true}: bool[]\n"
                  "  %a, %b, %s, %t = Loop@16(%n, %cond, %x, %x): f32[N], f32[N], "
                  "f32[trips#3, N], f32[trips#3, N] {\n"
                  "    body(%i: i64[], %c: bool[], %p: f32[N], %q: f32[N]) {\n"
                  "      %p1 = Add@14(%p, %x): f32[N]\n"
                  "      %e = Neg@13(%p1): f32[N]\n"
                  "      return(%c, %e, %q, %p, %e)\n"
                  "    }\n"
                  "  }\n"
                  "  return(%a, %s)\n"
                  "}\n");
}

static void dropped_results_take_their_carried_values_along(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(looped);
    const bool drop[] = {false, true, false, true};
    assert_true(ir_control_drop_results(find(graph->body, IR_OP_Loop), drop));
    no_error(ir_infer_graph(graph));
    expect(graph, "{\n"
                  "  %cond = Constant@13() {value = bool[] true}: bool[]\n"
                  "  %a, %s = Loop@16(%n, %cond, %x): f32[N], f32[trips#5, N] {\n"
                  "    body(%i: i64[], %c: bool[], %p: f32[N]) {\n"
                  "      %p1 = Add@14(%p, %x): f32[N]\n"
                  "      %y = If@16(%c): f32[N] {\n"
                  "        then_branch() {\n"
                  "          return(%p1)\n"
                  "        }\n"
                  "        else_branch() {\n"
                  "          %e = Neg@13(%p1): f32[N]\n"
                  "          return(%e)\n"
                  "        }\n"
                  "      }\n"
                  "      return(%c, %y, %p)\n"
                  "    }\n"
                  "  }\n"
                  "  return(%a, %s)\n"
                  "}\n");
}

static void scan_outputs_drop_their_axes(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(
        "graph @g opset(\"\": 18) ir_version(8) (%x: f32[N], %m: f32[3, N]) -> (%z as \"z\") {\n"
        "  %a, %y, %z = Scan@16(%x, %m) {num_scan_inputs = 1, scan_output_axes = [0, 1], "
        "scan_output_directions = [1, 0]} {\n"
        "    body(%p: f32[N], %r: f32[N]) {\n"
        "      return(%p, %r, %r)\n"
        "    }\n"
        "  }\n"
        "  return(%z)\n"
        "}\n");
    const bool drop[] = {true, true, false};
    assert_true(ir_control_drop_results(find(graph->body, IR_OP_Scan), drop));
    no_error(ir_infer_graph(graph));
    expect(graph, "{\n"
                  "  %z = Scan@16(%m) {num_scan_inputs = 1, scan_output_axes = [1], "
                  "scan_output_directions = [0]}: f32[N, 3] {\n"
                  "    body(%r: f32[N]) {\n"
                  "      return(%r)\n"
                  "    }\n"
                  "  }\n"
                  "  return(%z)\n"
                  "}\n");
}

static void parameters_and_results_can_be_added(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(looped);
    struct ir_op *loop = find(graph->body, IR_OP_Loop);
    struct ir_block *body = loop->blocks[0];
    assert_true(ir_op_add_operand(loop, ir_operand(loop, 2)));
    assert_true(ir_block_set_params(body, 5, (const uint32_t[]){0, 1, 2, 3, IR_FRESH}));
    struct ir_op *ret = ir_block_return(body);
    struct ir_value *returned[6];
    for (uint32_t i = 0; i < 5; i++)
        returned[i + (i > 2)] = ir_operand(ret, i);
    returned[3] = body->params[4];
    assert_true(ir_op_set_operands(ret, 6, returned));
    assert_true(ir_op_set_results(loop, 5, (const uint32_t[]){0, 1, IR_FRESH, 2, 3}));
    no_error(ir_infer_graph(graph));
    no_error(ir_verify(graph));
    assert_ptr_equal(loop->results[2].type, graph->body->params[1]->type);
    assert_string_equal(loop->results[3].name, "s");
    assert_ptr_equal(ir_operand(ir_block_return(graph->body), 1), &loop->results[3]);
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_have_new_types_and_mapped_operands),
        cmocka_unit_test(moved_ops_keep_names),
        cmocka_unit_test(dropped_results_take_their_carried_values_along),
        cmocka_unit_test(scan_outputs_drop_their_axes),
        cmocka_unit_test(parameters_and_results_can_be_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
