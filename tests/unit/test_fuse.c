/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuse ops that no kernel takes run as if the ops of their blocks stood in their place: the same
 * bits, the same places in the slab, outputs in the caller's memory, writes in place. And a file
 * has what they hold, not them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/no_error.h"
#include "common/rewrite_check.h"
#include "common/test_device.h"
#include "device/device.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "onnx/exporter.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"

#define GRAPH(outputs, ops)                                                                        \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N, 4], %s: f32[4], %i: i64[], %t: i64[], "   \
    "%b: bool[N]) -> (" outputs ") {\n"                                                            \
    "  %one = Constant() {value = f32[] 1}: f32[]\n"                                               \
    "  %trips = Constant() {value = i64[] 3}: i64[]\n"                                             \
    "  %a = Neg@13(%x)\n" ops "  return(" outputs ")\n}\n"

static const struct {
    const char *text;
    bool exact; /* the plan is that of the ops in the place of the fuse op */
} programs[] = {
    /* A chain; operands that die in it, and that do not. */
    {GRAPH("%y",
           "%y = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) %e = Exp(%m) "
           "%z = Add(%e, %p) return(%z) } }\n"),
     true},
    {GRAPH("%z",
           "%y = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) %e = Exp(%m) "
           "return(%e) } }\n %h = Add(%y, %a)\n %w = Abs(%h)\n %z = Mul(%w, %y)\n"),
     true},
    /* Several results, of which one is read inside, too, and one is a view. */
    {GRAPH("%y, %z",
           "%y, %z, %u = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) "
           "%e = Exp(%m) %v = Identity(%m) %f = Sub(%e, %v) return(%m, %f, %v) } }\n"),
     true},
    {GRAPH("%z", "%y, %u = fuse(%a) { body(%p: f32[N, 4]) { %m = Abs(%p) %v = Identity(%m) "
                 "return(%m, %v) } }\n %h = Sqrt(%y)\n %z = Add(%h, %u)\n"),
     true},
    /* A result that nobody wants, one that nobody uses, a constant inside. */
    {GRAPH("%z",
           "_, %z, %w = fuse(%a) { body(%p: f32[N, 4]) { %m = Abs(%p) %two = Constant() {value = "
           "f32[] 2} %e = Mul(%m, %two) %f = Sub(%e, %m) return(%m, %f, %e) } }\n"),
     true},
    /* Other names: a parameter, a constant, a value twice, an operand twice. */
    {GRAPH("%y, %z",
           "%y, %k, %l = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) %c = "
           "Constant() {value = f32[] 2} return(%p, %c, %m) } }\n %f = Mul(%y, %k)\n %z = "
           "Add(%f, %l)\n"),
     false},
    {GRAPH("%y, %z", "%y, %z = fuse(%a) { body(%p: f32[N, 4]) { %m = Abs(%p) return(%m, %m) } }\n"),
     false},
    {GRAPH("%z, %w",
           "%y, %u = fuse(%a, %a) { body(%p: f32[N, 4], %q: f32[N, 4]) { %m = Mul(%p, %q) "
           "return(%m, %m) } }\n "
           "%z = assign(%y, %one, %i) {rule = [select(0, $0), select(0, 0)]}\n %w = Abs(%u)\n"),
     false},
    /* Writes in place: to what was computed there, to an operand that dies in it, to one that does
     * not. */
    {GRAPH("%y",
           "%y = fuse(%a, %s, %i) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { %m = Mul(%p, %q) "
           "%n = assign(%m, %q, %j) {rule = [select(0, $0)]} return(%n) } }\n"),
     true},
    {GRAPH("%y",
           "%y = fuse(%a, %s, %i) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { "
           "%n = assign(%p, %q, %j) {rule = [select(0, $0)]} %m = Mul(%n, %q) return(%m) } }\n"),
     true},
    {GRAPH("%z",
           "%y = fuse(%a, %s, %i) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { "
           "%n = assign(%p, %q, %j) {rule = [select(0, $0)]} %m = Mul(%n, %p) return(%m) } }\n"
           "%z = Add(%y, %a)\n"),
     true},
    {GRAPH("%z",
           "%y = fuse(%x, %s, %i) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { "
           "%n = assign(%p, %q, %j) {rule = [select(0, $0)]} return(%n) } }\n %z = Add(%y, %x)\n"),
     true},
    {GRAPH("%z",
           "%y = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) return(%m) } }\n"
           "%z = assign(%y, %s, %i) {rule = [select(0, $0)]}\n"),
     true},
    /* A size that the block makes is known behind it. */
    {GRAPH("%y, %z", "%r, %y = fuse(%b, %s) { body(%p: bool[N], %q: f32[4]) { %n = NonZero(%p) "
                     "%f = Cast(%n) {to = 1} %g = Abs(%f) return(%n, %g) } }\n"
                     "%h = Mul(%y, %y)\n %z = Add(%h, %one)\n"),
     true},
    /* In loops and branches, carried and captured. */
    {GRAPH("%y, %z",
           "%y, %z = Loop(%trips, _, %a) { body(%k: i64[], %c: bool[], %v: f32[N, 4]) { %w = "
           "fuse(%v, %s, %k) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { %m = Mul(%p, %q) "
           "%n = assign(%m, %q, %j) {rule = [select(0, $0)]} return(%n) } }\n"
           "%o = Abs(%w)\n return(%c, %w, %o) } }\n"),
     true},
    {GRAPH("%y", "%y = Loop(%trips, _, %a) { body(%k: i64[], %c: bool[], %v: f32[N, 4]) { %w = "
                 "fuse(%v, %s, %k) { body(%p: f32[N, 4], %q: f32[4], %j: i64[]) { "
                 "%n = assign(%p, %q, %j) {rule = [select(0, $0)]} return(%n) } }\n"
                 "return(%c, %w) } }\n"),
     true},
    {GRAPH("%z",
           "%g = Equal(%t, %i)\n %y = If(%g) { then_branch() { %w = fuse(%a, %s) { body(%p: "
           "f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) return(%m) } } return(%w) } else_branch() "
           "{ return(%a) } }\n %h = Sqrt(%y)\n %z = Add(%h, %a)\n"),
     true},
    {GRAPH("%y",
           "%l = SequenceEmpty() {dtype = 1}\n %w = fuse(%a) { body(%p: f32[N, 4]) { %m = Abs(%p) "
           "return(%m) } }\n %q = SequenceInsert(%l, %w)\n %y = SequenceAt(%q, %i)\n"),
     true},
    /* One into the next. */
    {GRAPH(
         "%z",
         "%y, %u = fuse(%a, %s) { body(%p: f32[N, 4], %q: f32[4]) { %m = Mul(%p, %q) %e = Exp(%m) "
         "return(%m, %e) } }\n %z = fuse(%y, %u) { body(%p2: f32[N, 4], %q2: f32[N, 4]) { %m2 = "
         "Sub(%p2, %q2) %e2 = Abs(%m2) return(%e2) } }\n"),
     true},
};

