/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels as text in languages like C. The text of a few is golden. Kernels of the committed models
 * and of random fuse ops are compiled as the shim, many at once by the C compiler that has built
 * this, and give the interpreter's bits in three orders of threads; the same kernels compile as
 * CUDA C, where NVRTC is installed, and without spilling registers.
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
#include "codegen/clike/clike.h"
#include "common/committed_models.h"
#include "common/gir_build.h"
#include "common/kernel_check.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/shim_cuda.h"
#include "common/shim_device.h"
#include "runtime/compile.h"

#define MAX_PROGRAMS 1000 /* of a kind */

/* ---- Texts ----------------------------------------------------------------------------------- */

/* tests/golden/clike/NAME.expected is the kernel's text, in both dialects: they differ behind it.
 */
static bool print(const struct gir_kernel *kernel, enum clike_dialect dialect, const char *name,
                  struct text *text)
{
    return kernel->grid ? clike_print_launch(&kernel, 1, dialect, CLIKE_NARROW, name, text)
                        : clike_print(kernel, dialect, name, text);
}

static void expect_kernel(const struct gir_kernel *kernel, const char *name)
{
    char path[256], expected[8192] = "";
    struct text text;
    text_init(&text, &allocator_default);
    snprintf(path, sizeof path, TSSA_SOURCE_DIR "/tests/golden/clike/%s.expected", name);
    assert_null(clike_refuses(kernel));
    assert_true(print(kernel, CLIKE_SHIM, name, &text));
    FILE *file = fopen(path, getenv("TSSA_UPDATE_GOLDEN") ? "w+" : "r");
    assert_non_null(file);
    if (getenv("TSSA_UPDATE_GOLDEN"))
        fwrite(text.data, 1, text.size, file);
    rewind(file);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    assert_true(print(kernel, CLIKE_CUDA, name, &text));
    *strstr(expected, "LAUNCHER") = '\0';
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
}

/* Of a fuse op without accesses. */
static void expect_text(const char *source, const char *name)
{
    struct gir_space space;
    const char *why;
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_kernel *kernel = gir_build_kernel(graph, &space, &why);
    assert_non_null(kernel);
    expect_kernel(kernel, name);
    allocator_free(&allocator_default, kernel);
    ir_graph_free(graph);
}

/* Of one with accesses, and of one part. */
static void expect_part(const char *source, const char *name)
{
    const char *why;
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_parts *parts = gir_build_parts(graph, &why);
    assert_non_null(parts);
    assert_int_equal(parts->n, 1);
    expect_kernel(parts->parts[0].kernel, name);
    gir_parts_free(parts);
    ir_graph_free(graph);
}

/* As a grid, of one part. */
static void expect_grid(const char *source, const char *name)
{
    const char *why;
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_grid *grid = gir_build_whole_grid(graph, &why);
    assert_non_null(grid);
    assert_int_equal(grid->n, 1);
    expect_kernel(grid->parts[0].kernel, name);
    gir_grid_free(grid);
    ir_graph_free(graph);
}

