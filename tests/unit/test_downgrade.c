/* SPDX-License-Identifier: Apache-2.0 */
/* Ops at older and newer opsets: what is written there reads back as the same op, and what cannot
 * be said there is refused, or raises the opset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/graph_text.h"
#include "ir/infer.h"
#include "ir/parser.h"

#define NEWEST IR_NEWEST_OPSET

/* Ops without a version are of the newest one, whatever the opset. */
static struct ir_graph *parse(int opset, const char *inputs, const char *ops)
{
    struct text text;
    struct ir_graph *graph = NULL;
    text_init(&text, &allocator_default);
    text_printf(&text, "graph @g opset(\"\": %d) ir_version(8) (%s) -> (%%y as \"y\") {\n%s\n",
                NEWEST, inputs, ops);
    text_puts(&text, "return(%y)\n}\n");
    tssa_status *status = ir_parse(&allocator_default, text.data, text.size, &graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (status)
        fail_msg("%s\nin %s", tssa_status_message(status), text_string(&text));
    text_free(&text);
    graph->opsets[0].version = opset;
    return graph;
}

static int64_t onnx_opset(const struct ir_graph *graph)
{
    return graph->n_opsets ? graph->opsets[0].version : 0;
}

/* `asked` as in the options; `opset`: the one that the file has. */
static void expect_same(const char *ops, const struct ir_graph *graph, int asked, int opset)
{
    const struct onnx_export_options options = {.opset = asked};
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *again = export_import(ops, graph, &options, &bytes);
    assert_int_equal(onnx_opset(again), opset);
    same_graphs(ops, graph, again, false);
    ir_graph_free(again);
    text_free(&bytes);
}

static void expect_refused(const struct ir_graph *graph, int opset, const char *why)
{
    const struct onnx_export_options options = {.opset = opset};
    struct text bytes;
    text_init(&bytes, &allocator_default);
    const struct output_sink sink = text_sink(&bytes);
    tssa_status *status = onnx_export(graph, &options, &sink);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    if (!strstr(tssa_status_message(status), why))
        fail_msg("got: %s\nexpected: %s", tssa_status_message(status), why);
    tssa_status_free(status);
    text_free(&bytes);
}

/* ---- What older interfaces can say ----------------------------------------------------------- */

#define X4 "%x: f32[2, 3, 4, 5]"

static const struct {
    int first, last; /* all opsets between can say it; the newest can too */
    const char *inputs, *ops;
} expressible[] = {
    {7, 17, X4, "%0 = Constant() {value = i64[2] [1, 2]}\n%y = ReduceMean(%x, %0) {keepdims = 0}"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceMax(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceMin(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceProd(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceL1(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceL2(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceLogSum(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceLogSumExp(%x, %0)"},
    {7, 17, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceSumSquare(%x, %0)"},
    {7, 12, X4, "%0 = Constant() {value = i64[1] [3]}\n%y = ReduceSum(%x, %0)"},
    {7, 17, X4, "%y = ReduceMean(%x)"},
    {7, 12, "%x: f32[2, 1, 4]", "%0 = Constant() {value = i64[1] [1]}\n%y = Squeeze(%x, %0)"},
    {7, 12, "%x: f32[2, 1, 4]", "%y = Squeeze(%x)"},
    {7, 12, X4, "%0 = Constant() {value = i64[2] [0, 2]}\n%y = Unsqueeze(%x, %0)"},
    {7, 9, X4,
     "%0 = Constant() {value = i64[1] [1]}\n%1 = Constant() {value = i64[1] [-1]}\n"
     "%2 = Constant() {value = i64[1] [2]}\n%y = Slice(%x, %0, %1, %2)"},
    {7, 9, X4,
     "%0 = Constant() {value = i64[2] [0, 1]}\n%1 = Constant() {value = i64[2] [1, 2]}\n"
     "%y = Slice(%x, %0, %1)"},
    {7, 12, X4, "%0 = Constant() {value = i64[2] [1, 2]}\n%y, _ = Split(%x, %0) {axis = 1}"},
    {7, 17, X4, "%y, _ = Split(%x) {axis = 2, num_outputs = 2}"},
    {7, 10, X4,
     "%0 = Constant() {value = i64[8] [0, 0, 1, 1, 0, 0, 1, 1]}\n%1 = Constant() {value = f32[] "
     "2}\n"
     "%y = Pad(%x, %0, %1) {mode = \"constant\"}"},
    {7, 9, X4, "%0 = Constant() {value = i64[1] [2]}\n%y, %i = TopK(%x, %0) {axis = 1}"},
    {7, 10, X4,
     "%0 = Constant() {value = f32[] 0}\n%1 = Constant() {value = f32[] 6}\n%y = Clip(%x, %0, %1)"},
    {7, 11, X4, "%0 = Constant() {value = f32[] 0.25}\n%y = Dropout(%x, %0)"},
    {17, 19, "%x: f32[2, 8, 1]",
     "%0 = Constant() {value = i64[] 1}\n%y = DFT(%x, _, %0) {onesided = 0}"},
    {7, 12, X4, "%y = Softmax(%x) {axis = 3}"},
    {7, 12, X4, "%y = LogSoftmax(%x) {axis = 3}"},
    {7, 12, "%x: f32[4, 5, 1, 1]", "%y = Hardmax(%x) {axis = 1}"},
    {16, 19, "%x: f32[1, 1, 4, 4], %g: f32[1, 2, 2, 2]",
     "%y = GridSample(%x, %g) {mode = \"linear\"}"},
    {16, 19, "%x: f32[1, 1, 4, 4], %g: f32[1, 2, 2, 2]",
     "%y = GridSample(%x, %g) {mode = \"cubic\"}"},
    {9, 10, "%x: f32[3, 3], %i: i64[1, 3], %u: f32[1, 3]",
     "%y = ScatterElements(%x, %i, %u) {axis = 0}"},
    {7, 8, X4,
     "%0 = Constant() {value = f32[4] [1, 1, 2, 2]}\n"
     "%y = Resize(%x, _, %0) {mode = \"linear\", coordinate_transformation_mode = \"asymmetric\", "
     "nearest_mode = \"floor\"}"},
    {10, 10, "%x: f32[2, 3, 4, 5], %s: f32[4]",
     "%y = Resize(%x, _, %s) {mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
     "nearest_mode = \"floor\"}"},
    {10, 15, "%x: f32[1, 1, 4, 4], %r: f32[1, 4], %b: i64[1]",
     "%y = RoiAlign(%x, %r, %b) {output_height = 2, output_width = 2, "
     "coordinate_transformation_mode = \"output_half_pixel\"}"},
    {7, 21, X4, "%y = MaxPool(%x) {kernel_shape = [2, 2]}"},
    {7, 13, "%x: f32[2, 3, 4], %s: f32[3]", "%y = BatchNormalization(%x, %s, %s, %s, %s)"},
    {7, 27, "%x: f32[2], %z: f32[2]", "%y = Max(%x, %z)"},
};

static void says_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expressible / sizeof *expressible; i++) {
        struct ir_graph *graph = parse(NEWEST, expressible[i].inputs, expressible[i].ops);
        for (int opset = expressible[i].first; opset <= expressible[i].last; opset++)
            expect_same(expressible[i].ops, graph, opset, opset);
        ir_graph_free(graph);
    }
}

/*
 * Attributes that older versions do not have go when they say the default: the op means the same.
 */
static const struct {
    int opset;
    const char *inputs, *before, *after;
} dropped[] = {
    {13, X4 ", %s: i64[2]", "%y = Reshape(%x, %s) {allowzero = 0}", "%y = Reshape(%x, %s)"},
    {12, X4, "%y = Shape(%x) {start = 0}", "%y = Shape(%x)"},
    {11, X4, "%y = ArgMax(%x) {select_last_index = 0}", "%y = ArgMax(%x)"},
    {11, X4, "%y = ArgMin(%x) {select_last_index = 0}", "%y = ArgMin(%x)"},
    {17, X4, "%y = ReduceMax(%x) {noop_with_empty_axes = 0}", "%y = ReduceMax(%x)"},
    {12, X4, "%y = ReduceSum(%x) {noop_with_empty_axes = 0}", "%y = ReduceSum(%x)"},
    {11, X4 ", %i: i64[1, 4]", "%y = GatherND(%x, %i) {batch_dims = 0}", "%y = GatherND(%x, %i)"},
    {10, "%x: f32[1, 8, 2, 2]", "%y = DepthToSpace(%x) {blocksize = 2, mode = \"DCR\"}",
     "%y = DepthToSpace(%x) {blocksize = 2}"},
    {15, "%x: f32[3], %i: i64[1], %u: f32[1]",
     "%y = ScatterElements(%x, %i, %u) {reduction = \"none\"}", "%y = ScatterElements(%x, %i, %u)"},
    {15, "%x: f32[3], %i: i64[1, 1], %u: f32[1]",
     "%y = ScatterND(%x, %i, %u) {reduction = \"none\"}", "%y = ScatterND(%x, %i, %u)"},
    {9, X4, "%y = MaxPool(%x) {kernel_shape = [2, 2], ceil_mode = 0, dilations = [1, 1]}",
     "%y = MaxPool(%x) {kernel_shape = [2, 2]}"},
    {7, X4, "%y = MaxPool(%x) {kernel_shape = [2, 2], storage_order = 0}",
     "%y = MaxPool(%x) {kernel_shape = [2, 2]}"},
    {9, X4, "%y = AveragePool(%x) {kernel_shape = [2, 2], ceil_mode = 0, dilations = [1, 1]}",
     "%y = AveragePool(%x) {kernel_shape = [2, 2]}"},
    {17, X4, "%y = LpPool(%x) {kernel_shape = [2, 2], ceil_mode = 0, dilations = [1, 1]}",
     "%y = LpPool(%x) {kernel_shape = [2, 2]}"},
    {13, X4, "%y = Cast(%x) {to = 6, saturate = 1, round_mode = \"up\"}", "%y = Cast(%x) {to = 6}"},
    {12, "%x: u8[2], %s: f32[]", "%y = DequantizeLinear(%x, %s) {axis = 1, block_size = 0}",
     "%y = DequantizeLinear(%x, %s)"},
    {12, "%x: f32[2], %s: f32[], %z: u8[]",
     "%y = QuantizeLinear(%x, %s, %z) {axis = 1, saturate = 1, output_dtype = 0}",
     "%y = QuantizeLinear(%x, %s, %z)"},
    {13, "%x: f32[2, 1, 3], %w: f32[1, 16, 3], %r: f32[1, 16, 4]",
     "%y, _, _ = LSTM(%x, %w, %r) {hidden_size = 4, layout = 0}",
     "%y, _, _ = LSTM(%x, %w, %r) {hidden_size = 4}"},
    {17, X4,
     "%c = Constant() {value = f32[4] [1, 1, 2, 2]}\n"
     "%y = Resize(%x, _, %c) {antialias = 0, keep_aspect_ratio_policy = \"stretch\"}",
     "%c = Constant() {value = f32[4] [1, 1, 2, 2]}\n%y = Resize(%x, _, %c)"},
    {10, X4, "%y = Concat(%x, %x) {axis = -1}", "%y = Concat(%x, %x) {axis = 3}"},
    {10, X4, "%0 = Constant() {value = i64[1] [-2]}\n%y = ReduceMean(%x, %0)",
     "%0 = Constant() {value = i64[1] [2]}\n%y = ReduceMean(%x, %0)"},
    {12, X4, "%y = Softmax(%x)", "%y = Softmax(%x) {axis = 3}"},
    {9, X4,
     "%0 = Constant() {value = i64[1] [2]}\n%y, %i = TopK(%x, %0) {axis = 1, largest = 1, sorted = "
     "1}",
     "%0 = Constant() {value = i64[1] [2]}\n%y, %i = TopK(%x, %0) {axis = 1}"},
};

static void defaults_are_dropped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        struct ir_graph *graph = parse(NEWEST, dropped[i].inputs, dropped[i].before);
        struct ir_graph *expected = parse(NEWEST, dropped[i].inputs, dropped[i].after);
        const struct onnx_export_options options = {.opset = dropped[i].opset};
        struct text bytes;
        text_init(&bytes, &allocator_default);
        struct ir_graph *again = export_import(dropped[i].before, graph, &options, &bytes);
        same_graphs(dropped[i].before, expected, again, false);
        text_free(&bytes);
        ir_graph_free(again);
        ir_graph_free(expected);
        ir_graph_free(graph);
    }
}

/* ---- What they cannot say -------------------------------------------------------------------- */

static const struct {
    int opset, raised; /* the opset that is chosen instead */
    const char *inputs, *ops, *why;
} inexpressible[] = {
    {17, 18, X4 ", %a: i64[1]", "%y = ReduceMean(%x, %a)", "takes axes as an attribute"},
    {12, 13, "%x: f32[2, 1], %a: i64[1]", "%y = Squeeze(%x, %a)", "takes axes as an attribute"},
    {9, 10, X4 ", %a: i64[1]", "%y = Slice(%x, %a, %a)", "as an attribute"},
    {9, 10, X4,
     "%0 = Constant() {value = i64[1] [0]}\n%1 = Constant() {value = i64[1] [3]}\n"
     "%2 = Constant() {value = i64[1] [2]}\n%y = Slice(%x, %0, %1, %0, %2)",
     "has no steps"},
    {17, 18, X4, "%y, _ = Split(%x) {axis = 3, num_outputs = 2}", "makes equal parts"},
    {10, 11, X4 ", %k: i64[1]", "%y, %i = TopK(%x, %k) {largest = 0}", "has no \"largest\""},
    {9, 10, X4 ", %k: i64[1]", "%y, %i = TopK(%x, %k)", "takes k as an attribute"},
    {10, 11, X4 ", %l: f32[]", "%y = Clip(%x, %l)", "takes min as an attribute"},
    {10, 11, "%x: f64[2]", "%0 = Constant() {value = f64[] 0.1}\n%y = Clip(%x, %0)",
     "of type FLOAT"},
    {12, 13, X4, "%y = Softmax(%x) {axis = 1}", "means something else"},
    {12, 13, "%x: f32[*]", "%y = LogSoftmax(%x) {axis = 2}", "means something else"},
    {15, 16, "%x: f32[3], %i: i64[1], %u: f32[1]",
     "%y = ScatterElements(%x, %i, %u) {reduction = \"add\"}", "has no \"reduction\""},
    {16, 18, "%x: f32[3], %i: i64[1, 1], %u: f32[1]",
     "%y = ScatterND(%x, %i, %u) {reduction = \"max\"}", "has no reduction \"max\""},
    {18, 19, X4 ", %p: i64[8]", "%y = Pad(%x, %p) {mode = \"wrap\"}", "has no mode \"wrap\""},
    {17, 18, X4 ", %p: i64[2], %a: i64[1]", "%y = Pad(%x, %p, _, %a)", "has 3 inputs at most"},
    {13, 14, X4 ", %s: i64[2]", "%y = Reshape(%x, %s) {allowzero = 1}", "has no \"allowzero\""},
    {14, 15, X4, "%y = Shape(%x) {end = 2}", "has no \"end\""},
    /* A branch returns what is outside as a copy. */
    {13, 14, X4 ", %c: bool[]",
     "%s = SequenceConstruct(%x)\n%y = If(%c) {\nthen_branch() {\nreturn(%s)\n}\n"
     "else_branch() {\n%e = SequenceEmpty()\nreturn(%e)\n}\n}",
     "Identity-13 has no input 0"},
    {21, 22, X4, "%y = MaxPool(%x) {kernel_shape = [2, 2], ceil_mode = 1}", "means something else"},
    {7, 9, "%x: f32[2], %c: bool[2]", "%y = Where(%c, %x, %x)", "came with opset 9"},
    {7, 9, "%x: i64[2]", "%y = Less(%x, %x)", "has no input 0 of type INT64"},
    {12, 14, "%x: i32[2]", "%y = Relu(%x)", "has no input 0 of type INT32"},
    {7, 8, "%x: f32[2], %z: f32[1]", "%y = Max(%x, %z)", "means something else"},
    {10, 11, "%x: f32[2, 3], %z: f32[3, 2]", "%y = Gemm(%x, %z)", "has no optional input 2"},
    {10, 11, "%x: f32[*]", "%y = Concat(%x, %x) {axis = -1}", "counts axes from the front"},
    {20, 21, "%x: f32[2, 4, 3], %s: f32[4]", "%y = GroupNormalization(%x, %s, %s) {num_groups = 2}",
     "means something else"},
    {15, 16, "%x: f32[1, 1, 4, 4], %r: f32[1, 4], %b: i64[1]",
     "%y = RoiAlign(%x, %r, %b) {output_height = 2, output_width = 2}",
     "places samples differently"},
    {12, 13, "%x: u8[2, 2], %s: f32[2]", "%y = DequantizeLinear(%x, %s)", "has one scale"},
    {13, 14, "%x: f32[2, 3, 4], %s: f32[3]",
     "%y, _, _ = BatchNormalization(%x, %s, %s, %s, %s) {training_mode = 1}",
     "trains in another way"},
    {10, 11, X4,
     "%0 = Constant() {value = f32[4] [1, 1, 2, 2]}\n%y = Resize(%x, _, %0) {mode = \"linear\"}",
     "places samples differently"},
    {19, 20, "%x: f32[2, 3, 4]", "%y = Gelu(%x)", "came with opset 20"},
};

static void refused_or_raised(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof inexpressible / sizeof *inexpressible; i++) {
        struct ir_graph *graph =
            parse(inexpressible[i].opset, inexpressible[i].inputs, inexpressible[i].ops);
        expect_refused(graph, inexpressible[i].opset, inexpressible[i].why);
        struct text bytes;
        text_init(&bytes, &allocator_default);
        struct ir_graph *again = export_import(inexpressible[i].ops, graph, NULL, &bytes);
        if (onnx_opset(again) != inexpressible[i].raised)
            fail_msg("opset %lld instead of %d for %s", (long long)onnx_opset(again),
                     inexpressible[i].raised, inexpressible[i].ops);
        ir_graph_free(again);
        text_free(&bytes);
        ir_graph_free(graph);
    }
}

/* An op that means what it meant before its operator changed is not carried over the change. */
static void old_meanings_stay(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(11, X4, "%y = Softmax@11(%x) {axis = 1}");
    expect_refused(graph, 13, "means something else");
    expect_same("Softmax", graph, 0, 11);
    ir_graph_free(graph);
    graph = parse(11, X4,
                  "%s = Constant() {value = f32[4] [1, 1, 2, 2]}\n%y = Resize@11(%x, _, %s) "
                  "{coordinate_transformation_mode = \"tf_half_pixel_for_nn\"}");
    expect_refused(graph, 13, "means something else");
    ir_graph_free(graph);
    graph = parse(11, X4, "%y = Softmax@11(%x) {axis = 3}");
    expect_same("Softmax", graph, 13, 13);
    expect_same("Softmax", graph, NEWEST, NEWEST);
    ir_graph_free(graph);
    /* Gelu needs 20, which Softmax cannot follow to. */
    graph = parse(11, X4, "%a = Softmax@11(%x) {axis = 1}\n%y = Gelu@20(%a)");
    expect_refused(graph, 0, "Gelu came with opset 20");
    ir_graph_free(graph);
}

/* A Loop of the model from which passes took all that it carried. */
static void loops_carry_something(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(8, "%x: f32[2], %m: i64[]",
                                   "%y = Loop@1(%m, _) {\nbody(%i: i64[], %c: bool[]) {\n"
                                   "%e = Neg(%x)\nreturn(%c, %e)\n}\n}");
    graph->body->first->origin = IR_ORIGIN_NODE;
    expect_refused(graph, 8, "Loop-1 has no optional input 2");
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *again = export_import("Loop", graph, NULL, &bytes);
    assert_int_equal(onnx_opset(again), 11);
    ir_graph_free(again);
    text_free(&bytes);
    ir_graph_free(graph);
}

static void own_ops_are_refused(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(18, "%x: f32[4]", "%y = access(%x) {rule = [select(0, 1)]}");
    expect_refused(graph, 0, "access is tssa's own and has no form in ONNX");
    ir_graph_free(graph);
}

static void asked_for_what_does_not_exist(void **state)
{
    (void)state;
    struct ir_graph *graph = parse(18, "%x: f32[4]", "%y = Relu(%x)");
    static const int opsets[] = {-1, 6, NEWEST + 1};
    for (size_t i = 0; i < 3; i++) {
        const struct onnx_export_options options = {.opset = opsets[i]};
        tssa_status *status = onnx_export(graph, &options, NULL);
        assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
        tssa_status_free(status);
    }
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_the_same),
        cmocka_unit_test(defaults_are_dropped),
        cmocka_unit_test(refused_or_raised),
        cmocka_unit_test(old_meanings_stay),
        cmocka_unit_test(loops_carry_something),
        cmocka_unit_test(own_ops_are_refused),
        cmocka_unit_test(asked_for_what_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