static void same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int64_t size = 3; size < 40; size += 35) {
            const struct rewrite_check check = {
                .text = programs[i].text, .passes = "unfuse", .size = size, .scalar = 0, .seed = i};
            assert_true(rewrite_check(&check));
            const struct rewrite_check all = {
                .text = programs[i].text, .size = size, .scalar = 0, .seed = i};
            assert_true(rewrite_check(&all));
        }
}

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(ir_verify(graph));
    return graph;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define ROWS(outputs, ops)                                                                         \
    "graph @g opset(\"\": 18) ir_version(8) (%x: f32[2, N, 9], %m: f32[N, 64], %g: f32[64], "      \
    "%h: f32[64], %s: f32[N, 1]) -> (" outputs ") {\n"                                             \
    "  %last = Constant() {value = i64[1] [-1]}\n  %two = Constant() {value = i64[2] [1, 2]}\n"    \
    "  %eps = Constant() {value = f32[] 1e-5}\n  %half = Constant() {value = f32[] 0.5}\n" ops     \
    "  return(" outputs ")\n}\n"

static const char *const rows[] = {
    ROWS("%score, %label, %keep",
         "%top = ReduceMax(%x, %last)\n %less = Sub(%x, %top)\n %e = Exp(%less)\n "
         "%sum = ReduceSum(%e, %last)\n %p = Div(%e, %sum)\n "
         "%score = ReduceMax(%p, %last) {keepdims = 0}\n "
         "%label = ArgMax(%p) {axis = -1, keepdims = 0}\n %keep = Greater(%score, %half)\n"),
    ROWS("%y", "%mean = ReduceMean(%m, %last)\n %d = Sub(%m, %mean)\n %d2 = Mul(%d, %d)\n "
               "%var = ReduceMean(%d2, %last) {keepdims = 0}\n %vare = Add(%var, %eps)\n "
               "%sd = Sqrt(%vare)\n %sdu = access(%sd) {rule = [unsqueeze(1)]}\n "
               "%n = Div(%d, %sdu)\n %ng = Mul(%n, %g)\n %y = Add(%ng, %h)\n"),
    ROWS("%z, %l", "%s2 = Neg(%s)\n %q = Add(%m, %s2)\n %sm = Softmax(%q) {axis = -1}\n "
                   "%z = Mul(%sm, %s2)\n %l = LayerNormalization(%z, %g, %h)\n"),
    ROWS("%v, %c", "%a = Abs(%x)\n %all = ReduceSum(%a, %two)\n %v = Div(%a, %all)\n "
                   "%t = Tanh(%m)\n %c = CumSum(%t, %last)\n"),
    /* One row of all elements, since they are few. */
    ROWS("%r, %u", "%e = Exp(%g)\n %p = Mul(%e, %h)\n %r = ReduceSum(%p) {keepdims = 0}\n "
                   "%u = Sub(%p, %r)\n"),
};

static void rows_have_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(rewrite_count(rows[i], "fuse", "= fuse(") >= 1);
        for (int64_t size = 0; size < 40; size += 13) {
            const struct rewrite_check check = {
                .text = rows[i], .passes = "fuse", .size = size, .scalar = 0, .seed = i};
            assert_true(rewrite_check(&check));
        }
    }
    assert_int_equal(rewrite_count(rows[0], "fuse", "= fuse("), 1);
    assert_int_equal(rewrite_count(rows[1], "fuse", "= fuse("), 1);
    assert_int_equal(rewrite_count(rows[2], "fuse", "= fuse("), 1);
    assert_int_equal(rewrite_count(rows[4], "fuse", "= fuse("), 1);
}

