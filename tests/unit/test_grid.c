/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids (gir/grid.h): what a GPU would fuse of the committed models, of random fuse ops and of
 * random imperative programs has, as kernels of a thread for each element, the interpreter's bits,
 * in three orders of threads, run by the shim. What it finds wrong, they find.
 */
/* ctest-labels: random */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/gir_build.h"
#include "common/grid_device.h"
#include "common/imperative_check.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/opencl_c.h"
#include "common/random_imperative.h"
#include "common/random_programs.h"
#include "common/shim_cuda.h"
#include "common/shim_device.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/pipeline.h"

/* ---- Models ---------------------------------------------------------------------------------- */

static void open_session(struct model_run *run, const char *path, tssa_session **session)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {.struct_size = sizeof options};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    no_error(session_create_on(run->model, grid_device(), &options, session));
}

static void run_model(const char *path)
{
    struct model_run run = {0};
    tssa_session *session;
    open_session(&run, path, &session);
    no_error(model_run_read_inputs(&run, path));
    no_error(model_run_execute(&run));
    kernel_compare_run(session, &run, path);
    tssa_session_free(session);
    model_run_close(&run);
}

static void find_grids_of_model(void **state)
{
    run_model(*state);
}

static void one_model(void **state)
{
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        run_model(*state);
    }
}

/* ---- Random programs ------------------------------------------------------------------------- */

#define USUAL_FUSED 40 /* of each kind */
#define USUAL_IMPERATIVE 80

static uint64_t first_program(void)
{
    uint64_t seed;
    return programs_seed(&seed) ? seed : 0;
}

static unsigned long n_programs(unsigned long usual)
{
    uint64_t seed;
    return programs_seed(&seed) ? 1 : programs_count(usual);
}

static void check_fused(void)
{
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n_programs(USUAL_FUSED); i++)
            kernel_check(kind, first_program() + i, grid_context());
}

/* Gathers, of which random programs have few, with indices that are negative, or wrong. */
static const char *const gathers[] = {
    FUSED_GRAPH("%x: f32[A, 5], %i: i64[B]", "%x, %i",
                "%p: f32[A, 5], %k: i64[B]) { %g = Gather(%p, %k) {axis = 1} %n = Neg(%g) "
                "return(%n)",
                "%y"),
    FUSED_GRAPH("%x: f32[5, A], %i: i32[B, 2]", "%x, %i",
                "%p: f32[5, A], %k: i32[B, 2]) { %s = Sqrt(%p) %g = Gather(%s, %k) return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[A, 6], %i: i64[A, 3]", "%x, %i",
                "%p: f32[A, 6], %k: i64[A, 3]) { %g = GatherElements(%p, %k) {axis = -1} "
                "return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[6, 4, A], %i: i64[B, 2]", "%x, %i",
                "%p: f32[6, 4, A], %k: i64[B, 2]) { %g = GatherND(%p, %k) return(%g)", "%y"),
    FUSED_GRAPH("%x: f32[A, 6, C], %i: i64[A, B, 1]", "%x, %i",
                "%p: f32[A, 6, C], %k: i64[A, B, 1]) { %g = GatherND(%p, %k) {batch_dims = 1} "
                "return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[6, A], %i: i64[], %j: i64[1]", "%x, %i, %j",
                "%p: f32[6, A], %k: i64[], %l: i64[1]) { "
                "%a = access(%p, %k) {rule = [select(0, $0)]} "
                "%b = access(%p, %l) {rule = [select(0, $0)]} %s = Add(%a, %b) return(%s)",
                "%y"),
};

/* Transposed operands: of random programs few are. */
static const char *const turned[] = {
    FUSED_GRAPH("%x: f32[A, B, C]", "%x",
                "%p: f32[A, B, C]) { %t = access(%p) {rule = [permute(0, 2, 1)]} %e = Exp(%t) "
                "return(%e)",
                "%y"),
    FUSED_GRAPH("%x: f16[A, B, C, D], %z: f64[D, A]", "%x, %z",
                "%p: f16[A, B, C, D], %q: f64[D, A]) { %t = access(%p) {rule = [permute(3, 0, 1, "
                "2)]} %c = Cast(%t) {to = 11} %u = access(%q) {rule = [unsqueeze(2, 3)]} "
                "%s = Mul(%c, %u) return(%s)",
                "%y"),
    FUSED_GRAPH("%x: u8[B, A], %z: u8[C, A], %m: bool[B, A]", "%x, %z, %m",
                "%p: u8[B, A], %q: u8[C, A], %o: bool[B, A]) { %c = Concat(%p, %q) {axis = 0} "
                "%t = access(%c) {rule = [permute(1, 0)]} "
                "%n = access(%o) {rule = [permute(1, 0)]} return(%t, %n)",
                "%y, %k"),
};

