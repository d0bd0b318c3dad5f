/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporter goes around: which ops are written in the place of which, and which stay. tests/hazards/check.py
 * runs the same in another runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/graph_text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "tssa.h"

#define HEAD "graph @g opset(\"\": 18) ir_version(8) "

/* As passes do it where they put the op in the place of others. */
static tssa_status *mark_exact(void *context, struct ir_op *op)
{
    (void)context;
    op->exact = ir_op_is(op, IR_OP_Where) || ir_op_is(op, IR_OP_ReduceSum) ||
                ir_op_is(op, IR_OP_ReduceProd);
    return NULL;
}

static tssa_status *parse(const tssa_allocator *allocator, const char *text, bool exact,
                          struct ir_graph **graph)
{
    TRY(ir_parse(allocator, text, strlen(text), graph));
    tssa_status *status = ir_infer_graph(*graph);
    if (!status && exact)
        status = ir_block_walk((*graph)->body, mark_exact, NULL);
    if (status)
        ir_graph_free(*graph);
    return status;
}

static tssa_status *list_op(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Constant) && !ir_op_is(op, IR_OP_return))
        text_printf(context, "%s ", op->info->name);
    return NULL;
}

/* The operators of the program once it was written and read, constants aside. */
static void expect(const char *text, bool exact, uint64_t kept, const char *operators)
{
    const struct onnx_export_options options = {.kept_hazards = kept};
    struct ir_graph *graph, *again;
    struct text bytes, listed;
    text_init(&bytes, &allocator_default);
    text_init(&listed, &allocator_default);
    no_error(parse(&allocator_default, text, exact, &graph));
    again = export_import("text", graph, &options, &bytes);
    no_error(ir_block_walk(again->body, list_op, &listed));
    assert_string_equal(text_string(&listed), operators);
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&listed);
    text_free(&bytes);
}

/* Avoided where it takes the place of something exact; the model's own stays, and so does what is to be kept. */
static void becomes(const char *text, const char *without, const char *with)
{
    expect(text, true, 0, with);
    expect(text, true, UINT64_MAX, without);
    expect(text, false, 0, without);
}

#define REDUCE(type, dims, operator, attributes)                                                   \
    HEAD "(%x: " type dims ") -> (%y as \"y\") {\n%a = Constant() {value = i64[1] [0]}\n"          \
         "%y = "                                                                                   \
         operator"(%x, %a) {" attributes "}\nreturn(%y)\n}\n"

static void integer_reductions(void **state)
{
    (void)state;
    becomes(REDUCE("i64", "[4, N]", "ReduceSum", "keepdims = 0"), "ReduceSum ", "CumSum Gather ");
    becomes(REDUCE("i64", "[N]", "ReduceSum", "keepdims = 0"), "ReduceSum ", "CumSum Gather ");
    becomes(REDUCE("i32", "[4, 3]", "ReduceSum", "keepdims = 1"), "ReduceSum ", "CumSum Gather ");
    becomes(REDUCE("i64", "[4, N]", "ReduceProd", "keepdims = 1"), "ReduceProd ",
            "Slice Slice Shape Expand ScatterElements ");
    becomes(REDUCE("i64", "[4]", "ReduceProd", "keepdims = 0"), "ReduceProd ",
            "Slice Slice Shape Expand ScatterElements Squeeze ");
    becomes(HEAD "(%x: i64[2, 3]) -> (%y as \"y\") {\n%y = ReduceSum(%x) {keepdims = 0}\n"
                 "return(%y)\n}\n",
            "ReduceSum ", "CumSum Gather CumSum Gather ");
    /* Floats, and what is small. */
    becomes(REDUCE("f32", "[4]", "ReduceSum", "keepdims = 0"), "ReduceSum ", "ReduceSum ");
    becomes(HEAD "(%b: bool[9]) -> (%y as \"y\") {\n%x = Cast(%b) {to = 6}\n%y = ReduceSum(%x)\n"
                 "return(%y)\n}\n",
            "Cast ReduceSum ", "Cast ReduceSum ");
    becomes(HEAD "(%b: i32[9]) -> (%y as \"y\") {\n%x = Cast(%b) {to = 7}\n%y = ReduceSum(%x)\n"
                 "return(%y)\n}\n",
            "Cast ReduceSum ", "Cast ReduceSum ");
}