/* ---- What is lent ---------------------------------------------------------------------------- */

static const char *refuses_exp(void *user, const struct ir_op *op)
{
    (void)user;
    return ir_op_is(op, IR_OP_Exp) ? "it is an exponential" : NULL;
}

static size_t count_taken_in(const struct ir_block *block)
{
    size_t n = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        n += block->owner && ir_op_is(block->owner, IR_OP_fuse) && !ir_op_is(op, IR_OP_Constant) &&
             !ir_op_is(op, IR_OP_return);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            n += count_taken_in(op->blocks[i]);
    }
    return n;
}

static size_t count_kernels_in(const struct ir_block *block)
{
    size_t n = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        n += ir_fuse_body(op) != NULL;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            n += count_kernels_in(op->blocks[i]);
    }
    return n;
}

/* How many ops are in fuse ops. */
static size_t count_taken_by(const struct ir_fusion *fusion, const char *text)
{
    static const char *const names[] = {"fuse"};
    const struct pipeline pipeline = {.fusion = fusion};
    struct ir_graph *graph = parse(text);
    no_error(pipeline_run_passes(graph, names, 1, &pipeline));
    const size_t n = count_taken_in(graph->body);
    ir_graph_free(graph);
    return n;
}

static void lenders_say_what_they_take(void **state)
{
    (void)state;
    static const char text[] =
        ROWS("%y", "%e = Exp(%m)\n %f = Neg(%e)\n %r = ReduceSum(%f, %last)\n %n = Div(%f, %r)\n "
                   "%o = Abs(%n)\n %y = assign(%o, %s) {rule = [slice(1, 0, 2, 1)]}\n");
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL, .machine = &cost_cpu, .most_operands = 8};
    assert_int_equal(count_taken_by(&fusion, text), 6);
    fusion.classes = IR_FUSES_ELEMENTWISE | IR_FUSES_ROWS;
    assert_int_equal(count_taken_by(&fusion, text), 5);
    fusion.classes = IR_FUSES_ELEMENTWISE | IR_FUSES_RULES;
    assert_int_equal(count_taken_by(&fusion, text), 5); /* two on each side of the reduction */
    fusion.classes = IR_FUSES_ALL;
    fusion.refuses = refuses_exp;
    assert_int_equal(count_taken_by(&fusion, text), 5);
    fusion.most_operands = 1;
    assert_int_equal(count_taken_by(&fusion, text), 0);
}

static size_t count_kernels_by(const struct ir_fusion *fusion, const char *text)
{
    static const char *const names[] = {"fuse"};
    const struct pipeline pipeline = {.fusion = fusion};
    struct ir_graph *graph = parse(text);
    no_error(pipeline_run_passes(graph, names, 1, &pipeline));
    no_error(ir_verify(graph));
    const size_t n = count_kernels_in(graph->body);
    ir_graph_free(graph);
    return n;
}

/* Heads of %x, channels first, one row of classes per anchor. */
#define PLANES(shape, rows, ops)                                                                   \
    "graph opset(\"\": 18) (%x: f32[1, " shape "]) -> (%y) {\n"                                    \
    " %p = access(%x) {rule = [select(0, 0)]}\n %t = access(%p) {rule = [permute(1, 2, 0)]}\n"     \
    " %r = access(%t) {rule = [reshape(" rows ")]}\n " ops " return(%y)\n}\n"

/* The CPU reads rows from planes where rows fill vectors, and what is permuted is not read
 * otherwise. */
static void planes_are_read_where_they_lie(void **state)
{
    (void)state;
    const struct ir_fusion *fusion = device_find("cpu")->fusion(NULL);
    struct ir_fusion none = *fusion;
    none.refuses_planes = NULL;
    static const char softmax[] =
        PLANES("162, 20, 20", "800, 81", "%y = Softmax(%r) {axis = -1}\n"),
                      both[] = PLANES("162, 20, 20", "800, 81",
                                      "%s = Softmax(%r) {axis = -1}\n %y = Mul(%s, %r)\n");
    assert_int_equal(count_taken_by(fusion, softmax), 2);
    assert_int_equal(count_kernels_by(fusion, softmax), 1);
    assert_int_equal(count_taken_by(&none, softmax), 1); /* the softmax alone */
    assert_int_equal(count_kernels_by(fusion, both), 1);
    static const char *const apart[] = {
        PLANES("162, 3, 3", "18, 81", "%y = Softmax(%r) {axis = -1}\n"),
        PLANES("258, 20, 20", "800, 129", "%y = Softmax(%r) {axis = -1}\n"),
        PLANES("162, 20, 20", "800, 81",
               "%u = Neg(%t)\n %s = Softmax(%r) {axis = -1}\n "
               "%w = access(%u) {rule = [reshape(800, 81)]}\n "
               "%y = Sub(%s, %w)\n"),
        PLANES("162, 20, 20", "800, 81", "%y = Softmax(%r) {axis = 0}\n"),
        PLANES("162, 20, 20", "800, 81", "%y = Neg(%r)\n"),
        PLANES("162, 20, 20", "800, 81", "%y = NonZero(%r)\n"),
    };
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        assert_int_equal(count_taken_by(fusion, apart[i]), count_taken_by(&none, apart[i]));
}

