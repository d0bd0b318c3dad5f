/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose iterations differ in addresses alone (runtime/repeat.h): which are, and that they
 * give the bits, and the errors, of the same loop made step by step. That is what a plan does whose
 * dead memory is written over.
 *
 * TSSA_SEED=N runs one of the random loops and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "base/text.h"
#include "common/compiling.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/same_value.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"
#include "runtime/poison.h"

#define TRIPS 20
#define COLUMNS 5
#define ROWS (TRIPS + 4)
#define MOST_OUTPUTS 4
#define RUNS 4

/* What every loop here has: x, of which rows are read, a state of rows, and a row. */
static const char head[] = "graph @g opset(\"\": 21) ir_version(10) (%x: f32[R, 5], %s0: f32[R, "
                           "5], %h0: f32[5], %n: i64[]) "
                           "-> (%s9, %h9, %t9) {\n"
                           "  %trips = Constant() {value = i64[] 20}: i64[]\n"
                           "  %one = Constant() {value = i64[] 1}: i64[]\n"
                           "  %two = Constant() {value = i64[] 2}: i64[]\n"
                           "  %three = Constant() {value = i64[] 3}: i64[]\n"
                           "  %last = Constant() {value = i64[] 19}: i64[]\n"
                           "  %first = Constant() {value = i64[1] [0]}: i64[1]\n"
                           "  %others = Constant() {value = i64[2] [1, 2]}: i64[2]\n"
                           "  %half = Constant() {value = f32[] 0.5}: f32[]\n"
                           "  %square = Constant() {value = f32[5, 5] [0.5, 1, -0.25, 0, 0, 1, "
                           "0, 0, 0.125, 0, 0, -0.75, 0, 0, 1, 0, 0.3, 0, 0, 0, 1, 0, 0, 0.7, "
                           "0]}: f32[5, 5]\n"
                           "  %s9, %h9, %t9 = Loop(%trips, _, %s0, %h0) {\n"
                           "    body(%i: i64[], %c: bool[], %s: f32[R, 5], %h: f32[5]) {\n";
static const char tail[] = "    }\n  }\n  return(%s9, %h9, %t9)\n}\n";

struct loop_run {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    struct value outputs[MOST_OUTPUTS];
};

enum how { REPEATED, COMPILED, BY_STEPS };

static void compile_graph(struct ir_graph *graph)
{
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .compile = TSSA_COMPILE_WAIT};
    const tssa_optimize_options target = {.target = TSSA_TARGET_SESSION};
    const struct pipeline pipeline = {.options = &target};
    struct compile_report report;
    no_error(pipeline_run(graph, 1, &pipeline)); /* as a session's graph is */
    no_error(session_graph_fuse(graph, test_device(), &options));
    no_error(session_graph_compile(graph, test_device(), -1, &options, &report));
}

static void open_loop(struct loop_run *l, const char *body, enum how how)
{
    char *text = xprintf("%s%s%s", head, body, tail);
    *l = (struct loop_run){0};
    no_error(ir_parse(&allocator_default, text, strlen(text), &l->graph));
    no_error(ir_infer_graph(l->graph));
    if (how == COMPILED)
        compile_graph(l->graph);
    no_error(plan_create(l->graph, test_device(), &l->plan));
    if (how == BY_STEPS)
        no_error(poison_plan(l->plan));
    no_error(run_create(l->plan, &allocator_default, NULL, false, &l->run));
    free(text);
}

static void close_loop(struct loop_run *l)
{
    for (int i = 0; i < MOST_OUTPUTS; i++)
        value_release(&l->outputs[i]);
    run_free(l->run);
    plan_free(l->plan);
    ir_graph_free(l->graph);
}

/* The inputs, of the run's number; x may have fewer rows. */
struct feeds {
    float x[ROWS * COLUMNS], s[ROWS * COLUMNS], h[COLUMNS];
    int64_t n;
    struct value values[4];
    const struct value *inputs[4];
};