/* Products of products, in stages. */
static const char *const stages[] = {
    FUSED_GRAPH("%x: f32[5, 1, 6], %w: f32[5, 6, 6], %k: f32[5, 9, 6]", "%x, %w, %k",
                "%p: f32[5, 1, 6], %q: f32[5, 6, 6], %r: f32[5, 9, 6]) { %a = MatMul(%p, %q) "
                "%t = access(%a) {rule = [permute(0, 2, 1)]} %s = MatMul(%r, %t) "
                "%u = access(%s) {rule = [permute(0, 2, 1)]} %m = Softmax(%u) "
                "%o = MatMul(%m, %r) %n = Neg(%a) return(%o, %n)",
                "%y, %z"),
    FUSED_GRAPH("%x: f64[2, 4, 3, 40], %w: f64[2, 4, 40, 7], %v: f64[2, 4, 7, 3]", "%x, %w, %v",
                "%p: f64[2, 4, 3, 40], %q: f64[2, 4, 40, 7], %r: f64[2, 4, 7, 3]) { "
                "%k = access(%p) {rule = [slice(0, 0, 1, 1)]} "
                "%l = access(%q) {rule = [slice(0, 0, 1, 1)]} "
                "%j = access(%r) {rule = [slice(0, 0, 1, 1)]} "
                "%a = MatMul(%k, %l) %t = Tanh(%a) %b = MatMul(%t, %j) %c = MatMul(%b, %k) "
                "return(%c, %b)",
                "%y, %z"),
};

/* Of a loop that goes through them in each of `trips` iterations: what 4 groups carry, of which
 * rows are kept in a cache besides, number `at` of 7. */
#define TRIPS(trips, at)                                                                           \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4, 1, 6], %k: f32[4, 7, 6], "                \
    "%w: f32[4, 6, 6], %j: i64[]) -> (%R0, %R1) {\n%n = Constant() {value = i64[] " trips "}\n"    \
    "%R0, %R1 = fuse(%n, %x, %k, %w, %j) { body(%m: i64[], %x1: f32[4, 1, 6], "                    \
    "%k1: f32[4, 7, 6], %w1: f32[4, 6, 6], %j1: i64[]) {\n"                                        \
    "%l, %s = Loop(%m, _, %x1, %k1) { body(%i: i64[], %go: bool[], %c: f32[4, 1, 6], "             \
    "%d: f32[4, 7, 6]) {\n%f, %g = fuse(%c, %d, %w1, %" at ") { body(%x2: f32[4, 1, 6], "          \
    "%k2: f32[4, 7, 6], %w2: f32[4, 6, 6], %i2: i64[]) {\n%p = MatMul(%x2, %w2)\n"                 \
    "%r = access(%p) {rule = [squeeze(1)]}\n"                                                      \
    "%a = assign(%k2, %r, %i2) {rule = [select(1, $0)]}\n"                                         \
    "%t = access(%p) {rule = [permute(0, 2, 1)]}\n%q = MatMul(%a, %t)\n"                           \
    "%u = access(%q) {rule = [permute(0, 2, 1)]}\n%v = Softmax(%u)\n%o = MatMul(%v, %a)\n"         \
    "return(%o, %a) } }\nreturn(%go, %f, %g) } }\nreturn(%l, %s) } }\nreturn(%R0, %R1)\n}\n"

static const char *const trips[] = {TRIPS("5", "i"), TRIPS("7", "i"),  TRIPS("1", "i"),
                                    TRIPS("0", "i"), TRIPS("3", "j1"), TRIPS("0", "j1")};

static void check_stages(void)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            kernel_check_text(KERNEL_FUSE, stages[i], seed, grid_context());
    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            kernel_check_text(KERNEL_FUSE, trips[i], seed, grid_context());
}

static void check_turned(void)
{
    for (size_t i = 0; i < sizeof turned / sizeof *turned; i++)
        for (uint64_t seed = 0; seed < 12; seed++)
            kernel_check_text(KERNEL_FUSE, turned[i], seed, grid_context());
}