static void texts(void **state)
{
    static const char loop[] =
        LOOPED_GRAPH("%n: i64[], %h: f32[N], %x: f32[T, N]", "%n, %h, %x",
                     "%m: i64[], %p: f32[N], %q: f32[T, N]",
                     "%l, %s = Loop(%m, _, %p) { body(%i: i64[], %go: bool[], %c: f32[N])",
                     "%u = fuse(%c, %q, %i) { body(%v: f32[N], %w: f32[T, N], %k: i64[]) {"
                     "%e = access(%w, %k) {rule = [select(0, $0)]} %f = Add(%v, %e) "
                     "return(%f) } } return(%go, %u, %u)",
                     "%l, %s", "%y, %z");
    (void)state;
    /* What moves and what stays, in place, two results, truth values. */
    expect_text(FUSED_GRAPH("%x: f32[N, C], %s: f32[N, 1]", "%x, %s",
                            "%p: f32[N, C], %q: f32[N, 1]) { %m = Mul(%p, %q) %e = Exp(%m) "
                            "%n = IsNaN(%e) %l = Less(%e, %q) %i = And(%n, %l) return(%m, %i)",
                            "%y, %z"),
                "elements");
    /* A column, rows by numbers that were looked at before, conversions. */
    expect_part(FUSED_GRAPH("%x: f16[R, 2], %i: i64[N], %z: f16[N, 2]", "%x, %i, %z",
                            "%p: f16[R, 2], %k: i64[N], %q: f16[N, 2]) { "
                            "%a = access(%p, %k) {rule = [select(1, 1), gather(0, $0)]} "
                            "%s = Sqrt(%a) %n = Neg(%q) "
                            "%b = assign(%n, %s) {rule = [select(1, 0)]} "
                            "%c = Cast(%b) {to = 3} return(%c)",
                            "%y"),
                "lookup");
    expect_text(
        FUSED_GRAPH("%x: f32[N, C]", "%x", "%p: f32[N, C]) { %s = Softmax(%p) return(%s)", "%y"),
        "softmax");
    expect_part(FUSED_GRAPH("%x: f64[N, 40], %k: i64[]", "%x, %k",
                            "%p: f64[N, 40], %q: i64[]) { "
                            "%k0 = Constant() {value = i64[1] [0]} %u = Trilu(%p, %q) {upper = 0} "
                            "%m = ReduceMean(%u, %k0) return(%m)",
                            "%y"),
                "columns");
    expect_part(loop, "loop");
    expect_grid(loop, "grid_loop");
    /* Numbers that a call tells, a place that data tells, and pieces. */
    expect_grid(FUSED_GRAPH("%x: f32[R, 2], %i: i64[N], %z: f32[M]", "%x, %i, %z",
                            "%p: f32[R, 2], %k: i64[N], %q: f32[M]) { "
                            "%a = access(%p, %k) {rule = [select(1, 1), gather(0, $0)]} "
                            "%c = Concat(%q, %a) {axis = 0} %n = Neg(%c) return(%n)",
                            "%y"),
                "grid");
    /* Rows, and a part of each. */
    expect_grid(FUSED_GRAPH("%x: f32[3, 9, N]", "%x",
                            "%p: f32[3, 9, N]) { "
                            "%t = access(%p) {rule = [permute(0, 2, 1)]} "
                            "%s = Softmax(%t) "
                            "%a = access(%s) {rule = [slice(2, 0, 8, 1)]} return(%s, %a)",
                            "%y, %z"),
                "grid_rows");
    /* Two operands, of which one is turned. */
    expect_grid(FUSED_GRAPH("%x: f32[M, N], %z: f32[N, M]", "%x, %z",
                            "%p: f32[M, N], %q: f32[N, M]) { "
                            "%t = access(%p) {rule = [permute(1, 0)]} %e = Exp(%t) "
                            "%s = Add(%e, %q) return(%s)",
                            "%y"),
                "grid_turned");
    expect_grid(FUSED_GRAPH("%x: f32[1, 64], %w: f32[64, 96], %b: f32[96]", "%x, %w, %b",
                            "%p: f32[1, 64], %q: f32[64, 96], %r: f32[96]) { %m = MatMul(%p, %q) "
                            "%a = Add(%m, %r) %t = Tanh(%a) return(%t)",
                            "%y"),
                "grid_products");
    expect_grid(FUSED_GRAPH("%x: f32[2, N, 5]", "%x",
                            "%p: f32[2, N, 5]) { %k = Constant() {value = i64[1] [1]} "
                            "%m = ReduceMax(%p, %k) {keepdims = 0} return(%m)",
                            "%y"),
                "grid_columns");
}

