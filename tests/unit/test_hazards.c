/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporter goes around: which ops are written in the place of which, and which stay.
 * tests/hazards/check.py runs the same in another runtime. */
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
#include "onnx/exporter.h"
#include "onnx/hazards/bounds.h"
#include "tssa.h"

#define HEAD "graph @g opset(\"\": 18) ir_version(8) "

/* As passes do it where they put the op in the place of others. */
static tssa_status *mark_exact(void *context, struct ir_op *op)
{
    (void)context;
    static const enum ir_op_id exact[] = {
        IR_OP_Where, IR_OP_ReduceSum, IR_OP_ReduceProd, IR_OP_ReduceMax, IR_OP_ReduceMin,
        IR_OP_Max,   IR_OP_Min,       IR_OP_Clip,       IR_OP_Sign,      IR_OP_Relu};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        op->exact |= ir_op_is(op, exact[i]);
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

/* Avoided where it takes the place of something exact; the model's own stays, and so does what is
 * to be kept. */
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

#define EXTREME(type, operator)                                                                    \
    HEAD "(%x: " type "[N], %z: " type "[]) -> (%y as \"y\") {\n%y = " operator"\nreturn(%y)\n}\n"

static void integer_extremes(void **state)
{
    (void)state;
    becomes(EXTREME("i64", "Max(%x, %z)"), "Max ", "Greater Where ");
    becomes(EXTREME("i64", "Min(%x, %z, %z)"), "Min ", "Less Where Less Where ");
    becomes(EXTREME("i64", "Clip(%x, %z, %z)"), "Clip ", "Greater Where Less Where ");
    becomes(EXTREME("i64", "Clip(%x, _, %z)"), "Clip ", "Less Where ");
    becomes(EXTREME("i64", "Sign(%x)"), "Sign ", "Greater Less Where Where ");
    becomes(EXTREME("i64", "Relu(%x)"), "Relu ", "Greater Where ");
    becomes(EXTREME("i64", "ReduceMax(%x) {keepdims = 0}"), "ReduceMax ",
            "Unsqueeze ReduceMax Squeeze ");
    becomes(EXTREME("i64", "ReduceMin(%x)"), "ReduceMin ", "Unsqueeze ReduceMin ");
    /* Other types, one number alone, and what is small. */
    becomes(EXTREME("i32", "Max(%x, %z)"), "Max ", "Max ");
    becomes(EXTREME("f32", "ReduceMax(%x)"), "ReduceMax ", "ReduceMax ");
    becomes(EXTREME("i64", "Max(%z)"), "Max ", "Max ");
    becomes(HEAD "(%n: i32[N]) -> (%y as \"y\") {\n%x = Cast(%n) {to = 7}\n%y = Max(%x, %x)\n"
                 "return(%y)\n}\n",
            "Cast Max ", "Cast Max ");
}

/* How large the elements are, by what makes them. */
static void bounds(void **state)
{
    (void)state;
    static const struct {
        const char *x; /* of f32[N], i32[N], i64[N], i64 numbers 3 and 2^31 */
        bool small;
    } rows[] = {
        {"%x = Cast(%n) {to = 7}", true},
        {"%x = Add(%l, %three)", false},
        {"%s = Shape(%f)\n%x = Add(%s, %three)", false},
        {"%s = Shape(%f)\n%x = Sub(%s, %three)", true},
        {"%i = Range(%zero, %m, %one)\n%x = Add(%i, %three)", true},
        {"%i = Range(%zero, %m, %one)\n%x = Add(%i, %large)", false},
        {"%i = Range(%m, %m, %one)\n%x = Add(%i, %three)", false},
        {"%i = Range(%zero, %m, %m)\n%x = Add(%i, %three)", false},
        {"%i = Range(%zero, %m, %one)\n%x = Mul(%i, %three)", false},
        {"%x = Mod(%l, %three)", true},
        {"%x = Mod(%l, %m)", false},
        {"%x = Neg(%l)", false},
        {"%c = Cast(%n) {to = 7}\n%x = Neg(%c)", false},
        {"%i = ArgMax(%l)\n%x = Neg(%i)", true},
        {"%g = Greater(%l, %three)\n%x = Where(%g, %three, %zero)", true},
        {"%g = Greater(%l, %three)\n%x = Where(%g, %l, %zero)", false},
        {"%k = Min(%l, %three)\n%x = Max(%k, %zero)", true},
        {"%x = Clip(%l, %zero, %three)", true},
        {"%x = Clip(%l, %zero)", false},
        {"%x = Cast(%f) {to = 7}", false},
        {"%c = Concat(%l, %l) {axis = 0}\n%x = Slice(%c, %at, %at)", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text text;
        text_init(&text, &allocator_default);
        text_printf(&text,
                    HEAD "(%%f: f32[N], %%n: i32[N], %%l: i64[N], %%m: i64[]) -> (%%y as \"y\") {\n"
                         "%%zero = Constant() {value = i64[] 0}\n"
                         "%%one = Constant() {value = i64[] 1}\n"
                         "%%three = Constant() {value = i64[] 3}\n"
                         "%%large = Constant() {value = i64[] 2147483648}\n"
                         "%%at = Constant() {value = i64[1] [1]}\n"
                         "%s\n%%y = Sign(%%x)\nreturn(%%y)\n}\n",
                    rows[i].x);
        struct ir_graph *graph;
        no_error(parse(&allocator_default, text_string(&text), false, &graph));
        struct range range = hazard_bounds(ir_operand(ir_block_return(graph->body)->prev, 0));
        if ((range.low >= INT32_MIN && range.high <= INT32_MAX) != rows[i].small)
            fail_msg("%s: %lld to %lld", rows[i].x, (long long)range.low, (long long)range.high);
        ir_graph_free(graph);
        text_free(&text);
    }
}

#define GATHER(opset, data, indices)                                                               \
    "graph @g opset(\"\": " opset ") ir_version(8) (%x: f32" data ", %i: i64" indices              \
    ") -> (%y as \"y\") {\n%y = Gather(%x, %i)\nreturn(%y)\n}\n"

/* What passes made and is slow, and only if it takes time; no opset is raised for its sake. */
static void slow(void **state)
{
    (void)state;
    expect(GATHER("18", "[K]", "[M]"), false, 0, "GatherElements ");
    expect(GATHER("18", "[K]", "[M]"), false, UINT64_MAX, "Gather ");
    expect(GATHER("18", "[K]", "[64]"), false, 0, "GatherElements ");
    expect(GATHER("18", "[K]", "[63]"), false, 0, "Gather ");
    expect(GATHER("18", "[K, 4]", "[M]"), false, 0, "Gather ");
    expect(GATHER("18", "[K]", "[M, 2]"), false, 0, "Gather ");
    expect(GATHER("18", "[K]", "[]"), false, 0, "Gather ");
    expect(GATHER("10", "[K]", "[M]"), false, 0, "Gather ");
    struct ir_graph *graph;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    no_error(parse(&allocator_default, GATHER("18", "[K]", "[M]"), false, &graph));
    graph->body->first->origin = IR_ORIGIN_NODE; /* the model's own */
    struct ir_graph *again = export_import("text", graph, NULL, &bytes);
    assert_true(ir_op_is(again->body->first, IR_OP_Gather));
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&bytes);
}

#define EXPAND(shape)                                                                              \
    HEAD "(%x: f32[N, 1]) -> (%y as \"y\") {\n%s = Constant() {value = i64[3] " shape "}\n"        \
         "%y = Expand(%x, %s)\nreturn(%y)\n}\n"

/* To a shape that passes made constant; one that is the model's own stays. */
static void expands(void **state)
{
    (void)state;
    expect(EXPAND("[1, 2, 0]"), false, 0, "Expand Slice ");
    expect(EXPAND("[1, 2, 0]"), false, UINT64_MAX, "Expand ");
    expect(EXPAND("[1, 2, 3]"), false, 0, "Expand ");
    for (int own = 0; own < 2; own++) {
        struct ir_graph *graph;
        struct text bytes;
        text_init(&bytes, &allocator_default);
        no_error(parse(&allocator_default, EXPAND("[0, 2, 0]"), false, &graph));
        struct ir_op *shape = graph->body->first;
        shape->next->origin = IR_ORIGIN_NODE;
        shape->origin = own ? IR_ORIGIN_NODE : IR_ORIGIN_MADE;
        struct ir_graph *again = export_import("text", graph, NULL, &bytes);
        const struct ir_op *last = ir_block_return(again->body)->prev;
        assert_true(ir_op_is(last, own ? IR_OP_Expand : IR_OP_Slice));
        if (!own) {
            static const int64_t expanded[] = {1, 2, 1}, axes[] = {-3, -1};
            const struct ir_op *expand = ir_operand(last, 0)->op;
            assert_memory_equal(ir_value_constant(ir_operand(expand, 1))->data, expanded,
                                sizeof expanded);
            assert_memory_equal(ir_value_constant(ir_operand(last, 3))->data, axes, sizeof axes);
        }
        ir_graph_free(again);
        ir_graph_free(graph);
        text_free(&bytes);
    }
}

/* An opset that is asked for and cannot say it gets the op as it is, and the caller is told. */
static void old_opsets(void **state)
{
    (void)state;
    for (int64_t opset = 13; opset <= 18; opset += 5) {
        uint64_t met = 0;
        struct onnx_export_options options = {.opset = opset, .met_hazards = &met};
        struct ir_graph *graph, *again;
        struct text bytes, listed;
        text_init(&bytes, &allocator_default);
        text_init(&listed, &allocator_default);
        no_error(parse(&allocator_default, REDUCE("i64", "[4]", "ReduceProd", "keepdims = 0"), true,
                       &graph));
        again = export_import("text", graph, &options, &bytes);
        no_error(ir_block_walk(again->body, list_op, &listed));
        assert_string_equal(text_string(&listed),
                            opset < 16 ? "ReduceProd "
                                       : "Slice Slice Shape Expand ScatterElements Squeeze ");
        assert_int_equal(met != 0, opset < 16);
        if (met)
            assert_string_equal(onnx_hazard((size_t)__builtin_ctzll(met)).name, "integer_product");
        ir_graph_free(again);
        ir_graph_free(graph);
        text_free(&listed);
        text_free(&bytes);
    }
}

static void note(void *user, tssa_log_level level, const char *message)
{
    if (level == TSSA_LOG_WARNING)
        text_printf(user, "%s\n", message);
}

static void ignore(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
}

/* Who saves a model is told through the log. */
static void told(void **state)
{
    (void)state;
    static const char loop[] =
        HEAD "(%x: i64[4], %a: i64[]) -> (%y as \"y\") {\n%m = Constant() {value = i64[] 4}\n"
             "%y = Loop(%m, _, %a) {\nbody(%i: i64[], %c: bool[], %s: i64[]) {\n"
             "%e = Gather(%x, %i)\n%t = Mul(%s, %e)\nreturn(%c, %t)\n}\n}\nreturn(%y)\n}\n";
    struct text bytes, log;
    struct ir_graph *graph;
    tssa_context *context;
    tssa_model *model;
    text_init(&bytes, &allocator_default);
    text_init(&log, &allocator_default);
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .log = note, .log_user = &log};
    const tssa_optimize_options rewriting = {
        .struct_size = sizeof rewriting, .level = 2, .target = TSSA_TARGET_ONNX};
    const tssa_save_options old = {.struct_size = sizeof old, .opset = 13};
    no_error(parse(&allocator_default, loop, false, &graph));
    ir_graph_free(export_import("text", graph, NULL, &bytes));
    no_error(tssa_context_create(&options, &context));
    no_error(tssa_model_load_memory(context, bytes.data, bytes.size, NULL, &model));
    no_error(tssa_model_optimize(model, &rewriting));
    text_clear(&log);
    no_error(tssa_model_save_memory(model, NULL, ignore, NULL));
    assert_string_equal(text_string(&log), "");
    no_error(tssa_model_save_memory(model, &old, ignore, NULL));
    assert_string_equal(text_string(&log), "hazard integer_product is in the file, whose opset "
                                           "cannot say the way around it\n");
    tssa_model_free(model);
    tssa_context_free(context);
    ir_graph_free(graph);
    text_free(&log);
    text_free(&bytes);
}