static void fill_feeds(struct feeds *f, int rows, uint32_t seed)
{
    random_floats(f->x, (size_t)ROWS * COLUMNS, seed);
    random_floats(f->s, (size_t)ROWS * COLUMNS, seed + 1);
    random_floats(f->h, COLUMNS, seed + 2);
    f->n = seed % 3;
    const struct tensor tensors[] = {
        {.dtype = TSSA_FLOAT, .rank = 2, .dims = {rows, COLUMNS}, .data = f->x},
        {.dtype = TSSA_FLOAT, .rank = 2, .dims = {rows, COLUMNS}, .data = f->s},
        {.dtype = TSSA_FLOAT, .rank = 1, .dims = {COLUMNS}, .data = f->h},
        {.dtype = TSSA_INT64, .rank = 0, .data = &f->n}};
    for (int i = 0; i < 4; i++) {
        f->values[i] = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensors[i]};
        f->inputs[i] = &f->values[i];
    }
}

static void release_outputs(struct loop_run *l)
{
    for (int i = 0; i < MOST_OUTPUTS; i++)
        value_release(&l->outputs[i]);
}

/* Both fail alike, or give the same. Every other run writes where the one before has. */
static bool run_both(struct loop_run *loop, struct loop_run *steps, const struct feeds *feeds,
                     bool again)
{
    if (!again) {
        release_outputs(loop);
        release_outputs(steps);
    }
    tssa_status *a = run_execute(loop->run, feeds->inputs, loop->outputs);
    tssa_status *b = run_execute(steps->run, feeds->inputs, steps->outputs);
    assert_int_equal(tssa_status_code(a), tssa_status_code(b));
    const bool fails = a != NULL;
    if (fails)
        assert_string_equal(tssa_status_message(a), tssa_status_message(b));
    for (uint32_t i = 0; !fails && i < loop->plan->body->n_returns; i++)
        assert_true(same_value(&loop->outputs[i], &steps->outputs[i]));
    tssa_status_free(a);
    tssa_status_free(b);
    return !fails;
}

/* How many iterations of a run were made by calls that were set up, with so many rows. */
static int64_t repeated(const char *body, int rows, enum how how)
{
    struct loop_run loop, steps;
    struct feeds feeds;
    open_loop(&loop, body, how);
    open_loop(&steps, body, BY_STEPS);
    for (int i = 0; i < RUNS; i++) {
        fill_feeds(&feeds, rows, (uint32_t)i * 3);
        run_both(&loop, &steps, &feeds, i % 2);
    }
    const int64_t n = (int64_t)loop.run->repeated;
    assert_int_equal(n % RUNS, 0);
    assert_int_equal(steps.run->repeated, 0);
    close_loop(&loop);
    close_loop(&steps);
    return n / RUNS;
}

static int64_t made(const char *body)
{
    return repeated(body, ROWS, REPEATED);
}

#define UPDATE(row, value) "  %sn = assign(%s, " value ", " row ") {rule = [select(0, $0)]}\n"
#define RETURN "  return(%c, %sn, %h, %r)\n"
#define RETURN_V "  return(%c, %sn, %h, %v)\n"