/* An opset that cannot say it is refused, with the row's name; as it is it can be said. */
static void old_opsets(void **state)
{
    (void)state;
    struct onnx_export_options options = {.opset = 13};
    struct ir_graph *graph;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    const struct output_sink sink = text_sink(&bytes);
    no_error(parse(&allocator_default, REDUCE("i64", "[4]", "ReduceProd", "keepdims = 0"), true,
                   &graph));
    tssa_status *status = onnx_export(graph, &options, &sink);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    assert_non_null(strstr(tssa_status_message(status),
                           "hazard integer_product, in the place of ReduceProd: ScatterElements"));
    tssa_status_free(status);
    options.kept_hazards = UINT64_MAX;
    no_error(onnx_export(graph, &options, &sink));
    ir_graph_free(graph);
    text_free(&bytes);
}

#define WHERE(condition, b, operands)                                                              \
    HEAD "(%c: bool" condition ", %x: f32[4], %b: f32" b ") -> (%y as \"y\") {\n"                  \
         "%p = Exp(%b)\n%y = Where(%c, " operands ")\nreturn(%y)\n}\n"

static void where(void **state)
{
    (void)state;
    /* Exp makes no -0.0. */
    becomes(WHERE("[4]", "[4]", "%p, %x"), "Exp Where ", "Exp Where ");
    becomes(WHERE("[4]", "[4]", "%x, %p"), "Exp Where ", "Exp Equal Where ");
    becomes(WHERE("[]", "[4]", "%x, %b"), "Exp Where ",
            "Exp Cast Unsqueeze Unsqueeze Concat Gather ");
    becomes(WHERE("[4]", "[4]", "%x, %b"), "Exp Where ",
            "Exp Cast Unsqueeze Unsqueeze Concat Unsqueeze GatherElements Squeeze ");
    becomes(WHERE("[4]", "[2, 1]", "%x, %b"), "Exp Where ",
            "Exp Where Shape Cast Expand Unsqueeze Expand Unsqueeze Concat Expand Unsqueeze "
            "GatherElements Squeeze ");
    becomes(HEAD "(%c: bool[], %x: i64[4], %z: i64[4]) -> (%y as \"y\") {\n"
                 "%y = Where(%c, %x, %z)\nreturn(%y)\n}\n",
            "Where ", "Where ");
}

/* Whatever a block returns that is not its own: the model's too, for which a copy changes nothing. */
static void results_of_blocks(void **state)
{
    (void)state;
    const char *loop = HEAD "(%x: f32[3], %n: i64[]) -> (%y as \"y\", %k as \"k\") {\n"
                            "%y, %k = Loop(%n, _, %x) {\n"
                            "body(%i: i64[], %c: bool[], %s: f32[3]) {\n"
                            "%t = Softmax(%s)\nreturn(%c, %t, %i)\n}\n}\nreturn(%y, %k)\n}\n";
    const char *scan = HEAD "(%x: f32[4, 3], %w: f32[3]) -> (%y as \"y\", %z as \"z\") {\n"
                            "%y, %z = Scan(%w, %x) {num_scan_inputs = 1} {\n"
                            "body(%s: f32[3], %e: f32[3]) {\nreturn(%e, %s)\n}\n}\n"
                            "return(%y, %z)\n}\n";
    expect(loop, false, 0, "Softmax Identity Loop ");
    expect(loop, false, UINT64_MAX, "Softmax Loop ");
    expect(scan, false, 0, "Identity Identity Scan ");
    expect(scan, false, UINT64_MAX, "Scan ");
}