/* On the CPU lines that become columns are moved by Transpose, but for short ones. */
static void long_lines_are_crossed_by_themselves(void **state)
{
    (void)state;
    const struct ir_fusion *fusion = device_find("cpu")->fusion(NULL);
#define CROSSED(shape, perm)                                                                       \
    "graph opset(\"\": 18) (%x: f32[" shape "]) -> (%y) {\n"                                       \
    " %n = Neg(%x)\n %t = access(%n) {rule = [permute(" perm ")]}\n"                               \
    " %y = Exp(%t)\n return(%y)\n}\n"
    assert_int_equal(count_taken_by(fusion, CROSSED("80, 1600", "1, 0")), 0);
    assert_int_equal(count_taken_by(fusion, CROSSED("2, 16, 16", "0, 2, 1")), 0);
    assert_int_equal(count_taken_by(fusion, CROSSED("15, 1600", "1, 0")), 3);
    assert_int_equal(count_taken_by(fusion, CROSSED("1600, 3", "1, 0")), 3);
    assert_int_equal(count_taken_by(fusion, CROSSED("80, 16, 1600", "1, 0, 2")), 3);
}

/* What has nothing to do with each other is one launch, but not what needs something between, nor a
 * view. */
static void kernels_stand_side_by_side(void **state)
{
    (void)state;
    static const char apart[] =
        "graph opset(\"\": 18) (%x: f32[N, 4], %y: f32[M, 3], %z: f32[K, 4, 5]) -> (%a, %b, %c) {\n"
        " %x1 = Exp(%x)\n %a = Neg(%x1)\n %y1 = Exp(%y)\n %b = Softmax(%y1) {axis = -1}\n"
        " %c = access(%z) {rule = [reshape(-1)]}\n return(%a, %b, %c)\n}\n";
    static const char levels[] =
        "graph opset(\"\": 18) (%x: f32[N, 4], %y: f32[M, 4], %w: f32[4, 4]) -> (%a, %b) {\n"
        " %x1 = Exp(%x)\n %x2 = Neg(%x1)\n %x3 = MatMul(%x2, %w)\n %x4 = Exp(%x3)\n"
        " %a = Neg(%x4)\n %y1 = Exp(%y)\n %y2 = Neg(%y1)\n %y3 = MatMul(%y2, %w)\n"
        " %y4 = Exp(%y3)\n %b = Neg(%y4)\n return(%a, %b)\n}\n";
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL, .machine = &cost_gpu, .most_operands = 8};
    assert_int_equal(count_kernels_by(&fusion, apart), 2);
    assert_int_equal(count_kernels_by(&fusion, levels), 4);
    fusion.side_by_side = true;
    assert_int_equal(count_kernels_by(&fusion, apart), 1);
    assert_int_equal(count_taken_by(&fusion, apart), 4);
    assert_int_equal(count_kernels_by(&fusion, levels), 2);
    fusion.most_operands = 1;
    assert_int_equal(count_kernels_by(&fusion, apart), 2);
}

/* What a kernel computes of a row, it computes of a part of it as well, but not of a part of the
 * rows. */
static void parts_of_rows_join_rows(void **state)
{
    (void)state;
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL, .machine = &cost_gpu, .most_operands = 8};
#define ROW_PART(slice, last)                                                                      \
    "graph opset(\"\": 18) (%x: f32[64, 81], %c: f32[]) -> (%s, %y) {\n"                           \
    " %s = Softmax(%x) {axis = -1}\n %p = access(%s) {rule = [slice(" slice ")]}\n" last           \
    " return(%s, %y)\n}\n"
    static const char above[] = ROW_PART("1, 0, 80, 1", " %y = Greater(%p, %c)\n");
    static const char again[] = ROW_PART("1, 0, 80, 1", " %y = Softmax(%p) {axis = -1}\n");
    static const char rows[] = ROW_PART("0, 0, 60, 1", " %y = Greater(%p, %c)\n");
    assert_int_equal(count_taken_by(&fusion, above), 2);
    assert_int_equal(count_taken_by(&fusion, again), 2);
    fusion.row_parts = true;
    assert_int_equal(count_taken_by(&fusion, above), 3);
    assert_int_equal(count_taken_by(&fusion, again), 3);
    assert_int_equal(count_kernels_by(&fusion, again), 1);
    assert_int_equal(count_taken_by(&fusion, rows), 2);
}

/* What others need as well is computed for them beside, where a kernel may do that. */
static void what_others_need_moves_inside_too(void **state)
{
    (void)state;
    static const char text[] =
        "graph opset(\"\": 18) (%x: f32[64, 4], %i: i64[9]) -> (%y, %z) {\n"
        " %y = Exp(%x)\n %g = access(%y, %i) {rule = [gather(0, $0)]}\n %z = Neg(%g)\n"
        " return(%y, %z)\n}\n";
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL, .machine = &cost_gpu, .most_operands = 8};
    fusion.moves_inside = true;
    assert_int_equal(count_taken_by(&fusion, text), 2);
    fusion.side_by_side = true;
    assert_int_equal(count_taken_by(&fusion, text), 3);
    assert_int_equal(count_kernels_by(&fusion, text), 1);
}

