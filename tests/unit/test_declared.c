/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model declares of its values: the shape of a stack of no iterations, outputs that are
 * something else than they are declared, the numbers of a Loop as tensors of one element, a trip
 * count that is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/graph_text.h"
#include "common/no_error.h"
#include "common/onnx_model.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tssa.h"

/* ---- Loops ----------------------------------------------------------------------------------- */

/*
 * The outputs of a Loop over the iterations `m`, which carries x and stacks what `stacked` makes.
 */
static void loop_model(struct onnx_model *m, const char *x_dims, const char *number_dims,
                       Onnx__GraphProto **body)
{
    model_init(m, 8, 18);
    model_input(m, m->graph, "x", TSSA_FLOAT, x_dims);
    model_input(m, m->graph, "m", TSSA_INT64, "");
    model_input(m, m->graph, "shape", TSSA_INT64, "2");
    model_node(m, m->graph, "Reshape", "x,shape", "outer");
    *body = model_graph(m, "body");
    model_input(m, *body, "i", TSSA_INT64, number_dims);
    model_input(m, *body, "c", TSSA_BOOL, number_dims);
    model_input(m, *body, "s", TSSA_FLOAT, "*");
    model_node(m, *body, "Identity", "c", "more");
    model_node(m, *body, "Softmax", "s", "next");
    model_output(m, *body, "more", TSSA_BOOL, number_dims);
    model_output(m, *body, "next", TSSA_FLOAT, "*");
    Onnx__NodeProto *loop = model_node(m, m->graph, "Loop", "m,,x", "y,stack");
    model_attr_graph(m, loop, "body", *body);
    model_output(m, m->graph, "stack", -1, "");
}

static tssa_value *tensor(tssa_context *context, tssa_dtype dtype, int rank, const int64_t *dims,
                          const void *data, size_t size)
{
    tssa_value *value;
    no_error(tssa_tensor_create(context, dtype, rank, dims, &value));
    memcpy(tssa_tensor_data(value), data, size);
    return value;
}

/* The shape of the stack as text: of the model as it is, optimized, and written and read again. */
static void run_loop(const void *data, size_t size, int64_t trips, int level, struct text *shape)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t two_three[] = {2, 3};
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_value *output = NULL;
    const tssa_optimize_options options = {.struct_size = sizeof options, .level = level};
    no_error(tssa_context_create(NULL, &context));
    no_error(tssa_model_load_memory(context, data, size, NULL, &model));
    no_error(tssa_model_optimize(model, &options));
    no_error(tssa_session_create(model, NULL, &session));
    tssa_value *inputs[] = {
        tensor(context, TSSA_FLOAT, 2, two_three, x, sizeof x),
        tensor(context, TSSA_INT64, 0, NULL, &trips, sizeof trips),
        tensor(context, TSSA_INT64, 1, (const int64_t[]){2}, two_three, sizeof two_three)};
    no_error(tssa_session_run(session, 3, inputs, 1, &output));
    text_clear(shape);
    for (int i = 0; i < tssa_tensor_rank(output); i++)
        text_printf(shape, "%lld ", (long long)tssa_tensor_dims(output)[i]);
    for (int i = 0; i < 3; i++)
        tssa_value_free(inputs[i]);
    tssa_value_free(output);
    tssa_session_free(session);
    tssa_model_free(model);
    tssa_context_free(context);
}

static void expect_stack(struct onnx_model *m, int64_t trips, const char *expected)
{
    struct ir_graph *graph;
    struct text shape, bytes;
    size_t size;
    text_init(&shape, &allocator_default);
    text_init(&bytes, &allocator_default);
    const void *data = model_pack(m, &size);
    for (int level = 0; level <= 2; level++) {
        run_loop(data, size, trips, level, &shape);
        assert_string_equal(text_string(&shape), expected);
    }
    no_error(model_import(m, &graph));
    struct ir_graph *again = export_import("stack", graph, NULL, &bytes);
    run_loop(bytes.data, bytes.size, trips, 0, &shape);
    assert_string_equal(text_string(&shape), expected);
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&bytes);
    text_free(&shape);
    model_free(m);
}

/* Sizes that only a run tells are those that the model declares. */
static void stacks_of_nothing(void **state)
{
    (void)state;
    struct onnx_model m;
    Onnx__GraphProto *body;
    for (int trips = 0; trips < 3; trips += 2) {
        loop_model(&m, "N,3", "", &body);
        model_node(&m, body, "Reshape", "s,shape", "q");
        model_node(&m, body, "Identity", "q", "o");
        model_output(&m, body, "o", TSSA_FLOAT, "2,3");
        expect_stack(&m, trips, trips ? "2 2 3 " : "0 2 3 ");
    }
    loop_model(&m, "N,3", "", &body);
    model_node(&m, body, "Identity", "s", "o");
    model_output(&m, body, "o", TSSA_FLOAT, "2,3");
    expect_stack(&m, 0, "0 2 3 ");
    loop_model(&m, "N,3", "", &body); /* of a value from outside */
    model_node(&m, body, "Identity", "outer", "o");
    model_output(&m, body, "o", TSSA_FLOAT, "2,3");
    expect_stack(&m, 0, "0 2 3 ");
}