/* state[i + 1] = state[i] * x[i], and the other way round, and by two rows, and no row. */
static void rows_of_a_state(void **state)
{
    (void)state;
    assert_int_equal(made("  %r = Gather(%s, %i)\n  %w = Gather(%x, %i)\n  %v = Mul(%r, %w)\n"
                          "  %j = Add(%i, %one)\n" UPDATE("%j", "%v") RETURN_V),
                     TRIPS - 1);
    assert_int_equal(made("  %j = Sub(%last, %i)\n  %k = Add(%j, %one)\n  %r = Gather(%s, %k)\n"
                          "  %w = Gather(%x, %j)\n  %v = Mul(%r, %w)\n" UPDATE("%j", "%v")
                              RETURN_V),
                     TRIPS - 1);
    assert_int_equal(
        made("  %k = Unsqueeze(%i, %first)\n  %e = Add(%k, %two)\n"
             "  %p = Slice(%s, %k, %e, %first)\n  %r = ReduceSum(%p, %first) {keepdims "
             "= 0}\n  %j = Add(%i, %two)\n" UPDATE("%j", "%r") RETURN),
        0); /* a reduction is not set up */
    assert_int_equal(made("  %k = Unsqueeze(%i, %first)\n  %e = Add(%k, %one)\n"
                          "  %p = Slice(%s, %k, %e, %first)\n  %q = Squeeze(%p, %first)\n"
                          "  %r = Neg(%q)\n  %j = Add(%i, %two)\n" UPDATE("%j", "%r") RETURN),
                     0); /* of R rows, which may end before it does */
    assert_int_equal(
        made("  %f = Cast(%i) {to = 1}\n  %w = Gather(%x, %i)\n  %r = Mul(%w, %h)\n" UPDATE(
            "%i", "%r") RETURN),
        0); /* nor is a Cast, yet */
}

/* Numbers that are computed with, too: i * i + n, of which n is known to the run alone. */
static void numbers_as_operands(void **state)
{
    (void)state;
    assert_int_equal(made("  %j = Add(%i, %one)\n  %q = Mul(%j, %n)\n  %z = Equal(%q, %j)\n"
                          "  %w = Gather(%x, %j)\n  %r = Where(%z, %w, %h)\n" UPDATE("%i", "%r")
                              RETURN),
                     0); /* Where is not set up */
    assert_int_equal(made("  %r = Gather(%x, %i)\n  %v = Mul(%r, %h)\n" UPDATE(
                         "%i", "%v") "  return(%c, %sn, %h, %i)\n"),
                     TRIPS - 1);
}

/* What is computed anew lies in two places in turn; what is stacked is a copy. */
static void recurrences(void **state)
{
    (void)state;
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %m = Mul(%h, %half)\n  %r = Add(%m, %w)\n"
                          "  return(%c, %s, %r, %r)\n"),
                     TRIPS - 1);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %m = Mul(%h, %half)\n  %r = Add(%m, %w)\n"
                          "  return(%c, %s, %r, %h)\n"),
                     TRIPS - 1);
    /* a part of the old row, while the new one is made */
    assert_int_equal(made("  %e = Gather(%h, %three)\n  %w = Gather(%x, %i)\n  %m = Mul(%w, %e)\n"
                          "  %r = Add(%m, %h)\n" UPDATE("%i", "%r") "  return(%c, %sn, %r, %m)\n") %
                         (TRIPS - 1),
                     0);
}

/* Of what no library computes, with operands that move and operands that stay. */
static void products(void **state)
{
    (void)state;
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %m = MatMul(%h, %square)\n"
                          "  %r = Add(%m, %w)\n  return(%c, %s, %r, %r)\n"),
                     TRIPS - 1);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %m = MatMul(%square, %w)\n"
                          "  %r = Add(%m, %h)\n" UPDATE("%i", "%m") "  return(%c, %sn, %r, %r)\n"),
                     TRIPS - 1);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %a = Unsqueeze(%h, %first)\n"
                          "  %p = Gemm(%a, %square, %w) {transB = 1, beta = 0.5}\n"
                          "  %m = Squeeze(%p, %first)\n  %r = Tanh(%m)\n" UPDATE(
                              "%i", "%r") "  return(%c, %sn, %r, %w)\n"),
                     TRIPS - 1);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %a = Unsqueeze(%h, %first)\n"
                          "  %p = Gemm(%a, %square)\n  %m = Squeeze(%p, %first)\n"
                          "  %r = Add(%m, %w)\n  return(%c, %s, %r, %r)\n"),
                     TRIPS - 1);
}