/* What a loop carries on, and writes a row of, is written where the row is computed, if nothing of
 * the kernel depends on how it was before, or is after. */
static void what_is_carried_is_written_with_rows(void **state)
{
    (void)state;
#define CARRIED(row, next)                                                                         \
    "graph opset(\"\": 18) (%n: i64[], %x: f32[50, 1, 64], %o: f32[50, 8], %w: f32[8, 8]) -> "     \
    "(%y) {\n"                                                                                     \
    " %last = Constant() {value = i64[1] [1]}\n"                                                   \
    " %y = Loop@16(%n, _, %o) { body(%i: i64[], %c: bool[], %t: f32[50, 8]) {\n"                   \
    "  %a = access(%x, %i) {rule = [select(0, $0)]}\n  %e = Exp(%a)\n"                             \
    "  %m = ReduceMax(%e, %last)\n"                                                                \
    "  %f = access(%m) {rule = [squeeze(0)]}\n" row "  return(%c, " next ") } }\n return(%y)\n}\n"
    static const char column[] =
        CARRIED("  %u = assign(%t, %f, %i) {rule = [select(0, $0), slice(0, 3, 4, 1)]}\n", "%u");
    static const char broadcast[] =
        CARRIED("  %u = assign(%t, %f, %i) {rule = [select(0, $0)]}\n", "%u");
    static const char read_before[] =
        CARRIED("  %u = assign(%t, %f, %i) {rule = [select(0, $0), slice(0, 3, 4, 1)]}\n"
                "  %z = MatMul(%t, %w)\n  %v = Add(%u, %z)\n",
                "%v");
    static const char read_behind[] =
        CARRIED("  %u = assign(%t, %f, %i) {rule = [select(0, $0), slice(0, 3, 4, 1)]}\n"
                "  %z = Neg(%u)\n  %v = MatMul(%z, %w)\n",
                "%v");
    struct ir_fusion fusion = {
        .classes = IR_FUSES_ALL, .machine = &cost_gpu, .most_operands = 8, .moves_inside = true};
    const size_t rows = count_taken_by(&fusion, column);
    fusion.updates = true;
    assert_int_equal(count_taken_by(&fusion, column), rows + 1);
    assert_int_equal(count_taken_by(&fusion, broadcast), rows);
    assert_int_equal(count_kernels_by(&fusion, read_before), 2);
    assert_int_equal(count_kernels_by(&fusion, read_behind), 2);
}

/* What is stacked row by row is written by the kernel that computes the rows, of a number of
 * iterations that is told before the first one and is not known to be few, if anybody wants it. */
static void what_is_stacked_is_written_with_rows(void **state)
{
    (void)state;
#define STACKED_OF(rows, trips, row, results)                                                      \
    "graph @g opset(\"\": 18) (%x: f32[" rows ", 8], %h: f32[8], %m: i64[]) -> (" results          \
    ") {\n" trips " %z, %y = Loop@16(%n, _, %h) { body(%i: i64[], %c: bool[], %t: f32[8]) {\n"     \
    "  %a = access(%x, %i) {rule = [select(0, $0)]}\n  %u = Add(%a, %t)\n  %v = Tanh(%u)\n" row    \
    "  return(%c, %v, %r) } }\n return(" results ")\n}\n"
#define STACKED(trips, row, results)                                                               \
    STACKED_OF("50", " %n = Constant() {value = i64[] " trips "}\n", row, results)
    static const struct {
        const char *text;
        bool is_written;
    } loops[] = {{STACKED("50", "  %r = Neg(%v)\n", "%z, %y"), true},
                 {STACKED("50", "  %r = Identity(%v)\n", "%z, %y"), false},
                 {STACKED("3", "  %r = Neg(%v)\n", "%z, %y"), false},
                 {STACKED("50", "  %r = Neg(%v)\n", "%z"), false},
                 {STACKED_OF("T",
                             " %s = Shape(%x)\n %o = Constant() {value = i64[] 0}\n"
                             " %n = Gather(%s, %o)\n",
                             "  %r = Neg(%v)\n", "%z, %y"),
                  true},
                 {STACKED_OF("T", " %n = Identity(%m)\n", "  %r = Neg(%v)\n", "%z, %y"), false}};
    static const char *const names[] = {"infer", "write_stacks", "infer", "fuse"};
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL & ~IR_FUSES_LOOPS,
                               .machine = &cost_gpu,
                               .most_operands = 8,
                               .updates = true};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        struct ir_graph *graph = parse(loops[i].text);
        const struct pipeline pipeline = {.fusion = &fusion};
        no_error(pipeline_run_passes(graph, names, 4, &pipeline));
        no_error(ir_verify(graph));
        const struct ir_op *loop = graph->body->first;
        while (!ir_op_is(loop, IR_OP_Loop))
            loop = loop->next;
        assert_int_equal(loop->n_operands, loops[i].is_written ? 4 : 3);
        assert_int_equal(loop->n_results, 2);
        assert_int_equal(count_kernels_in(graph->body), 1);
        assert_int_equal(count_taken_in(graph->body), loops[i].is_written ? 5 : 4 - (i == 1));
        ir_graph_free(graph);
    }
}

