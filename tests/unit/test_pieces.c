/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that are pieces of their operand's memory (runtime/pieces.h): which are, and that runs
 * give the bits that they give when each is a copy, with dead memory written over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"
#include "runtime/poison.h"

#define ROWS 4
#define COLUMNS 6
#define RUNS 12

struct graph_run {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
};

static void open_graph(struct graph_run *g, const char *ops)
{
    char *text = xprintf(
        "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[4, 6], %%k: i64[], %%c: bool[], %%t: "
        "i64[]) -> (%%z) {\n"
        "  %%s0 = Constant() {value = i64[1] [0]}: i64[1]\n"
        "  %%s1 = Constant() {value = i64[1] [1]}: i64[1]\n"
        "  %%s2 = Constant() {value = i64[1] [2]}: i64[1]\n"
        "  %%far = Constant() {value = i64[1] [99]}: i64[1]\n"
        "  %%i0 = Constant() {value = i64[] 0}: i64[]\n"
        "  %%i1 = Constant() {value = i64[] 1}: i64[]\n"
        "  %%w = Constant() {value = f32[2, 2] [1, 2, 3, 4]}: f32[2, 2]\n"
        "  %%a = Neg@13(%%x)\n%s  return(%%z)\n}\n",
        ops);
    no_error(ir_parse(&allocator_default, text, strlen(text), &g->graph));
    no_error(ir_infer_graph(g->graph));
    no_error(plan_create(g->graph, test_device(), &g->plan));
    free(text);
}

static void close_graph(struct graph_run *g)
{
    run_free(g->run);
    plan_free(g->plan);
    ir_graph_free(g->graph);
}

static uint32_t count_pieces(const struct plan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        n += plan->pieces[i];
    return n;
}

/* How many results are pieces; results are those of copies. */
static uint32_t pieces_of(const char *ops)
{
    struct graph_run pieces, copies;
    float x[ROWS * COLUMNS];
    int64_t k, trips;
    bool condition;
    const struct value values[] = {
        {.kind = TSSA_KIND_TENSOR,
         .tensor = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {ROWS, COLUMNS}, .data = x}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &k}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_BOOL, .data = &condition}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}},
    };
    const struct value *inputs[] = {&values[0], &values[1], &values[2], &values[3]};
    open_graph(&pieces, ops);
    open_graph(&copies, ops);
    const uint32_t n = count_pieces(pieces.plan);
    memset(copies.plan->pieces, 0, copies.plan->n_outputs * sizeof *copies.plan->pieces);
    copies.plan->n_placed = copies.plan->n_leaving = copies.plan->n_parts = 0;
    no_error(poison_plan(pieces.plan));
    no_error(run_create(pieces.plan, &allocator_default, NULL, false, &pieces.run));
    no_error(run_create(copies.plan, &allocator_default, NULL, false, &copies.run));
    for (int i = 0; i < RUNS; i++) {
        struct value got = {0}, expected = {0};
        for (int e = 0; e < ROWS * COLUMNS; e++)
            x[e] = (float)((e * 7 + i) % 13) - 6;
        k = i % ROWS - (i % 2 ? ROWS : 0);
        condition = i % 3 == 0;
        trips = i % 5;
        no_error(run_execute(pieces.run, inputs, &got));
        no_error(run_execute(copies.run, inputs, &expected));
        assert_true(tensor_same_shape(&got.tensor, &expected.tensor));
        assert_memory_equal(got.tensor.data, expected.tensor.data, tensor_bytes(&got.tensor));
        value_release(&got);
        value_release(&expected);
    }
    close_graph(&pieces);
    close_graph(&copies);
    return n;
}