/* What is declared of an element in a Loop over a sequence is declared of it in the SequenceMap. */
static void elements_of_maps(void **state)
{
    (void)state;
    static const char text[] =
        "graph @g opset(\"\": 18) ir_version(8) (%a: seq(f32[*])) -> (%y as \"y\") {\n"
        "%n = SequenceLength(%a)\n%e = SequenceEmpty() {dtype = 1}\n"
        "%y = Loop(%n, _, %e) {\nbody(%i: i64[], %c: bool[], %p: seq(f32[*])) {\n"
        "%s = SequenceAt(%a, %i): f32[4]\n%t = Softmax(%s)\n%q = SequenceInsert(%p, %t)\n"
        "return(%c, %q)\n}\n}\nreturn(%y)\n}\n";
    const char *const passes[] = {"sequence_maps"};
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(pipeline_run_passes(graph, passes, 1, &pipeline));
    const struct ir_op *map = ir_block_return(graph->body)->prev;
    while (map && !ir_op_is(map, IR_OP_SequenceMap))
        map = map->prev;
    assert_non_null(map);
    assert_non_null(map->blocks[0]->params[0]->declared);
    assert_int_equal(map->blocks[0]->params[0]->declared->rank, 1);
    ir_graph_free(graph);
}

/* Declared as a tensor of one element, the iteration number is one. */
static void numbers_as_lists(void **state)
{
    (void)state;
    static const char *const declared[] = {"", "1", "K"};
    for (int k = 0; k < 3; k++) {
        struct onnx_model m;
        Onnx__GraphProto *body;
        loop_model(&m, "2,3", declared[k], &body);
        model_node(&m, body, "Identity", "i", "o");
        model_output(&m, body, "o", TSSA_INT64, declared[k]);
        expect_stack(&m, 4, k ? "4 1 " : "4 ");
    }
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static void output_model(struct onnx_model *m, int dtype, const char *dims)
{
    model_init(m, 8, 18);
    model_input(m, m->graph, "x", TSSA_FLOAT, "2,N");
    model_node(m, m->graph, "Relu", "x", "y")->name = model_string(m, "act");
    model_output(m, m->graph, "y", dtype, dims);
}

static void expect_output(const char *dims, const char *dropped, const char *written)
{
    struct onnx_model m;
    struct ir_graph *graph;
    struct text bytes, type;
    text_init(&bytes, &allocator_default);
    text_init(&type, &allocator_default);
    output_model(&m, TSSA_FLOAT, dims);
    no_error(model_import(&m, &graph));
    assert_string_equal(graph->dropped ? graph->dropped : "", dropped);
    struct ir_graph *again = export_import("output", graph, NULL, &bytes);
    type_print(again->output_types[0], &type);
    assert_string_equal(text_string(&type), written);
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&type);
    text_free(&bytes);
    model_free(&m);
}

/* Another element type is refused; another shape goes, and that is said. */
static void outputs_that_contradict(void **state)
{
    (void)state;
    struct onnx_model m;
    output_model(&m, TSSA_INT64, "7");
    expect_refused(&m, TSSA_MALFORMED,
                   "output \"y\" is declared i64[7], but Relu (node \"act\") makes it f32[2, N]");
    expect_output("2,N", "", "f32[2, N]");
    expect_output("rows,columns", "", "f32[rows, columns]");
    expect_output("7", "the shape declared of output \"y\" (f32[7])", "f32[2, N]");
    expect_output("3,N", "the shape declared of output \"y\" (f32[3, N])", "f32[2, N]");
}

/* ---- Trip counts ----------------------------------------------------------------------------- */

static void note_trips(void *user, const tssa_control_info *info)
{
    text_puts(user, info->trips);
}

static void expect_trips(int64_t trips, const char *expected)
{
    struct onnx_model m;
    tssa_context *context;
    tssa_model *model;
    struct text text;
    size_t size;
    text_init(&text, &allocator_default);
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_initializer(&m, m.graph, model_tensor(&m, "m", TSSA_INT64, "", &trips, sizeof trips));
    Onnx__GraphProto *body = model_graph(&m, "body");
    model_input(&m, body, "i", TSSA_INT64, "");
    model_input(&m, body, "c", TSSA_BOOL, "");
    model_input(&m, body, "s", TSSA_FLOAT, "3");
    model_node(&m, body, "Softmax", "s", "next");
    model_output(&m, body, "c", TSSA_BOOL, "");
    model_output(&m, body, "next", TSSA_FLOAT, "3");
    model_attr_graph(&m, model_node(&m, m.graph, "Loop", "m,,x", "y"), "body", body);
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    const void *data = model_pack(&m, &size);
    no_error(tssa_context_create(NULL, &context));
    no_error(tssa_model_load_memory(context, data, size, NULL, &model));
    no_error(tssa_model_control_flow(model, note_trips, &text));
    assert_string_equal(text_string(&text), expected);
    tssa_model_free(model);
    tssa_context_free(context);
    text_free(&text);
    model_free(&m);
}

/* "As often as a number can say" is no trip count. */
static void trip_counts_that_are_none(void **state)
{
    (void)state;
    expect_trips(1000000, "1000000");
    expect_trips(INT32_MAX, "");
    expect_trips(INT64_MAX, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_of_nothing),         cmocka_unit_test(elements_of_maps),
        cmocka_unit_test(numbers_as_lists),          cmocka_unit_test(outputs_that_contradict),
        cmocka_unit_test(trip_counts_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