static const char *refuses_all(void *user, const struct ir_op *fuse)
{
    (void)user;
    (void)fuse;
    return "there is none";
}

static const char *refuses_none(void *user, const struct ir_op *fuse)
{
    (void)user, (void)fuse;
    return NULL;
}

static void print_fused(const char *program, const struct ir_fusion *fusion, struct text *text)
{
    static const char *const names[] = {"infer", "fuse"};
    struct ir_graph *graph = parse(program);
    const struct pipeline pipeline = {.fusion = fusion};
    no_error(pipeline_run_passes(graph, names, 2, &pipeline));
    no_error(ir_verify(graph));
    text_init(text, &allocator_default);
    ir_print_graph(graph, true, text);
    ir_graph_free(graph);
}

/* Of products that are in no kernel the graph is what it was. */
static void products_that_are_refused(void **state)
{
    static const char program[] =
        "graph @g opset(\"\": 18) (%x: f32[1, 8], %w: f32[8, 12], %c: f32[4, 3]) -> (%y, %z) {\n"
        " %p = MatMul(%x, %w)\n %a = access(%p) {rule = [reshape(3, 4)]}\n"
        " %b = access(%a) {rule = [permute(1, 0)]}\n %s = Add(%c, %b)\n %y = Tanh(%s)\n"
        " %z = Exp(%c)\n return(%y, %z)\n}\n";
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL & ~IR_FUSES_PRODUCTS,
                               .machine = &cost_gpu,
                               .most_operands = 8,
                               .refuses_whole = refuses_all};
    struct text without, refused;
    (void)state;
    print_fused(program, &fusion, &without);
    fusion.classes = IR_FUSES_ALL;
    print_fused(program, &fusion, &refused);
    assert_string_equal(text_string(&refused), text_string(&without));
    text_free(&refused);
    text_free(&without);
}

static size_t count_ops(const struct ir_block *block, enum ir_op_id id)
{
    size_t n = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        n += ir_op_is(op, id);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            n += count_ops(op->blocks[i], id);
    }
    return n;
}

/* Rows that a mask keeps are read by numbers, found once, where kernels gather and keep none: of a
 * mask of as many rows. */
static void kept_rows_are_read_by_numbers(void **state)
{
    (void)state;
#define KEPT(ops, results)                                                                         \
    "graph @g opset(\"\": 18) (%x: f32[N, 4], %y: f32[1, N, 3], %m: bool[N], %o: bool[K]) -> "     \
    "(" results ") {\n" ops " return(" results ")\n}\n"
    static const struct {
        const char *text;
        uint32_t classes;
        size_t compresses, finds, kernels;
    } rows[] = {
        {KEPT(" %a = Compress(%x, %m) {axis = 0}\n %b = access(%y, %m) {rule = [mask(1, $0)]}\n"
              " %n = NonZero(%m)\n %c = Neg(%a)\n %d = Exp(%b)\n",
              "%c, %d, %n"),
         IR_FUSES_GRIDS, 0, 1, 1},
        {KEPT(" %a = Compress(%x, %m) {axis = -2}\n %c = Neg(%a)\n", "%c"), IR_FUSES_GRIDS, 0, 1,
         1},
        {KEPT(" %a = Compress(%x, %o) {axis = 0}\n %c = Neg(%a)\n", "%c"), IR_FUSES_GRIDS, 1, 0, 0},
        {KEPT(" %a = Compress(%x, %m)\n %c = Neg(%a)\n", "%c"), IR_FUSES_GRIDS, 1, 0, 0},
        {KEPT(" %a = Compress(%x, %m) {axis = 0}\n %c = Neg(%a)\n", "%c"), IR_FUSES_ALL, 1, 0, 0},
        {KEPT(" %a = Compress(%x, %m) {axis = 0}\n %c = Neg(%a)\n", "%c"),
         IR_FUSES_GRIDS & ~IR_FUSES_GATHERS, 1, 0, 0}};
    static const char *const names[] = {"infer", "number_masks", "infer", "fuse"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ir_fusion fusion = {.classes = rows[i].classes,
                                         .machine = &cost_gpu,
                                         .most_operands = 8,
                                         .moves_inside = true,
                                         .side_by_side = true};
        const struct pipeline pipeline = {.fusion = &fusion};
        struct ir_graph *graph = parse(rows[i].text);
        no_error(pipeline_run_passes(graph, names, 4, &pipeline));
        no_error(ir_verify(graph));
        assert_int_equal(count_ops(graph->body, IR_OP_Compress), rows[i].compresses);
        assert_int_equal(count_ops(graph->body, IR_OP_NonZero), rows[i].finds);
        assert_int_equal(count_kernels_in(graph->body), rows[i].kernels);
        ir_graph_free(graph);
    }
}

/* What is computed before a loop for a kernel of its iterations goes into that, where each computes
 * other elements. */
