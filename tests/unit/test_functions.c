/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a model: inlining, attribute references, overloads, those that stay, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/graph_text.h"
#include "common/onnx_model.h"
#include "common/test_alloc.h"
#include "onnx/importer.h"

static void start(struct onnx_model *m)
{
    model_init(m, 10, 18);
    model_opset(m, "local", 1);
    model_input(m, m->graph, "x", TSSA_FLOAT, "3");
}

static void finish(struct onnx_model *m, const char *output)
{
    model_output(m, m->graph, output, TSSA_FLOAT, "3");
}

/* Called twice: names inside are made unique, outputs have the caller's names. The function's body
 * is of another opset than the model. */
static void test_inlined_twice(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    Onnx__FunctionProto *f = model_function(&m, "local", "Twice", "a", "b", 13);
    function_node(&m, f, "Add", "a,a", "t");
    function_node(&m, f, "Relu", "t", "b");
    model_node(&m, m.graph, "local:Twice", "x", "y");
    model_node(&m, m.graph, "local:Twice", "y", "z");
    finish(&m, "z");
    expect_body(&m, "  %t = Add@13(%x, %x): f32[3]\n"
                    "  %y = Relu@13(%t): f32[3]\n"
                    "  %t_1 = Add@13(%y, %y): f32[3]\n"
                    "  %z = Relu@13(%t_1): f32[3]\n"
                    "  return(%z)\n"
                    "}\n");
}

/* An output that is an input, an input that is left out, an output nobody wants. */
static void test_passing_through(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    Onnx__FunctionProto *f = model_function(&m, "local", "F", "a,low,high", "a,c", 18);
    function_node(&m, f, "Clip", "a,low,high", "c");
    model_initializer(&m, m.graph, model_tensor(&m, "top", TSSA_FLOAT, "", "\0\0\x80\x3f", 4));
    model_node(&m, m.graph, "local:F", "x,,top", ",clipped");
    model_node(&m, m.graph, "local:F", "clipped", "same");
    finish(&m, "same");
    expect_body(&m, "  %top = Constant@25() {value = f32[] 1}: f32[]\n"
                    "  %clipped = Clip@13(%x, _, %top): f32[3]\n"
                    "  %c = Clip@13(%clipped, _, _): f32[3]\n"
                    "  return(%clipped)\n"
                    "}\n");
}

/* References: to the call's attribute, to a default, to nothing; through a nested call and into a
 * subgraph. */
static void test_attribute_references(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    Onnx__FunctionProto *inner = model_function(&m, "local", "Inner", "a", "b", 18);
    model_attr_ref(&m, function_node(&m, inner, "LeakyRelu", "a", "t"), "alpha", "slope");
    model_attr_ref(&m, function_node(&m, inner, "Elu", "t", "b"), "alpha", "missing");
    Onnx__FunctionProto *outer = model_function(&m, "local", "Outer", "a", "b", 18);
    Onnx__NodeProto *call = function_node(&m, outer, "local:Inner", "a", "t");
    model_attr_ref(&m, call, "slope", "steep");
    /* Subgraphs see the function's attributes and values. */
    function_node(&m, outer, "ReduceMax", "t", "m");
    Onnx__NodeProto *to_bool = function_node(&m, outer, "Cast", "m", "c");
    model_attr_int(&m, to_bool, "to", TSSA_BOOL);
    Onnx__NodeProto *flat = function_node(&m, outer, "Squeeze", "c", "s");
    (void)flat;
    Onnx__GraphProto *branch = model_graph(&m, "branch");
    model_attr_ref(&m, model_node(&m, branch, "LeakyRelu", "t", "u"), "alpha", "flat");
    model_output(&m, branch, "u", -1, "");
    Onnx__NodeProto *choice = function_node(&m, outer, "If", "s", "b");
    model_attr_graph(&m, choice, "then_branch", branch);
    model_attr_graph(&m, choice, "else_branch", branch);
    Onnx__NodeProto holder = ONNX__NODE_PROTO__INIT;
    model_attr_float(&m, &holder, "flat", 0.25f);
    model_append(&m, &outer->attribute_proto, &outer->n_attribute_proto, holder.attribute[0]);
    model_append(&m, &outer->attribute, &outer->n_attribute, model_string(&m, "steep"));
    model_attr_float(&m, model_node(&m, m.graph, "local:Outer", "x", "y"), "steep", 0.5f);
    finish(&m, "y");
    expect_body(&m, "  %t = LeakyRelu@16(%x) {alpha = 0.5}: f32[3]\n"
                    "  %t_1 = Elu@6(%t): f32[3]\n"
                    "  %m = ReduceMax@18(%t_1): f32[1]\n"
                    "  %c = Cast@13(%m) {to = 9}: bool[1]\n"
                    "  %s = Squeeze@13(%c): bool[]\n"
                    "  %y = If@16(%s): f32[3] {\n"
                    "    then_branch() {\n"
                    "      %u = LeakyRelu@16(%t_1) {alpha = 0.25}: f32[3]\n"
                    "      return(%u)\n"
                    "    }\n"
                    "    else_branch() {\n"
                    "      %u_1 = LeakyRelu@16(%t_1) {alpha = 0.25}: f32[3]\n"
                    "      return(%u_1)\n"
                    "    }\n"
                    "  }\n"
                    "  return(%y)\n"
                    "}\n");
}