/* One that is not asked for is raised. */
static void raised_opsets(void **state)
{
    (void)state;
    uint64_t met = 0;
    const struct onnx_export_options options = {.met_hazards = &met};
    struct ir_graph *graph;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    no_error(parse(&allocator_default,
                   "graph @g opset(\"\": 10) ir_version(8) (%x: i64[4]) -> (%y as \"y\") {\n"
                   "%y = ReduceSum(%x) {keepdims = 0}\nreturn(%y)\n}\n",
                   true, &graph));
    struct ir_graph *again = export_import("text", graph, &options, &bytes);
    assert_true(again->opsets[0].version >= 11);
    assert_int_equal(met, 0);
    ir_graph_free(again);
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

/*
 * Whatever a block returns that is not its own: the model's too, for which a copy changes nothing.
 */
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

/* Of what a Loop stacks the rank and the sizes that are known are written, though the model says
 * neither. */
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

/* What the model says of a value goes with it where it is computed outside of the block that
 * returns it. */
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
    assert_true(tssa_hazard_count() >= 11);
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
        cmocka_unit_test(integer_extremes),
        cmocka_unit_test(bounds),
        cmocka_unit_test(slow),
        cmocka_unit_test(expands),
        cmocka_unit_test(old_opsets),
        cmocka_unit_test(told),
        cmocka_unit_test(raised_opsets),
        cmocka_unit_test(where),
        cmocka_unit_test(results_of_blocks),
        cmocka_unit_test(shapes_of_stacks),
        cmocka_unit_test(shapes_of_copies),
        cmocka_unit_test(table),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