/* Several small products at once, and axes that are turned. */
static void batches(void **state)
{
    (void)state;
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %a = Unsqueeze(%h, %others)\n"
                          "  %b = Unsqueeze(%w, %others)\n  %p = MatMul(%a, %b)\n"
                          "  %m = Squeeze(%p, %others)\n  %r = Tanh(%m)\n" UPDATE(
                              "%i", "%r") "  return(%c, %sn, %r, %r)\n"),
                     TRIPS - 1);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %a = Unsqueeze(%w, %first)\n"
                          "  %p = Mul(%a, %square)\n  %t = Transpose(%p) {perm = [1, 0]}\n"
                          "  %q = Tanh(%t)\n  %m = MatMul(%h, %q)\n"
                          "  %r = Add(%m, %w)\n  return(%c, %s, %r, %r)\n"),
                     TRIPS - 1);
}

/* What has been updated is not read as it was, and what is stacked is not either. */
static void old_states(void **state)
{
    (void)state;
    assert_int_equal(made("  %a = Gather(%s, %i)\n  %v = Neg(%a)\n" UPDATE(
                         "%i", "%v") "  %r = Mul(%a, %half)\n" RETURN),
                     0);
    assert_int_equal(made("  %a = Gather(%s, %i)\n  %v = Neg(%a)\n" UPDATE(
                         "%i", "%v") "  return(%c, %sn, %h, %a)\n"),
                     0);
    assert_int_equal(made("  %a = Gather(%s, %i)\n  %v = Neg(%a)\n" UPDATE(
                         "%i", "%v") "  %r = Gather(%sn, %i)\n" RETURN),
                     TRIPS - 1);
    assert_int_equal(
        made("  %r = Gather(%s, %i)\n  %j = Add(%i, %one)\n" UPDATE("%j", "%r") RETURN), 0);
}

/* Iterations that end otherwise, or look up rows that others have computed, go step by step. */
static void what_is_not_affine(void **state)
{
    (void)state;
    assert_int_equal(made("  %q = Mul(%i, %i)\n  %j = Mod(%q, %last)\n  %w = Gather(%x, %j)\n"
                          "  %r = Neg(%w)\n" UPDATE("%i", "%r") RETURN),
                     0);
    assert_int_equal(made("  %w = Gather(%x, %i)\n  %r = Neg(%w)\n" UPDATE(
                         "%i", "%r") "  %g = Less(%i, %three)\n  return(%g, %sn, %h, %r)\n"),
                     0);
    /* counted from the end, and then from the start */
    assert_int_equal(made("  %j = Sub(%i, %three)\n  %w = Gather(%x, %j)\n  %r = Neg(%w)\n" UPDATE(
                         "%i", "%r") RETURN),
                     0);
}

/* The row after the last one is missed by the step that would read it, in its iteration. */
static void wrong_indices(void **state)
{
    static const char body[] = "  %r = Gather(%s, %i)\n  %w = Gather(%x, %i)\n  %v = Mul(%r, %w)\n"
                               "  %j = Add(%i, %one)\n" UPDATE("%j", "%v") RETURN_V;
    (void)state;
    assert_int_equal(repeated(body, TRIPS + 1, REPEATED), TRIPS - 1);
    assert_int_equal(repeated(body, TRIPS, REPEATED), 0);
    assert_int_equal(repeated(body, TRIPS / 2, REPEATED), 0);
}

/* ---- Random loops ---------------------------------------------------------------------------- */

struct generator {
    struct random random;
    struct text text;
    int n_rows;  /* %v0, %v1, ...: rows of this iteration */
    int n_state; /* %u1, %u2, ...: updated states; 0: none yet */
};

static int pick(struct generator *g, int count)
{
    return (int)random_int(&g->random, 0, count - 1);
}

static const char *pick_index(struct generator *g)
{
    static const char *const indices[] = {"i", "i1", "i2", "back", "three", "n"};
    return indices[pick(g, 6)];
}

static void put_state(struct generator *g, int number)
{
    if (number)
        text_printf(&g->text, "%%u%d", number);
    else
        text_printf(&g->text, "%%s");
}