static void check_gathers(void)
{
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++)
        for (uint64_t seed = 0; seed < 8; seed++)
            kernel_check_text(KERNEL_FUSE, gathers[i], seed, grid_context());
}

/* ---- Stacks ---------------------------------------------------------------------------------- */

/* Rows of a loop that holds a product, and so is no kernel: once they are written where they belong
 * (write_stacks), the kernel that computes them does that. */
static const char stacks[] =
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[5, 6], %h: f32[6], %w: f32[6, 6]) -> "
    "(%z, %s, %t) {\n"
    "%n = Constant() {value = i64[] 5}\n"
    "%z, %s, %t = Loop(%n, _, %h) { body(%i: i64[], %go: bool[], %c: f32[6]) {\n"
    "%r = access(%x, %i) {rule = [select(0, $0)]} %p = MatMul(%c, %w) %u = Add(%p, %r)\n"
    "%v = Tanh(%u) %e = Exp(%v) return(%go, %v, %v, %e) } }\nreturn(%z, %s, %t)\n}\n";

/* As a session of the device makes it; to be freed. */
static char *write_stacks(void)
{
    static const char *const names[] = {"infer", "write_stacks", "infer", "fuse"};
    const struct pipeline pipeline = {.fusion = grid_device()->fusion(grid_context())};
    struct ir_graph *graph;
    struct text text;
    text_init(&text, &allocator_default);
    no_error(ir_parse(&allocator_default, stacks, strlen(stacks), &graph));
    no_error(pipeline_run_passes(graph, names, sizeof names / sizeof *names, &pipeline));
    ir_print_graph(graph, true, &text);
    char *made = strdup(text_string(&text));
    assert_non_null(made);
    ir_graph_free(graph);
    text_free(&text);
    return made;
}

static void check_stacks(void)
{
    char *text = write_stacks();
    const uint32_t before = grid_counts.updated;
    assert_non_null(strstr(text, "ConstantOfShape"));
    kernel_check_text(KERNEL_FUSE, text, 1, grid_context());
    assert_true(grid_counts.updated > before);
    free(text);
}

/* ---- Loops that are no kernels of the CPU ---------------------------------------------------- */

/* Of as many iterations, %m, as x has rows, but for the last `less`. What the loop makes, its
 * block's parameters, the fuse op in it, and what is returned. */
#define GRID_LOOP(less, params, operands, block, made, begin, carried, inner, next, results)       \
    "graph @g opset(\"\": 21) ir_version(10) (" params ") -> (" results ") {\n"                    \
    "%s0 = Shape(%x) {end = 1, start = 0} %s1 = Squeeze(%s0)\n"                                    \
    "%s2 = Constant() {value = i64[] " #less "} %n = Sub(%s1, %s2)\n" results                      \
    " = fuse(%n, " operands ") { body(%m: i64[], " block ") {\n" made " = Loop(%m, _, " begin      \
    ") { body(%i: i64[], %go: bool[], " carried ") {\n" inner "\nreturn(%go, " next                \
    ") } }\nreturn(" made ") } }\nreturn(" results ")\n}\n"