static void what_is_before_a_loop_goes_into_its_kernel(void **state)
{
    (void)state;
#define BEFORE(body)                                                                               \
    "graph @g opset(\"\": 18) (%x: f32[5, 8], %b: f32[8], %h: f32[1, 8], %w: f32[8, 8]) -> (%y) "  \
    "{\n"                                                                                          \
    " %n = Constant() {value = i64[] 5}\n %t = Constant() {value = bool[] true}\n"                 \
    " %a = Add(%x, %b)\n %y = Loop(%n, %t, %h) { body(%i: i64[], %c: bool[], %s: f32[1, 8]) {\n"   \
    " %r = access(%a, %i) {rule = [select(0, $0)]}\n %p = MatMul(%s, %w)\n" body                   \
    " return(%c, %u) } }\n return(%y)\n}\n"
    static const struct {
        const char *text;
        bool refuses, goes;
    } rows[] = {
        {BEFORE(" %q = Add(%p, %r)\n %u = Tanh(%q)\n"), false, true},
        {BEFORE(" %q = Add(%p, %r)\n %u = Tanh(%q)\n"), true, false},
        /* two rows each time, or all of it */
        {BEFORE(" %d = access(%a) {rule = [select(0, 0)]}\n %q = Add(%p, %r)\n %u = Add(%q, %d)\n"),
         false, false},
        {BEFORE(" %d = ReduceMax(%a) {keepdims = 1}\n %q = Add(%p, %r)\n %u = Add(%q, %d)\n"),
         false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const char *const names[] = {"infer", "fuse"};
        const struct ir_fusion fusion = {.classes = IR_FUSES_GRIDS & ~IR_FUSES_LOOPS,
                                         .machine = &cost_gpu,
                                         .most_operands = 16,
                                         .moves_inside = true,
                                         .side_by_side = true,
                                         .refuses_whole =
                                             rows[i].refuses ? refuses_all : refuses_none};
        const struct pipeline pipeline = {.fusion = &fusion};
        struct ir_graph *graph = parse(rows[i].text);
        no_error(pipeline_run_passes(graph, names, 2, &pipeline));
        no_error(ir_verify(graph));
        size_t before = 0;
        for (const struct ir_op *op = graph->body->first; op; op = op->next)
            before += ir_op_is(op, IR_OP_Add);
        assert_int_equal(before, rows[i].goes ? 0 : 1);
        ir_graph_free(graph);
    }
}

/* What is computed behind a loop of what its last iteration leaves is one more value that it
 * carries, where one kernel leaves that. */
static void what_is_behind_a_loop_goes_into_its_kernel(void **state)
{
    (void)state;
#define BEHIND(trips, read, behind)                                                                \
    "graph @g opset(\"\": 18) (%x: f32[5, 8], %h: f32[1, 8], %w: f32[8, 8], %b: f32[1, 8]) -> "    \
    "(%y) {\n %n = Constant() {value = i64[] " trips "}\n"                                         \
    " %e, %f, %s = Loop(%n, _, %h, %h) { body(%i: i64[], %c: bool[], %p: f32[1, 8], %q: f32[1, "   \
    "8]) {\n %m = MatMul(%p, %w)\n %r = Add(%m, %q)\n %u = Tanh(%r)\n %v = " read                  \
    "\n return(%c, %u, %v, %u) } }\n" behind " return(%y)\n}\n"
    static const struct {
        const char *text;
        bool refuses, goes;
    } rows[] = {
        {BEHIND("5", "Exp(%u)", " %y = Add(%e, %f)\n"), false, true},
        {BEHIND("5", "Exp(%u)", " %y = Neg(%f)\n"), false, true},
        {BEHIND("5", "Exp(%u)", " %y = Add(%e, %f)\n"), true, false},
        {BEHIND("0", "Exp(%u)", " %y = Add(%e, %f)\n"), false, false},
        {BEHIND("5", "Exp(%u)", " %y = Add(%e, %b)\n"), false, false},
        {BEHIND("5", "Exp(%u)", " %y = Add(%e, %x)\n"), false, false},
        /* not computed by an iteration */
        {BEHIND("5", "Identity(%b)", " %y = Add(%e, %f)\n"), false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const char *const names[] = {"infer", "fuse", "infer"};
        const struct ir_fusion fusion = {.classes = IR_FUSES_GRIDS & ~IR_FUSES_LOOPS,
                                         .machine = &cost_gpu,
                                         .most_operands = 16,
                                         .moves_inside = true,
                                         .side_by_side = true,
                                         .refuses_whole =
                                             rows[i].refuses ? refuses_all : refuses_none};
        const struct pipeline pipeline = {.fusion = &fusion};
        struct ir_graph *graph = parse(rows[i].text);
        no_error(pipeline_run_passes(graph, names, 3, &pipeline));
        no_error(ir_verify(graph));
        const struct ir_op *loop = graph->body->first;
        while (!ir_op_is(loop, IR_OP_Loop))
            loop = loop->next;
        assert_int_equal(loop->n_results, rows[i].goes ? 4 : 3);
        assert_true((loop->next == ir_block_return(graph->body)) == rows[i].goes);
        /* what is stacked is behind what is carried */
        assert_int_equal(loop->results[loop->n_results - 1].type->rank, 3);
        ir_graph_free(graph);
    }
}

/* An operand of several ops is one of the kernel. */
static void operands_are_counted_once(void **state)
{
    (void)state;
    static const char text[] =
        "graph opset(\"\": 18) (%x: f32[64, 4], %y: f32[64, 4]) -> (%r) {\n"
        " %a = Mul(%x, %y)\n %b = Sub(%x, %y)\n %c = Add(%x, %y)\n %d = Mul(%a, %b)\n"
        " %r = Add(%c, %d)\n return(%r)\n}\n";
    struct ir_fusion fusion = {.classes = IR_FUSES_ALL, .machine = &cost_gpu, .most_operands = 3};
    assert_int_equal(count_taken_by(&fusion, text), 5);
    assert_int_equal(count_kernels_by(&fusion, text), 1);
}

static uint32_t count_taken(const struct plan *plan)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        taken += plan->last_uses[i];
    return taken;
}

static uint32_t count_shared(const struct plan *plan)
{
    uint32_t shared = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        shared += plan->placed[i].back != 0;
    return shared;
}

static void same_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct ir_graph *fused = parse(programs[i].text), *plain = parse(programs[i].text);
        struct plan *a, *b;
        bool changed = false;
        ir_fuse_inline_all(plain, &changed);
        assert_true(changed);
        no_error(ir_verify(plain));
        no_error(plan_create(fused, test_device(), &a));
        no_error(plan_create(plain, test_device(), &b));
        if (programs[i].exact &&
            (a->n_placed != b->n_placed || a->n_results != b->n_results ||
             count_taken(a) != count_taken(b) || count_shared(a) != count_shared(b) ||
             a->n_symbols != b->n_symbols))
            fail_msg("program %zu: %u places, %u of the caller's, %u taken, %u shared, where %u, "
                     "%u, %u, %u "
                     "were",
                     i, a->n_placed, a->n_results, count_taken(a), count_shared(a), b->n_placed,
                     b->n_results, count_taken(b), count_shared(b));
        plan_free(a);
        plan_free(b);
        ir_graph_free(fused);
        ir_graph_free(plain);
    }
}