/* A subgraph that the call hands to the function keeps seeing the caller's names. */
static void test_graph_attribute(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    model_input(&m, m.graph, "c", TSSA_BOOL, "");
    Onnx__FunctionProto *f = model_function(&m, "local", "Choose", "c,x", "b", 18);
    Onnx__NodeProto *choice = function_node(&m, f, "If", "c", "b");
    model_attr_ref(&m, choice, "then_branch", "given");
    Onnx__GraphProto *other = model_graph(&m, "other");
    model_node(&m, other, "Neg", "x", "n");
    model_output(&m, other, "n", -1, "");
    model_attr_graph(&m, choice, "else_branch", other);
    Onnx__GraphProto *given = model_graph(&m, "given");
    model_node(&m, given, "Abs", "x", "n");
    model_output(&m, given, "n", -1, "");
    model_node(&m, m.graph, "Exp", "x", "e");
    model_attr_graph(&m, model_node(&m, m.graph, "local:Choose", "c,e", "y"), "given", given);
    finish(&m, "y");
    expect_body(&m, "  %e = Exp@13(%x): f32[3]\n"
                    "  %y = If@16(%c): f32[3] {\n"
                    "    then_branch() {\n"
                    "      %n = Abs@13(%x): f32[3]\n"
                    "      return(%n)\n"
                    "    }\n"
                    "    else_branch() {\n"
                    "      %n_1 = Neg@13(%e): f32[3]\n"
                    "      return(%n_1)\n"
                    "    }\n"
                    "  }\n"
                    "  return(%y)\n"
                    "}\n");
}

static void test_overloads(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    Onnx__FunctionProto *plain = model_function(&m, "local", "F", "a", "b", 18);
    function_node(&m, plain, "Neg", "a", "b");
    Onnx__FunctionProto *other = model_function(&m, "local", "F", "a", "b", 18);
    other->overload = model_string(&m, "abs");
    function_node(&m, other, "Abs", "a", "b");
    model_node(&m, m.graph, "local:F", "x", "p");
    model_node(&m, m.graph, "local:F", "p", "q")->overload = model_string(&m, "abs");
    finish(&m, "q");
    expect_body(&m, "  %p = Neg@13(%x): f32[3]\n"
                    "  %q = Abs@13(%p): f32[3]\n"
                    "  return(%q)\n"
                    "}\n");
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void test_cycles(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    Onnx__FunctionProto *f = model_function(&m, "local", "F", "a", "b", 18);
    function_node(&m, f, "local:F", "a", "b");
    finish(&m, "x"); /* not even called */
    expect_refused(&m, TSSA_MALFORMED, "function \"F\" calls itself");

    /* Through another one, from inside a subgraph. */
    start(&m);
    f = model_function(&m, "local", "F", "a", "b", 18);
    function_node(&m, f, "local:G", "a", "b");
    Onnx__FunctionProto *g = model_function(&m, "local", "G", "a", "b", 18);
    Onnx__GraphProto *branch = model_graph(&m, "branch");
    model_node(&m, branch, "local:F", "a", "t");
    model_output(&m, branch, "t", -1, "");
    model_attr_graph(&m, function_node(&m, g, "If", "a", "b"), "then_branch", branch);
    model_node(&m, m.graph, "local:F", "x", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED, "calls itself through others");
}

/* Function i calls function i + 1 `calls` times; the last one is empty but for an Identity. */
static void chain(struct onnx_model *m, int length, int calls)
{
    start(m);
    for (int i = 0; i < length; i++) {
        char name[16], next[32];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "local:F%d", i + 1);
        Onnx__FunctionProto *f = model_function(m, "local", name, "a", "b", 18);
        for (int c = 0; c < calls; c++) {
            char in[16], out[16];
            snprintf(in, sizeof in, c ? "t%d" : "a", c);
            snprintf(out, sizeof out, c + 1 < calls ? "t%d" : "b", c + 1);
            function_node(m, f, i + 1 < length ? next : "Identity", in, out);
        }
    }
    model_node(m, m->graph, "local:F0", "x", "y");
    finish(m, "y");
}