static const char *const loops[] = {
    /* What is carried is rotated: each element needs another one, and what is stacked has one. */
    GRID_LOOP(0, "%x: f32[A, B], %h: f32[B, 2], %a: f32[B]", "%x, %h, %a",
              "%p: f32[A, B], %q: f32[B, 2], %r: f32[B]", "%l, %s", "%q", "%c: f32[B, 2]",
              "%u, %w = fuse(%c, %p, %r, %i) { body(%v: f32[B, 2], %e: f32[A, B], %f: f32[B], "
              "%k: i64[]) {\n"
              "%g = access(%v) {rule = [select(1, 0)]} %o = access(%v) {rule = [select(1, 1)]}\n"
              "%t = access(%e, %k) {rule = [select(0, $0)]}\n"
              "%g1 = Mul(%g, %f) %o1 = Mul(%o, %t) %z = Sub(%g1, %o1)\n"
              "%g2 = Mul(%g, %t) %o2 = Mul(%o, %f) %y0 = Add(%g2, %o2)\n"
              "%z1 = access(%z) {rule = [unsqueeze(1)]} %y1 = access(%y0) {rule = [unsqueeze(1)]}\n"
              "%b = Concat(%z1, %y1) {axis = 1} return(%b, %y0) } }",
              "%u, %w", "%R0, %R1"),
    /* A number is carried besides, and results of both shapes are wanted. */
    GRID_LOOP(0, "%x: f32[A, B], %h: f32[B], %a: f32[]", "%x, %h, %a",
              "%p: f32[A, B], %q: f32[B], %r: f32[]", "%l, %k, %s, %t", "%q, %r",
              "%c: f32[B], %d: f32[]",
              "%u, %w = fuse(%c, %d, %p, %i) { body(%v: f32[B], %e: f32[], %f: f32[A, B], "
              "%k0: i64[]) {\n"
              "%g = access(%f, %k0) {rule = [select(0, $0)]} %o = Mul(%g, %e) %z = Add(%o, %v)\n"
              "%j = Cast(%k0) {to = 1} %b = Sub(%e, %j) return(%z, %b) } }",
              "%u, %w, %c, %w", "%R0, %R1, %R2, %R3"),
    /* Rows in an order that data tells, or does not, of a table and of an operand. */
    GRID_LOOP(0, "%x: i64[A], %h: f32[B], %t: f32[6, B]", "%x, %h, %t",
              "%p: i64[A], %q: f32[B], %r: f32[6, B]", "%l, %s", "%q", "%c: f32[B]",
              "%u = fuse(%c, %p, %r, %i) { body(%v: f32[B], %e: i64[A], %f: f32[6, B], "
              "%k: i64[]) {\n"
              "%j = access(%e, %k) {rule = [select(0, $0)]} "
              "%g = access(%f, %j) {rule = [select(0, $0)]} %z = Add(%v, %g) return(%z) } }",
              "%u, %u", "%R0, %R1"),
    GRID_LOOP(
        0, "%x: f32[A, B], %h: f32[B]", "%x, %h", "%p: f32[A, B], %q: f32[B]", "%l", "%q",
        "%c: f32[B]",
        "%u = fuse(%c, %p, %i, %m) { body(%v: f32[B], %e: f32[A, B], %k: i64[], %o: i64[]) {\n"
        "%two = Constant() {value = i64[] 2} %d = Mul(%k, %two) %j = Mod(%d, %o)\n"
        "%g = access(%e, %j) {rule = [select(0, $0)]} %z = Sub(%v, %g) return(%z) } }",
        "%u", "%R0"),
    /* A wrong number is none where there is no iteration. */
    GRID_LOOP(2, "%x: i64[A], %h: f32[B], %t: f32[4, B], %j: i64[]", "%h, %t, %j",
              "%q: f32[B], %r: f32[4, B], %e: i64[]", "%l", "%q", "%c: f32[B]",
              "%u = fuse(%c, %r, %e) { body(%v: f32[B], %f: f32[4, B], %k: i64[]) {\n"
              "%g = access(%f, %k) {rule = [select(0, $0)]} %z = Add(%v, %g) return(%z) } }",
              "%u", "%R0"),
    /* Writes of a part, and a Gather of elements. */
    GRID_LOOP(0, "%x: f32[A, B], %h: f32[B, 3], %j: i64[B]", "%x, %h, %j",
              "%p: f32[A, B], %q: f32[B, 3], %r: i64[B]", "%l, %s", "%q", "%c: f32[B, 3]",
              "%u, %w = fuse(%c, %p, %r, %i) { body(%v: f32[B, 3], %e: f32[A, B], %f: i64[B], "
              "%k: i64[]) {\n"
              "%t = access(%e, %k) {rule = [select(0, $0)]} %g = Gather(%t, %f) {axis = 0}\n"
              "%o = assign(%v, %g) {rule = [select(1, 1)]} %z = Neg(%o)\n"
              "%b = access(%z) {rule = [slice(1, 0, 2, 1)]} return(%z, %b) } }",
              "%u, %w", "%R0, %R1"),
    /* Other axes than the first one, and from the last to the first. */
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[B, A], %h: f32[B], %t: f32[A, B]) -> (%R0, "
    "%R1) "
    "{\n%R0, %R1 = fuse(%x, %h, %t) { body(%p: f32[B, A], %q: f32[B], %r: f32[A, B]) {\n"
    "%l, %s = Scan(%q, %p, %r) {num_scan_inputs = 2, scan_input_axes = [-1, 0], "
    "scan_input_directions = [0, 1], scan_output_axes = [1], scan_output_directions = [1]} {\n"
    "body(%c: f32[B], %e: f32[B], %f: f32[B]) {\n"
    "%u = fuse(%c, %e, %f) { body(%v: f32[B], %g: f32[B], %o: f32[B]) { %a = Mul(%v, %g) "
    "%b = Add(%a, %o) return(%b) } }\nreturn(%u, %u) } }\nreturn(%l, %s) } }\nreturn(%R0, "
    "%R1)\n}\n",
};