/* ---- Files ----------------------------------------------------------------------------------- */

static tssa_status *append(void *context, const void *data, size_t size)
{
    text_append(context, data, size);
    return NULL;
}

static void file_has_none(void **state)
{
    (void)state;
    const struct output_sink sink = {append, NULL};
    static const char *const ops[] = {"Mul", "Exp", "Add"};
    struct ir_graph *fused = parse(programs[0].text), *plain = parse(programs[0].text);
    struct text files[2];
    bool changed = false;
    ir_fuse_inline_all(plain, &changed);
    const struct ir_graph *graphs[] = {fused, plain};
    for (int i = 0; i < 2; i++) {
        struct output_sink to = sink;
        text_init(&files[i], &allocator_default);
        to.context = &files[i];
        no_error(onnx_export(graphs[i], NULL, &to));
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_non_null(memmem(text_string(&files[0]), files[0].size, ops[i], strlen(ops[i])));
    assert_null(memmem(text_string(&files[0]), files[0].size, "fuse", 4));
    assert_int_equal(files[0].size, files[1].size);
    assert_memory_equal(text_string(&files[0]), text_string(&files[1]), files[0].size);
    /* The graph is as it was. */
    no_error(ir_verify(fused));
    changed = false;
    ir_fuse_inline_all(fused, &changed);
    assert_true(changed);
    for (int i = 0; i < 2; i++)
        text_free(&files[i]);
    ir_graph_free(fused);
    ir_graph_free(plain);
}

/* A block does not see what is computed around it, though it computes the same. */
static void isolated(void **state)
{
    (void)state;
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N]) -> (%y, %z) {\n"
        "  %k = Constant() {value = f32[] 2}\n  %y = Mul(%x, %k)\n"
        "  %z = fuse(%x) { body(%p: f32[N]) { %l = Constant() {value = f32[] 2} %m = Mul(%p, %l) "
        "%l2 = Constant() {value = f32[] 2} %m2 = Mul(%p, %l2) %n = Add(%m, %m2) return(%n) } }\n"
        "  return(%y, %z)\n}\n";
    assert_int_equal(rewrite_count(text, "common_subexpressions", "Constant"), 2);
    assert_int_equal(rewrite_count(text, "common_subexpressions", "Mul"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(same_plan),
        cmocka_unit_test(file_has_none),
        cmocka_unit_test(isolated),
        cmocka_unit_test(rows_have_the_same_bits),
        cmocka_unit_test(lenders_say_what_they_take),
        cmocka_unit_test(planes_are_read_where_they_lie),
        cmocka_unit_test(long_lines_are_crossed_by_themselves),
        cmocka_unit_test(kernels_stand_side_by_side),
        cmocka_unit_test(parts_of_rows_join_rows),
        cmocka_unit_test(what_others_need_moves_inside_too),
        cmocka_unit_test(what_is_carried_is_written_with_rows),
        cmocka_unit_test(what_is_stacked_is_written_with_rows),
        cmocka_unit_test(kept_rows_are_read_by_numbers),
        cmocka_unit_test(operands_are_counted_once),
        cmocka_unit_test(products_that_are_refused),
        cmocka_unit_test(what_is_before_a_loop_goes_into_its_kernel),
        cmocka_unit_test(what_is_behind_a_loop_goes_into_its_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