static void put_row(struct generator *g)
{
    struct text *text = &g->text;
    static const char *const unary[] = {"Neg", "Abs", "Tanh", "Floor"};
    static const char *const binary[] = {"Add", "Mul", "Sub", "Max"};
    const int kind = pick(g, 6), n = g->n_rows;
    if (kind == 0) {
        text_printf(text, "  %%v%d = Gather(%%x, %%%s)\n", n, pick_index(g));
    } else if (kind == 1) {
        text_printf(text, "  %%v%d = Gather(", n);
        put_state(g, pick(g, 4) ? g->n_state : pick(g, g->n_state + 1));
        text_printf(text, ", %%%s)\n", pick_index(g));
    } else if (kind == 2) {
        text_printf(text, "  %%v%d = %s(%%v%d)\n", n, unary[pick(g, 4)], pick(g, n));
    } else if (kind == 3) {
        text_printf(text, "  %%v%d = MatMul(%%v%d, %%square)\n", n, pick(g, n));
    } else {
        const int a = pick(g, n), b = pick(g, n);
        text_printf(text, "  %%v%d = %s(%%v%d, %%v%d)\n", n, binary[pick(g, 4)], a, b);
    }
    g->n_rows++;
}

static void put_update(struct generator *g)
{
    text_printf(&g->text, "  %%u%d = assign(", g->n_state + 1);
    put_state(g, g->n_state);
    text_printf(&g->text, ", %%v%d, %%%s) {rule = [select(0, $0)]}\n", pick(g, g->n_rows),
                pick_index(g));
    g->n_state++;
}

static char *random_body(uint64_t seed)
{
    struct generator g = {.random = {seed}, .n_rows = 1};
    text_init(&g.text, &allocator_default);
    text_printf(&g.text, "  %%i1 = Add(%%i, %%one)\n  %%i2 = Add(%%i, %%two)\n"
                         "  %%back = Sub(%%last, %%i)\n  %%v0 = Mul(%%h, %%half)\n");
    for (int i = 2 + pick(&g, 6); i > 0; i--) {
        put_row(&g);
        if (pick(&g, 3) == 0)
            put_update(&g);
    }
    text_printf(&g.text, "  return(%%c, ");
    put_state(&g, g.n_state);
    if (pick(&g, 3))
        text_printf(&g.text, ", %%v%d", pick(&g, g.n_rows));
    else
        text_printf(&g.text, ", %%h");
    text_printf(&g.text, ", %%v%d)\n", pick(&g, g.n_rows));
    char *body = xprintf("%s", text_string(&g.text));
    text_free(&g.text);
    return body;
}