/* Of what a Loop stacks the rank and the sizes that are known are written, though the model says neither. */
static void shapes_of_stacks(void **state)
{
    (void)state;
    static const char text[] = HEAD "(%x: f32[N, 3], %n: i64[]) -> (%k as \"k\") {\n"
                                    "%k = Loop(%n, _) {\nbody(%i: i64[], %c: bool[]) {\n"
                                    "%t = Softmax(%x)\nreturn(%c, %t)\n}\n}\nreturn(%k)\n}\n";
    for (int kept = 0; kept < 2; kept++) {
        const struct onnx_export_options options = {.kept_hazards = kept ? UINT64_MAX : 0};
        struct ir_graph *graph;
        struct text bytes;
        text_init(&bytes, &allocator_default);
        no_error(parse(&allocator_default, text, false, &graph));
        /* A node of the model, of which no more is said than the model does. */
        graph->body->first->origin = graph->body->first->blocks[0]->first->origin = IR_ORIGIN_NODE;
        struct ir_graph *again = export_import("text", graph, &options, &bytes);
        const struct ir_op *loop = again->body->first;
        const struct ir_type *type = ir_operand(ir_block_return(loop->blocks[0]), 1)->declared;
        assert_non_null(type);
        assert_int_equal(type->rank, kept ? -1 : 2);
        int64_t size;
        if (!kept)
            assert_true(dim_is_const(type->dims[1], &size) && size == 3);
        ir_graph_free(again);
        ir_graph_free(graph);
        text_free(&bytes);
    }
}

/* What the model says of a value goes with it where it is computed outside of the block that returns it. */
static const struct ir_type *shape_of_copy(const char *text, struct ir_graph **again)
{
    struct ir_graph *graph;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    no_error(parse(&allocator_default, text, false, &graph));
    *again = export_import("text", graph, NULL, &bytes);
    const struct ir_op *owner = ir_block_return((*again)->body)->prev;
    const struct ir_op *results = ir_block_return(owner->blocks[0]);
    ir_graph_free(graph);
    text_free(&bytes);
    return ir_operand(results, results->n_operands - 1)->declared;
}

static void shapes_of_copies(void **state)
{
    (void)state;
    struct ir_graph *again;
    int64_t size = 0;
    /* Of no known rank. */
    const struct ir_type *type =
        shape_of_copy(HEAD "(%s: i64[K], %x: f32[3]) -> (%y as \"y\") {\n"
                           "%r = ConstantOfShape(%s): f32[P, Q]\n"
                           "%y = Scan(%x) {num_scan_inputs = 1} {\n"
                           "body(%e: f32[]) {\nreturn(%r)\n}\n}\nreturn(%y)\n}\n",
                      &again);
    assert_int_equal(type->rank, 2);
    ir_graph_free(again);
    /* Of no known size. */
    type = shape_of_copy(HEAD "(%x: f32[N, 1], %n: i64[]) -> (%y as \"y\") {\n"
                              "%r = Relu(%x): f32[4, 1]\n%y = Loop(%n, _) {\n"
                              "body(%i: i64[], %c: bool[]) {\nreturn(%c, %r)\n}\n}\n"
                              "return(%y)\n}\n",
                         &again);
    assert_int_equal(type->rank, 2);
    assert_true(dim_is_const(type->dims[0], &size) && size == 4);
    ir_graph_free(again);
}

/* The table, and what is said to names that it does not have. */
static void table(void **state)
{
    (void)state;
    tssa_hazard_info info;
    assert_true(tssa_hazard_count() >= 8);
    for (size_t i = 0; i < tssa_hazard_count(); i++) {
        no_error(tssa_hazard(i, &info));
        assert_true(info.name[0] && info.pattern[0] && info.seen[0] && info.around[0] &&
                    info.model[0]);
    }
    tssa_status *status = tssa_hazard(tssa_hazard_count(), &info);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
}

static tssa_status *export_once(const tssa_allocator *allocator)
{
    struct ir_graph *graph = NULL;
    struct text bytes;
    TRY(parse(allocator, WHERE("[4]", "[2, 1]", "%x, %b"), true, &graph));
    text_init(&bytes, &allocator_default);
    const struct output_sink sink = text_sink(&bytes);
    tssa_status *status = onnx_export(graph, NULL, &sink);
    text_free(&bytes);
    ir_graph_free(graph);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(export_once) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_reductions),
        cmocka_unit_test(old_opsets),
        cmocka_unit_test(where),
        cmocka_unit_test(results_of_blocks),
        cmocka_unit_test(shapes_of_stacks),
        cmocka_unit_test(shapes_of_copies),
        cmocka_unit_test(table),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