/* Which rows, and of what. */
static void test_shapes(void **state)
{
    (void)state;
    /*
     * One row, wherever it is; some rows; parts of rows are no piece, but where there is one row.
     */
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k)\n  %z = Abs@13(%r)\n"), 1);
    assert_int_equal(pieces_of("  %i = Unsqueeze@21(%k, %s0)\n  %r = Gather@13(%x, %i)\n"
                               "  %z = Abs@13(%r)\n"),
                     1);
    assert_int_equal(pieces_of("  %r = Slice@13(%x, %s1, %far)\n  %z = Abs@13(%r)\n"), 1);
    assert_int_equal(pieces_of("  %i = Unsqueeze@21(%k, %s0)\n"
                               "  %r = Slice@13(%x, %i, %far, %s0, %s1)\n  %z = Abs@13(%r)\n"),
                     1);
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k) {axis = 1}\n  %z = Abs@13(%r)\n"), 0);
    assert_int_equal(pieces_of("  %r = Slice@13(%x, %s1, %far, %s1)\n  %z = Abs@13(%r)\n"), 0);
    assert_int_equal(pieces_of("  %r = Slice@13(%x, %s0, %far, %s0, %s2)\n  %z = Abs@13(%r)\n"), 0);
    assert_int_equal(
        pieces_of("  %r = Slice@13(%x, %s0, %s1)\n  %q = Slice@13(%r, %s1, %far, %s1)\n"
                  "  %z = Abs@13(%q)\n"),
        2);
    assert_int_equal(pieces_of("  %r = Unsqueeze@21(%x, %s0)\n"
                               "  %p, %q = Split@18(%r) {axis = 1, num_outputs = 2}\n"
                               "  %z = Sub@14(%p, %q)\n"),
                     2);
    assert_int_equal(pieces_of("  %p, %q = Split@18(%x) {axis = 1, num_outputs = 2}\n"
                               "  %z = Sub@14(%p, %q)\n"),
                     0);
    /* A step that is not known could be anything. */
    assert_int_equal(
        pieces_of("  %i = Unsqueeze@21(%t, %s0)\n  %j = Add@14(%i, %s1)\n"
                  "  %r = Slice@13(%x, %s0, %far, %s0, %j)\n  %z = ReduceSum@13(%r)\n"),
        0);
}

/* Only where nobody waits for it. */
static void test_memory(void **state)
{
    (void)state;
    /* A constant; what is needed later anyway; what is not. */
    assert_int_equal(pieces_of("  %r = Gather@13(%w, %i1)\n  %z = Abs@13(%r)\n"), 1);
    assert_int_equal(pieces_of("  %r = Gather@13(%a, %k)\n  %b = Abs@13(%r)\n"
                               "  %z = Add@14(%a, %b)\n"),
                     1);
    assert_int_equal(pieces_of("  %b = Exp@13(%a)\n  %r = Gather@13(%b, %k)\n  %d = Abs@13(%r)\n"
                               "  %z = Add@14(%d, %r)\n"),
                     0);
    assert_int_equal(pieces_of("  %b = Abs@13(%a)\n  %r = Gather@13(%a, %k)\n  %d = Sin@7(%b)\n"
                               "  %z = Add@14(%d, %r)\n"),
                     0);
    /* All of it. */
    assert_int_equal(pieces_of("  %b = Unsqueeze@21(%a, %s0)\n  %r = Gather@13(%b, %i0)\n"
                               "  %d = Abs@13(%r)\n  %z = Add@14(%d, %r)\n"),
                     1);
    assert_int_equal(pieces_of("  %p, %q = Split@18(%a) {axis = 0, num_outputs = 2}\n"
                               "  %d = Exp@13(%x)\n  %r = Sub@14(%p, %q)\n"
                               "  %z = Concat@13(%r, %d) {axis = 0}\n"),
                     2);
    assert_int_equal(pieces_of("  %p, %q = Split@18(%a) {axis = 0, num_outputs = 2}\n"
                               "  %d = Exp@13(%p)\n  %e = Sin@7(%d)\n  %z = Sub@14(%e, %q)\n"),
                     0);
}