static void check_loops(void)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        for (uint64_t seed = 0; seed < 8; seed++)
            kernel_check_text(KERNEL_FUSE, loops[i], seed, grid_context());
}

/* ---- Imperative programs --------------------------------------------------------------------- */

/* With wrong indices now and then, which is no matter here: the device looks at what comes of it.
 */
static void run_imperative(uint64_t seed)
{
    static const int64_t trips[] = {2, 0, 3};
    struct random_imperative program = random_imperative(seed);
    struct ir_graph *graph = NULL;
    struct kernel_program p = {0};
    no_error(imperative_fused(program.text, grid_device()->fusion(grid_context()), &graph));
    if (ir_block_is_imperative(graph->body) ||
        ir_block_return(graph->body)->n_operands > KERNEL_MAX_VALUES) {
        ir_graph_free(graph);
        free(program.text);
        return;
    }
    kernel_program_open(&p, graph, grid_context());
    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
        struct random_imperative_inputs in;
        random_imperative_inputs(&in, &program, trips[i], i == 0);
        tssa_status_free(run_execute(p.run, in.pointers, p.outputs));
        for (uint32_t k = 0; k < p.n_outputs; k++)
            value_release(&p.outputs[k]);
    }
    kernel_program_close(&p);
    free(program.text);
}

static void check_imperative(void)
{
    for (unsigned long i = 0; i < n_programs(USUAL_IMPERATIVE); i++)
        run_imperative(first_program() + i);
}

static uint32_t n_of_models; /* kernels, and of loops: the first ones */

static void find_grids(void **state)
{
    (void)state;
    check_loops();
    check_stages();
    n_of_models = shim_count();
    assert_int_equal(grid_counts.refused, 0); /* of these all are grids */
    check_fused();
    check_gathers();
    check_turned();
    check_stacks();
    check_imperative();
    grid_tells = false;
    shim_compile();
    assert_true(shim_count() > 0);
    assert_int_equal(shim_refused(), 0);
}

static void random_grids(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        check_fused();
        check_gathers();
        check_turned();
        check_stages();
        check_loops();
        check_stacks();
        check_imperative();
    }
}

/* ---- CUDA C and OpenCL C --------------------------------------------------------------------- */

static void compiles_as_cuda(void **state)
{
    (void)state;
    shim_compile_as_cuda(n_of_models);
}

static void compiles_as_opencl(void **state)
{
    struct text text;
    (void)state;
    text_init(&text, &allocator_default);
    shim_print(CLIKE_OPENCL, 0, shim_count(), 1, &text);
    const bool is_there = opencl_c_check(text_string(&text));
    text_free(&text);
    if (!is_there)
        skip();
}

/* ---- All ------------------------------------------------------------------------------------- */

static void grids_ran(void **state)
{
    (void)state;
    print_message("%u kernels; %u plans had grids, %u fuse ops were none; %u runs, %u not told, "
                  "%u that wrote into what is carried, %u parts with turned lookups, %u that are "
                  "wide alone, %u failures found\n",
                  (unsigned)shim_count(), (unsigned)grid_counts.made, (unsigned)grid_counts.refused,
                  (unsigned)grid_counts.ran, (unsigned)grid_counts.not_told,
                  (unsigned)grid_counts.updated, (unsigned)grid_counts.turned,
                  (unsigned)grid_counts.only_wide, (unsigned)grid_failures);
    assert_true(grid_counts.turned > 100);
    assert_true(grid_counts.updated > 20);
    assert_true(grid_counts.ran > 50);
    assert_int_equal(grid_counts.not_told, 0);
}

static int clean_up(void **state)
{
    (void)state;
    shim_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(find_grids),
                                       cmocka_unit_test(compiles_as_cuda),
                                       cmocka_unit_test(compiles_as_opencl)},
                            last[] = {cmocka_unit_test(random_grids), cmocka_unit_test(grids_ran)};
    grid_tells = getenv("TSSA_TELL") != NULL; /* which fuse ops are no grids */
    return committed_models_test(find_grids_of_model) + cmocka_run_group_tests(first, NULL, NULL) +
           committed_models_test(one_model) + cmocka_run_group_tests(last, NULL, clean_up);
}