static void random_loops(void **state)
{
    uint64_t seed;
    const bool one = programs_seed(&seed);
    const unsigned long count = one ? 1 : programs_count(3000);
    int64_t total = 0;
    (void)state;
    for (unsigned long n = 0; n < count; n++) {
        char *body = random_body(one ? seed : n);
        if (one)
            printf("%s", body);
        total += made(body);
        free(body);
    }
    printf("%lu loops: %.1f of %d iterations are set up\n", count, (double)total / (double)count,
           TRIPS);
    if (count > 100)
        assert_true(total > (int64_t)count * TRIPS / 5);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Generated ones are set up as well, and give the bits of steps that are interpreted. */
static void generated_kernels(void **state)
{
    int64_t total = 0;
    (void)state;
    if (!compiling_is_possible())
        skip();
    /* x[i] is read by the kernel itself; there are two results */
    assert_int_equal(repeated("  %w = Gather(%x, %i)\n  %m = Mul(%h, %half)\n  %r = Add(%m, %w)\n"
                              "  %g = Tanh(%r)\n  %q = Neg(%g)\n  return(%c, %s, %r, %q)\n",
                              ROWS, COMPILED),
                     TRIPS - 1);
    assert_int_equal(repeated("  %r = Gather(%s, %i)\n  %w = Gather(%x, %i)\n  %m = Mul(%r, %w)\n"
                              "  %v = Sub(%m, %w)\n  %j = Add(%i, %one)\n" UPDATE("%j", "%v")
                                  RETURN_V,
                              ROWS, COMPILED),
                     TRIPS - 1);
    /* a kernel that keeps what it has computed of a row */
    assert_int_equal(repeated("  %w = Gather(%x, %i)\n  %a = Unsqueeze(%h, %first)\n"
                              "  %p = Mul(%square, %a)\n  %q = Softmax(%p)\n"
                              "  %r = MatMul(%w, %q)\n  return(%c, %s, %r, %w)\n",
                              ROWS, COMPILED),
                     TRIPS - 1);
    for (uint64_t seed = 0; seed < 30; seed++) {
        char *body = random_body(seed);
        total += repeated(body, ROWS, COMPILED);
        free(body);
    }
    assert_true(total > (int64_t)30 * TRIPS / 5);
}

#define SUM_UP_TO(trips)                                                                           \
    "  %f = Gather(%x, %three) {axis = 1}\n  %first_one = Gather(%f, %i)\n"                        \
    "  %q = Loop(" trips ", _, %first_one) {\n    body(%j: i64[], %d: bool[], %p: f32[]) {\n"      \
    "      %e = access(%f, %j) {rule = [select(0, $0)]}\n      %a = Add(%p, %e)\n      "           \
    "return(%d, %a)\n    }\n  }\n"                                                                 \
    "  %w = Gather(%x, %i)\n  %r = Mul(%w, %q)\n" UPDATE("%i", "%r") RETURN

/* Kernels of other sizes in each iteration are no calls that lie elsewhere. */
static void sizes_that_change(void **state)
{
    (void)state;
    if (!compiling_is_possible())
        skip();
    assert_int_equal(repeated(SUM_UP_TO("%three"), ROWS, COMPILED), TRIPS - 1);
    assert_int_equal(repeated(SUM_UP_TO("%i"), ROWS, COMPILED), 0);
    assert_int_equal(repeated("  %back = Sub(%last, %i)\n" SUM_UP_TO("%back"), ROWS, COMPILED), 0);
}

/* ---- Why not --------------------------------------------------------------------------------- */

static void expect_why(const char *body, const char *why)
{
    struct loop_run loop;
    open_loop(&loop, body, REPEATED);
    const struct step *step = loop.plan->body->steps;
    while (!step->n_blocks)
        step++;
    assert_true((step->repeat != NULL) == (why == NULL));
    if (why)
        assert_non_null(strstr(step->why, why));
    close_loop(&loop);
}

static void says_why(void **state)
{
    (void)state;
    expect_why("  %r = Neg(%h)\n  return(%c, %s, %r, %r)\n", NULL);
    expect_why("  %r = Neg(%h)\n  %g = Less(%i, %three)\n  return(%g, %s, %r, %r)\n",
               "whether there is a next one");
    expect_why("  %a = Gather(%s, %i)\n  %v = Neg(%a)\n" UPDATE("%i", "%v") "  return(%c, %sn, %h, "
                                                                            "%a)\n",
               "returned as it was before");
    expect_why("  %r = CumSum(%h, %first)\n  return(%c, %s, %r, %r)\n",
               "no kernel that can be set up");
    expect_why("  return(%c, %s, %h, %h)\n", "nothing is computed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_state),   cmocka_unit_test(numbers_as_operands),
        cmocka_unit_test(recurrences),       cmocka_unit_test(products),
        cmocka_unit_test(old_states),        cmocka_unit_test(what_is_not_affine),
        cmocka_unit_test(wrong_indices),     cmocka_unit_test(random_loops),
        cmocka_unit_test(generated_kernels), cmocka_unit_test(sizes_that_change),
        cmocka_unit_test(says_why),          cmocka_unit_test(batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