/* Only where kernels alone read it. */
static void test_readers(void **state)
{
    (void)state;
    assert_int_equal(pieces_of("  %z = Gather@13(%x, %k)\n"), 0);
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k)\n  %z = Unsqueeze@21(%r, %s0)\n"), 0);
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k)\n  %s = SequenceConstruct@11(%r)\n"
                               "  %z = SequenceAt@11(%s, %i0)\n"),
                     0);
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k)\n"
                               "  %v = Constant() {value = i64[1, 1] [2]}: i64[1, 1]\n"
                               "  %u = Constant() {value = f32[1] [9]}: f32[1]\n"
                               "  %z = ScatterND@18(%r, %v, %u)\n"),
                     0);
    assert_int_equal(pieces_of("  %r = Gather@13(%x, %k)\n"
                               "  %z = If@21(%c) { else_branch() { return(%r) } then_branch() {\n"
                               "    %b = Abs@13(%r)\n    return(%b) } }\n"),
                     0);
    /* In branches and loops, of what they capture; a loop does not go on with one. */
    assert_int_equal(
        pieces_of("  %y = If@21(%c) { else_branch() { %r = Gather@13(%a, %k)\n %b = Abs@13(%r)\n"
                  " return(%b) } then_branch() { %s = Gather@13(%a, %i0)\n %d = Exp@13(%s)\n"
                  " return(%d) } }\n  %z = Add@14(%y, %a)\n"),
        2);
    assert_int_equal(
        pieces_of("  %h = Gather@13(%x, %k)\n  %f = Constant() {value = i64[] 4}: i64[]\n"
                  "  %z = Loop@21(%t, _, %h) { body(%i: i64[], %d: bool[], %p: f32[6]) {\n"
                  " %m = Mod@13(%i, %f)\n %r = Gather@13(%a, %m)\n %e = Unsqueeze@21(%r, %s0)\n"
                  " %g = Squeeze@21(%e, %s0)\n %o = Add@14(%g, %p)\n return(%d, %o) } }\n"),
        1);
    assert_int_equal(
        pieces_of("  %h = Gather@13(%x, %k)\n  %f = Constant() {value = i64[] 4}: i64[]\n"
                  "  %z = Loop@21(%t, _, %h) { body(%i: i64[], %d: bool[], %p: f32[6]) {\n"
                  " %m = Mod@13(%i, %f)\n %r = Gather@13(%a, %m)\n %o = Add@14(%r, %p)\n"
                  " return(%d, %r) } }\n"),
        0);
    /* The operand is changed in place, or written over, when nobody reads the piece any more. */
    assert_int_equal(
        pieces_of("  %v = Constant() {value = i64[1, 1] [2]}: i64[1, 1]\n"
                  "  %b = Exp@13(%a)\n  %r = Gather@13(%b, %k)\n  %u = Unsqueeze@21(%r, %s0)\n"
                  "  %d = Abs@13(%u)\n  %e = ScatterND@18(%b, %v, %d)\n  %z = Neg@13(%e)\n"),
        1);
    assert_int_equal(
        pieces_of("  %v = Constant() {value = i64[1, 1] [2]}: i64[1, 1]\n"
                  "  %b = Exp@13(%a)\n  %r = Gather@13(%b, %k)\n  %u = Unsqueeze@21(%r, %s0)\n"
                  "  %e = ScatterND@18(%b, %v, %u)\n  %z = Neg@13(%e)\n"),
        0);
    assert_int_equal(pieces_of("  %b = Exp@13(%a)\n  %r = Gather@13(%b, %k)\n  %d = Sin@7(%r)\n"
                               "  %e = Abs@13(%b)\n  %z = Add@14(%e, %d)\n"),
                     1);
    assert_int_equal(pieces_of("  %b = Exp@13(%a)\n  %q = Unsqueeze@21(%b, %s0)\n"
                               "  %r = Gather@13(%q, %i0)\n  %z = Add@14(%r, %b)\n"),
                     1);
    /* A piece of a piece lies in what is in use for longer than either. */
    assert_int_equal(pieces_of("  %n = Constant() {value = i64[3] [2, 2, 6]}: i64[3]\n"
                               "  %f = Reshape@21(%a, %n)\n  %b = Exp@13(%f)\n"
                               "  %r = Gather@13(%b, %i1)\n  %p = Gather@13(%r, %i0)\n"
                               "  %q = Gather@13(%r, %i1)\n  %d = Sub@14(%p, %q)\n"
                               "  %e = Abs@13(%b)\n  %z = Add@14(%e, %d)\n"),
                     3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