static void test_depth(void **state)
{
    (void)state;
    struct onnx_model m;
    chain(&m, 100, 1);
    expect_body(&m, "  %y = Identity@16(%x): f32[3]\n  return(%y)\n}\n");
    chain(&m, 5000, 1);
    expect_refused(&m, TSSA_LIMIT, "nested more than 128 deep");
}

static void test_expansion(void **state)
{
    (void)state;
    struct onnx_model m;
    chain(&m, 60, 4); /* 4^60 nodes */
    expect_refused(&m, TSSA_LIMIT, "inlining the model's functions takes too many nodes");
}

static void test_bad_functions(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    model_function(&m, "local", "F", "a", "b", 18);
    model_function(&m, "local", "F", "a", "b", 18);
    finish(&m, "x");
    expect_refused(&m, TSSA_MALFORMED, "function \"F\" is there twice");

    start(&m);
    model_function(&m, "local", "F", "a", "b", 18);
    model_node(&m, m.graph, "local:F", "x", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED, "node 0 (F): the function does not define its output \"b\"");

    start(&m);
    function_node(&m, model_function(&m, "local", "F", "a", "b", 18), "Neg", "a", "b");
    model_node(&m, m.graph, "local:F", "x,x", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED, "it has 2 inputs and the function takes 1");

    /* A body sees its own inputs only. */
    start(&m);
    function_node(&m, model_function(&m, "local", "F", "a", "b", 18), "Neg", "x", "b");
    model_node(&m, m.graph, "local:F", "x", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED, "node 0 (F): node 0 (Neg): input \"x\" is defined nowhere");

    /* And its own operator sets. */
    start(&m);
    function_node(&m, model_function(&m, "local", "F", "a", "b", 18), "com.acme:Neg", "a", "b");
    model_opset(&m, "com.acme", 1);
    model_node(&m, m.graph, "local:F", "x", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED,
                   "the function imports no operator set of domain \"com.acme\"");

    /* What a call leaves out may stay unused; it cannot be an output. */
    start(&m);
    model_function(&m, "local", "F", "a,b", "b", 18);
    model_node(&m, m.graph, "local:F", "x,", "y");
    finish(&m, "y");
    expect_refused(&m, TSSA_MALFORMED,
                   "graph output 0, \"y\", is an input that the function's call leaves out");
}

/* ---- Functions that stay --------------------------------------------------------------------- */

static const void *sample;
static size_t sample_size;

/*
 * `outer` calls `inner`, in a branch too; nothing calls `unused`; `magic` holds what nobody knows.
 */
static void make_sample(struct onnx_model *m, bool with_magic)
{
    start(m);
    model_input(m, m->graph, "p", TSSA_BOOL, "");
    Onnx__FunctionProto *inner = model_function(m, "local", "inner", "a", "b", 18);
    function_node(m, inner, "Softmax", "a", "b");
    Onnx__FunctionProto *outer = model_function(m, "local", "outer", "a", "b", 18);
    outer->doc_string = model_string(m, "what it is for");
    function_node(m, outer, "local:inner", "a", "t");
    function_node(m, outer, "Neg", "t", "b");
    function_node(m, model_function(m, "local", "unused", "a", "b", 18), "Abs", "a", "b");
    if (with_magic)
        function_node(m, model_function(m, "local", "magic", "a", "b", 18), "Magic", "a", "b");
    model_node(m, m->graph, "local:outer", "x", "u");
    Onnx__GraphProto *yes = model_graph(m, "yes"), *no = model_graph(m, "no");
    model_node(m, yes, "local:inner", "u", "v");
    model_output(m, yes, "v", TSSA_FLOAT, "3");
    model_node(m, no, with_magic ? "local:magic" : "Neg", "u", "w");
    model_output(m, no, "w", TSSA_FLOAT, "3");
    Onnx__NodeProto *branch = model_node(m, m->graph, "If", "p", "y");
    model_attr_graph(m, branch, "then_branch", yes);
    model_attr_graph(m, branch, "else_branch", no);
    finish(m, "y");
    sample = model_pack(m, &sample_size);
}

static struct ir_graph *import_sample(tssa_functions functions)
{
    const struct onnx_import_options options = {.functions = functions};
    struct ir_graph *graph = NULL;
    assert_null(onnx_import(&allocator_default, sample, sample_size, &options, &graph));
    return graph;
}