/* What is not known, or checked, has no text, and a reason. */
static void refuses(void **state)
{
    (void)state;
    struct {
        struct gir_kernel kernel;
        struct gir_code code;
    } unknown = {{.magic = GIR_MAGIC, .size = sizeof unknown, .n_codes = 1},
                 {.op = GIR_OP_COUNT, .type = TSSA_FLOAT}};
    struct {
        struct gir_kernel kernel;
        struct gir_arg arg;
    } checks = {{.magic = GIR_MAGIC, .size = sizeof checks, .n_args = 1, .checks = 1},
                {.dtype = TSSA_FLOAT, .fields = 1, .is_looked_up = 1}};
    assert_string_equal(clike_refuses(&unknown.kernel), "a step of the kernel has no form in C");
    assert_string_equal(clike_refuses(&checks.kernel),
                        "which element is the first wrong one, threads do not tell");
}

/* ---- Kernels of random fuse ops -------------------------------------------------------------- */

static unsigned long n_programs(enum kernel_kind kind)
{
    static const unsigned long usual[KERNEL_KINDS] = {60, 60, 50, 40, 30, 40, 10, 40, 40};
    uint64_t seed;
    const unsigned long n = programs_seed(&seed) ? 1 : programs_count(usual[kind]);
    return n < MAX_PROGRAMS ? n : MAX_PROGRAMS;
}

static uint64_t first_program(void)
{
    uint64_t seed;
    return programs_seed(&seed) ? seed : 0;
}

static void find_kernels(void)
{
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n_programs(kind); i++) {
            char *text = kernel_text(kind, first_program() + i);
            struct compile_report report;
            struct ir_graph *graph = kernel_parse(text);
            no_error(compile_fused(graph, shim_context(), -1, &report));
            ir_graph_free(graph);
            free(text);
        }
}

/* In three orders of threads and lanes. */
static void random_kernels(void **state)
{
    (void)state;
    unsigned long compiled = 0, n = 0;
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        for (int kind = 0; kind < KERNEL_KINDS; kind++)
            for (unsigned long i = 0; i < n_programs(kind); i++, n++)
                compiled += kernel_check(kind, first_program() + i, shim_context());
    }
    print_message("%lu of %lu runs by %u kernels; %u were refused\n", compiled, n,
                  (unsigned)shim_count(), (unsigned)shim_refused());
    assert_true(n < 60 || compiled > n / 2);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static size_t n_steps;       /* by kernels, of all models */
static uint32_t n_of_models; /* kernels: the first ones */

static void count_steps(void *user, const tssa_step_profile *step)
{
    (void)user;
    n_steps += strcmp(step->op, "fuse") == 0;
}

static void open_session(struct model_run *run, const char *path, tssa_session **session)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options compile = {
        .struct_size = sizeof compile, .profile = 1, .compile = TSSA_COMPILE_WAIT};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    no_error(session_create_on(run->model, shim_device(), &compile, session));
}

static void find_kernels_of_model(void **state)
{
    struct model_run run = {0};
    tssa_session *session;
    open_session(&run, *state, &session);
    tssa_session_free(session);
    model_run_close(&run);
}

/* The same outputs as without kernels, in each order. */
static void one_model(void **state)
{
    struct model_run run = {0};
    tssa_session *session;
    open_session(&run, *state, &session);
    no_error(model_run_read_inputs(&run, *state));
    no_error(model_run_execute(&run));
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        kernel_compare_run(session, &run, *state);
    }
    no_error(tssa_session_profile_steps(session, count_steps, NULL));
    tssa_session_free(session);
    model_run_close(&run);
}

static void kernels_ran(void **state)
{
    (void)state;
    print_message("%zu steps by kernels\n", n_steps);
    assert_true(n_steps > 50);
}

/* ---- CUDA C ---------------------------------------------------------------------------------- */

static void compiles_as_cuda(void **state)
{
    (void)state;
    shim_compile_as_cuda(n_of_models);
}

static int prepare(void **state)
{
    (void)state;
    n_of_models = shim_count();
    find_kernels();
    shim_compile();
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    shim_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(refuses),
                                       cmocka_unit_test(compiles_as_cuda),
                                       cmocka_unit_test(random_kernels)},
                            last[] = {cmocka_unit_test(kernels_ran)};
    return committed_models_test(find_kernels_of_model) +
           cmocka_run_group_tests(tests, prepare, NULL) + committed_models_test(one_model) +
           cmocka_run_group_tests(last, NULL, clean_up);
}
