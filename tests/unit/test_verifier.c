/* SPDX-License-Identifier: Apache-2.0 */
/* Each invariant of the IR, broken on purpose, is told with the offending op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/parser.h"
#include "ir/verifier.h"

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, text, strlen(text), &graph);
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
    return graph;
}

static void expect_error(struct ir_graph *graph, tssa_code code, const char *message)
{
    tssa_status *status = ir_verify(graph);
    if (!status || !strstr(tssa_status_message(status), message))
        print_error("expected: %s\ngot: %s\n", message, tssa_status_message(status));
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), message));
    assert_null(strchr(tssa_status_message(status), '\n'));
    tssa_status_free(status);
    ir_graph_free(graph);
}

/* ---- What text can say ----------------------------------------------------------------------- */

static const struct {
    const char *text, *message;
} texts[] = {
    {"graph (%x: f32[]) -> () { return() %y = Neg(%x) return() }",
     "return is not the last op of its block, in: return()"},
    {"graph (%x: f32[]) -> (%y) { %y = Neg(%x, %x): f32[] return(%y) }",
     "2 operands, but at most 1 are allowed, in: %y = Neg@13(%x, %x): f32[]"},
    {"graph (%x: f32[]) -> (%y) { %y = Add(%x): f32[] return(%y) }",
     "1 operands, but at least 2 are needed, in: %y = Add@14(%x): f32[]"},
    {"graph (%x: f32[]) -> (%y) { %y = Add(%x, _) return(%y) }", "operand 1 is missing"},
    {"graph (%x: f32[]) -> (%y) { %y, %z = Neg(%x) return(%y) }", "2 results, but at most 1"},
    {"graph (%x: f32[]) -> (%y) { %y = Neg@2(%x) return(%y) }", "the operator has no version 2"},
    {"graph (%c: bool[]) -> (%y) { %y = If(%c) { then_branch() { %a = Constant() {value = i64[] 1} "
     "return(%a) } else_branch() { return(%a) } } return(%y) }",
     "operand 0 is defined in a block that does not enclose its use, in: return(%a)"},
    {"graph (%c: bool[]) -> () { Not(%c) return() }", "0 results, but at least 1 are needed"},
    {"graph (%c: bool[]) -> (%y) { %y = access(%c) return(%y) }", "there is no rule"},
    {"graph (%c: bool[]) -> (%y) { %y = Not(%c) {rule = steps[]} return(%y) }",
     "only view, access and assign have a rule"},
    {"graph (%c: bool[2]) -> (%y) { %y = access(%c) {rule = [select(0, $0)]} return(%y) }",
     "the rule has 1 operands, the op 0"},
    {"graph (%c: bool[]) -> (%y) { %y = If(%c) { then_branch() { return(%c) } } return(%y) }",
     "1 blocks, but at least 2 are needed"},
    {"graph (%c: bool[]) -> (%y) { %y = If(%c) { then_branch() { return(%c) } x() { return(%c) } } "
     "return(%y) }",
     "there is no block \"else_branch\""},
    {"graph (%c: bool[]) -> (%y) { %y = If(%c) { then_branch() { return() } else_branch() { "
     "return(%c) } } return(%y) }",
     "block \"then_branch\" returns 0 values, not 1"},
    {"graph (%c: bool[]) -> (%y) { %y = If(%c): f32[] { then_branch() { return(%c) } "
     "else_branch() { return(%c) } } return(%y) }",
     "block \"then_branch\" returns another type as result 0"},
    {"graph (%c: bool[], %x: f32[3], %z: f32[2]) -> (%y) { %y = If(%c): f32[] { then_branch() { "
     "return(%x) } else_branch() { return(%z) } } return(%y) }",
     "block \"else_branch\" returns another type as result 0"}, /* one of them may */
    {"graph (%c: bool[]) -> (%y) { %y = If(%c) { then_branch() { %q = Not(%c) } else_branch() { "
     "return(%c) } } return(%y) }",
     "block \"then_branch\" does not end in return"},
    {"graph (%x: f32[]) -> (%y) { %y = Loop(_, _, %x) { body(%i: i64[], %c: bool[]) { return(%c, "
     "%x) "
     "} } return(%y) }",
     "block \"body\" has 2 parameters, not 3"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) return(%y) }",
     "0 blocks, but at least 1 are needed, in: %y = fuse(%x)"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { a(%v: f32[]) { return(%v) } } return(%y) }",
     "there is no block \"body\""},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(_) { body(%v: f32[]) { return(%v) } } return(%y) }",
     "operand 0 is missing"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body() { return(%x) } } return(%y) }",
     "block \"body\" has 0 parameters, not 1"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body(%v: f32[]) { return(%v, %v) } } return(%y) "
     "}",
     "block \"body\" returns 2 values, not 1"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body(%v: f32[]) { return(%x) } } return(%y) }",
     "the block of a fuse op captures a value, in: return(%x)"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body(%v: f32[]) { %s = Add(%v, %x) return(%s) } "
     "} "
     "return(%y) }",
     "the block of a fuse op captures a value, in: %s = Add@14(%v, %x)"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body(%v: f32[]) { %s = opaque(\"d\", \"M\", "
     "1)(%v) "
     "return(%s) } } return(%y) }",
     "an op with effects is in the block of a fuse op, in: %s = opaque(\"d\", \"M\", 1)(%v)"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x) { body(%v: f32[]) { %s = fuse(%v) { body(%w: "
     "f32[]) "
     "{ return(%w) } } return(%s) } } return(%y) }",
     "an op with blocks is in the block of a fuse op, in: %s = fuse(%v)"},
    {"graph (%x: f32[]) -> (%y) { %y = fuse(%x): i64[] { body(%v: f32[]) { return(%v) } } "
     "return(%y) }",
     "block \"body\" returns another type as result 0"},
    {"graph (%x: f32[2]) -> (%y) { %w = view(%x) {rule = [select(0, 0)]} %y = fuse(%x) { "
     "body(%v: f32[2]) { %n = Neg(%v) return(%n) } } return(%y) }",
     "operand 0 may change"},
    {"graph (%x: f32[]) -> (%y) { %y = Scan(%x) {num_scan_inputs = 2} { body(%v: f32[]) { "
     "return(%v) "
     "} } return(%y) }",
     "num_scan_inputs does not fit"},
    {"graph (%x: f32[]) -> (%y) { %y = Neg(%x) { body() { return() } } return(%y) }",
     "1 blocks, but at most 0 are allowed"},
};

static void broken_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_error(parse(texts[i].text), TSSA_INTERNAL, texts[i].message);
}

static void element_types(void **state)
{
    (void)state;
    expect_error(parse("graph (%x: str[]) -> (%y) { %y = Neg(%x): str[] return(%y) }"),
                 TSSA_UNSUPPORTED,
                 "operand 0 cannot have element type str, in: %y = Neg@13(%x): str[]");
}

/* ---- What only code can break ---------------------------------------------------------------- */

static struct ir_graph *sample(void)
{
    return parse(
        "graph (%x: f32[]) -> (%z) { %y = Neg(%x): f32[] %z = Add(%y, %x): f32[] return(%z) }");
}

static void use_before_definition(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    struct ir_op *neg = graph->body->first, *add = neg->next;
    ir_op_set_operand(neg, 0, &add->results[0]);
    expect_error(graph, TSSA_INTERNAL,
                 "operand 0 is used before it is defined, in: %y = Neg@13(%z): f32[]");
}

static void use_of_removed_op(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    struct ir_op *neg = graph->body->first, *add = neg->next;
    struct ir_op *lost = ir_op_create(graph, neg->info, 1, 1);
    ir_op_set_operand(add, 0, &lost->results[0]);
    expect_error(graph, TSSA_INTERNAL,
                 "operand 0 is not defined in the graph, in: %z = Add@14(%?, %x)");

    graph = sample();
    neg = graph->body->first;
    lost = ir_op_create(graph, neg->info, 1, 1);
    ir_op_set_operand(lost, 0, graph->body->params[0]);
    expect_error(graph, TSSA_INTERNAL, "is used by an op that is not in the graph");
}

static void unwanted_results_have_no_uses(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    graph->body->first->results[0].wanted = false;
    expect_error(graph, TSSA_INTERNAL, "operand 0 is an unwanted result");
}

static void broken_use_lists(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    struct ir_op *neg = graph->body->first;
    neg->results[0].uses = NULL;
    expect_error(graph, TSSA_INTERNAL, "operand 0 is not in its value's use list");

    graph = sample();
    graph->body->first->next->operands[0].value = graph->body->params[0];
    expect_error(graph, TSSA_INTERNAL, "the use list of value");

    graph = sample();
    graph->body->first->next->operands[0].user = graph->body->first;
    expect_error(graph, TSSA_INTERNAL, "an operand slot belongs to another op");
}

static void broken_lists(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    graph->body->first->next->prev = NULL;
    expect_error(graph, TSSA_INTERNAL, "its links to its block or its neighbours are wrong");

    graph = sample();
    graph->body->first->next->next = graph->body->first; /* a cycle */
    expect_error(graph, TSSA_INTERNAL, "its links to its block or its neighbours are wrong");

    graph = sample();
    graph->body->last = graph->body->first;
    expect_error(graph, TSSA_INTERNAL, "a block's last op is not at the end of its list");
}

static void broken_ids(void **state)
{
    (void)state;
    struct ir_graph *graph = sample();
    graph->body->first->id = graph->body->last->id;
    expect_error(graph, TSSA_INTERNAL, "its id is out of range or used twice");

    graph = sample();
    graph->body->first->results[0].id = graph->n_values;
    expect_error(graph, TSSA_INTERNAL, "is out of range or used twice");

    graph = sample();
    graph->body->first->results[0].name = graph->body->params[0]->name;
    expect_error(graph, TSSA_INTERNAL, "two values are named \"x\"");

    graph = sample();
    graph->body->first->results[0].type = NULL;
    expect_error(graph, TSSA_INTERNAL, "has no type");

    graph = sample();
    graph->body->first->results[0].index = 1;
    expect_error(graph, TSSA_INTERNAL, "a result does not know its op or its index");

    graph = sample();
    ir_op_remove(graph->body->last);
    expect_error(graph, TSSA_INTERNAL, "the graph does not end in return");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_texts),
        cmocka_unit_test(element_types),
        cmocka_unit_test(use_before_definition),
        cmocka_unit_test(use_of_removed_op),
        cmocka_unit_test(unwanted_results_have_no_uses),
        cmocka_unit_test(broken_use_lists),
        cmocka_unit_test(broken_lists),
        cmocka_unit_test(broken_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