/* "outer inner" */
static const char *written_functions(const struct ir_graph *graph, char *names, size_t size)
{
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *again = export_import("functions", graph, NULL, &bytes);
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < again->n_functions; i++) {
        const struct ir_function *new = &again->functions[i];
        used += (size_t)snprintf(names + used, size - used, "%s%s", i ? " " : "", new->name);
        for (size_t k = 0; k < graph->n_functions; k++)
            if (strcmp(graph->functions[k].name, new->name) == 0) {
                assert_int_equal(graph->functions[k].definition_size, new->definition_size);
                assert_memory_equal(graph->functions[k].definition, new->definition,
                                    new->definition_size);
            }
    }
    ir_graph_free(again);
    text_free(&bytes);
    return names;
}

static void test_definitions(void **state)
{
    (void)state;
    struct onnx_model m;
    char names[100];
    make_sample(&m, true);
    struct ir_graph *graph = import_sample(TSSA_FUNCTIONS_KEEP);
    assert_string_equal(written_functions(graph, names, sizeof names), "inner outer unused magic");
    assert_int_equal(graph->functions[0].calls, 2);
    assert_string_equal(graph->body->first->opaque->name, "outer");
    assert_true(ir_op_is_pure(graph->body->first));
    assert_true(graph->functions[0].is_pure && graph->functions[1].is_pure);
    assert_false(graph->functions[3].is_pure);
    ir_graph_free(graph);
    /* What tssa does not know stays. */
    graph = import_sample(TSSA_FUNCTIONS_KNOWN);
    assert_string_equal(written_functions(graph, names, sizeof names), "magic");
    assert_string_equal(ir_function_unknown(&graph->functions[3])->name, "Magic");
    ir_graph_free(graph);
    graph = import_sample(TSSA_FUNCTIONS_INLINE);
    assert_string_equal(written_functions(graph, names, sizeof names), "");
    ir_graph_free(graph);
    model_free(&m);
}

/* A definition keeps its opset, at which its operators must mean what they do in the model. */
static void test_opsets(void **state)
{
    (void)state;
    struct onnx_model m;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    make_sample(&m, false);
    struct ir_graph *graph = import_sample(TSSA_FUNCTIONS_KEEP);
    const struct output_sink sink = text_sink(&bytes);
    tssa_status *status = onnx_export(graph, &(struct onnx_export_options){.opset = 12}, &sink);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    assert_non_null(strstr(tssa_status_message(status), "function \"inner\" stays a function"));
    tssa_status_free(status);
    assert_null(onnx_export(graph, &(struct onnx_export_options){.opset = 17}, &sink));
    ir_graph_free(graph);
    text_free(&bytes);
    model_free(&m);
}

/* In the place of an operator it would take the nodes that passes make. */
static void test_replaced_operators(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m);
    function_node(&m, model_function(&m, "", "Neg", "a", "b", 18), "Abs", "a", "b");
    model_node(&m, m.graph, "Neg", "x", "y");
    finish(&m, "y");
    sample = model_pack(&m, &sample_size);
    struct ir_graph *graph = import_sample(TSSA_FUNCTIONS_KEEP);
    char names[100];
    assert_string_equal(written_functions(graph, names, sizeof names), "");
    assert_int_equal(graph->body->first->info->id, IR_OP_Abs);
    ir_graph_free(graph);
    model_free(&m);
}

static tssa_status *keep_sample(const tssa_allocator *allocator)
{
    const struct onnx_import_options options = {.functions = TSSA_FUNCTIONS_KEEP};
    struct ir_graph *graph = NULL;
    struct text bytes;
    TRY(onnx_import(allocator, sample, sample_size, &options, &graph));
    text_init(&bytes, &allocator_default);
    const struct output_sink sink = text_sink(&bytes);
    tssa_status *status = onnx_export(graph, NULL, &sink);
    text_free(&bytes);
    ir_graph_free(graph);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct onnx_model m;
    make_sample(&m, true);
    assert_true(test_alloc_sweep(keep_sample) > 50);
    model_free(&m);
}

/* Whatever the bytes are, what is read can be written and read again. */
static void test_mutations(void **state)
{
    (void)state;
    struct onnx_model m;
    make_sample(&m, true);
    uint8_t *mutant = arena_alloc(&m.arena, sample_size);
    const uint8_t *original = sample;
    uint64_t random = 88172645463325252u;
    assert_non_null(mutant);
    sample = mutant;
    for (size_t round = 0; round < 5000; round++) {
        memcpy(mutant, original, sample_size);
        for (int flips = 0; flips <= (int)(round % 3); flips++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            mutant[random % sample_size] ^= (uint8_t)(1u << (random >> 32) % 8);
        }
        tssa_status_free(keep_sample(&allocator_default));
    }
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inlined_twice),
        cmocka_unit_test(test_passing_through),
        cmocka_unit_test(test_attribute_references),
        cmocka_unit_test(test_graph_attribute),
        cmocka_unit_test(test_overloads),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_bad_functions),
        cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_opsets),
        cmocka_unit_test(test_replaced_operators),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
