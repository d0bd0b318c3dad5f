/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels compiled from fuse ops give the interpreter's bits: random fuse ops of all element types,
 * ranks and broadcasts, and of rows of many lengths, with NaN, infinities, -0, denormals and the
 * ends of integers, one thread and several. Without a generator of code that is skipped, and said.
 * TSSA_SEED=N runs one of each kind and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
/* ctest-timeout: 1200 */
/* ctest-isa: v3 v2 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "base/isa.h"
#include "common/committed_models.h"
#include "common/gir_build.h"
#include "common/kernel_check.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/random_programs.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/fuse.h"
#include "runtime/compile.h"

/* Is there a generator of code? */
static bool can_compile(void)
{
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N]) -> (%y) {\n"
        "  %y = fuse(%x) { body(%p: f32[N]) { %a = Neg(%p) return(%a) } }\n  return(%y)\n}\n";
    struct compile_report report = {0};
    struct ir_graph *graph = kernel_parse(text);
    no_error(compile_fused(graph, test_device(), -1, &report));
    ir_graph_free(graph);
    if (!report.compiled)
        print_message("nothing is compiled here: %s\n", report.why);
    return report.compiled;
}

/* How many results lie where an operand lay. */
static uint32_t count_over(const char *ops)
{
    char *text =
        xprintf("%s%s%s",
                "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4, N], %r: f32[N]) -> (%z) {\n"
                "  %a = Transpose(%x) {perm = [1, 0]}\n  %b = Transpose(%a) {perm = [1, 0]}\n"
                "  %l = ReduceMax(%r)\n  %s = Concat(%r) {axis = 0}\n",
                ops, "  return(%z)\n}\n");
    struct compile_report report = {0};
    struct kernel_program compiled = {0};
    struct ir_graph *graph = kernel_parse(text);
    uint32_t n = 0;
    no_error(compile_fused(graph, test_device(), -1, &report));
    assert_int_equal(report.refused, 0);
    kernel_program_open(&compiled, graph, test_device());
    for (uint32_t i = 0; i < compiled.plan->n_placed; i++)
        n += compiled.plan->placed[i].back > 0;
    kernel_program_close(&compiled);
    free(text);
    return n;
}

/* Kernels say themselves what their results may lie on: operands that they walk as they walk the
 * result. */
static void results_lie_on_operands(void **state)
{
    (void)state;
    if (!can_compile())
        skip();
#define KERNEL "body(%p: f32[4, N], %q: f32[N]) { %e = Mul(%p, %q) %f = Exp(%e) return(%f) } }\n"
    assert_int_equal(count_over("  %y = fuse(%b, %s) { " KERNEL "  %z = ReduceMax(%y)\n"), 1);
    /* what is read behind it; an input; what is broadcast */
    assert_int_equal(count_over("  %y = fuse(%b, %s) { " KERNEL "  %m = ReduceMax(%y)\n"
                                "  %z = Pow(%b, %m)\n"),
                     0);
    assert_int_equal(count_over("  %y = fuse(%x, %s) { " KERNEL "  %z = ReduceMax(%y)\n"), 0);
    /* two results on two operands */
    assert_int_equal(
        count_over(
            "  %c = Transpose(%a) {perm = [1, 0]}\n"
            "  %y, %w = fuse(%b, %c) { body(%p: f32[4, N], %q: f32[4, N]) { %e = Mul(%p, %q) "
            "%f = Exp(%e) return(%e, %f) } }\n  %m = ReduceMax(%y)\n  %n = ReduceMax(%w)\n"
            "  %z = Concat(%m, %n) {axis = 0}\n"),
        2);
}

static void expect_error(tssa_status *status, const char *message)
{
    assert_non_null(status);
    if (!strstr(tssa_status_message(status), message))
        fail_msg("%s", tssa_status_message(status));
    tssa_status_free(status);
}

/* The program, of which all is compiled. */
static struct kernel_program open_compiled(const char *text, struct device_context *device)
{
    struct compile_report report = {0};
    struct kernel_program compiled = {0};
    struct ir_graph *graph = kernel_parse(text);
    no_error(compile_fused(graph, device, -1, &report));
    assert_int_equal(report.refused, 0);
    kernel_program_open(&compiled, graph, device);
    return compiled;
}

/* What is wrong with a number is said of who asked by it, not of the kernel alone. */
static void errors_name_operators(void **state)
{
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4, N], %k: i64[]) -> (%y) {\n"
        "  %y = fuse(%x, %k) { body(%p: f32[4, N], %n: i64[]) {\n"
        "    %r = access(%p, %n) @pick {rule = [select(0, $0)]} %e = Exp(%r) return(%e) } }\n"
        "  return(%y)\n}\n";
    (void)state;
    if (!can_compile())
        skip();
    float x[4 * 3] = {0};
    int64_t number = -5;
    const struct value values[] = {
        {.kind = TSSA_KIND_TENSOR,
         .tensor = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {4, 3}, .data = x}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &number}}};
    const struct value *const given[] = {&values[0], &values[1]};
    struct kernel_program compiled = open_compiled(text, test_device());
    expect_error(run_execute(compiled.run, given, compiled.outputs),
                 ": access (node \"pick\"): index -5 is outside a dim of 4");
    number = -4;
    no_error(run_execute(compiled.run, given, compiled.outputs));
    kernel_program_close(&compiled);
}

#define LIST 40000 /* of which each of two threads has a slice */

/* Runs `compiled` on lists of so many numbers and a table of so many rows; what is said of it. */
static tssa_status *look_up(struct kernel_program *compiled, int64_t *numbers, int64_t count,
                            int64_t rows)
{
    static float table[100];
    const struct value values[] = {
        {.kind = TSSA_KIND_TENSOR,
         .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {rows}, .data = table}},
        {.kind = TSSA_KIND_TENSOR,
         .tensor = {.dtype = TSSA_INT64, .rank = 1, .dims = {count}, .data = numbers}}};
    const struct value *const given[] = {&values[0], &values[1]};
    for (int i = 0; i < 100; i++)
        table[i] = (float)i;
    return run_execute(compiled->run, given, compiled->outputs);
}

/* Of numbers that the kernel computes, the first wrong one of the first operator. */
static void check_computed_numbers(struct device_context *device)
{
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[R], %i: i64[N]) -> (%y) {\n"
        "  %y = fuse(%x, %i) { body(%p: f32[R], %n: i64[N]) {\n"
        "    %c = Constant() {value = i64[] 10} %d = Div(%n, %c)\n"
        "    %a = access(%p, %d) @first {rule = [gather(0, $0)]} %e = Neg(%n)\n"
        "    %b = access(%p, %e) @second {rule = [gather(0, $0)]}\n"
        "    %s = Sub(%b, %a) return(%s) } }\n"
        "  return(%y)\n}\n";
    static int64_t numbers[LIST];
    struct kernel_program compiled = open_compiled(text, device);
    for (int i = 0; i < LIST; i++)
        numbers[i] = i % 100;
    no_error(look_up(&compiled, numbers, LIST, 100));
    const float *made = compiled.outputs[0].tensor.data;
    for (int i = 0; i < LIST; i++)
        assert_true(made[i] == (float)((100 - i % 100) % 100) - (float)(i % 100 / 10));
    numbers[7] = 101; /* the second operator's */
    expect_error(look_up(&compiled, numbers, LIST, 100),
                 "access (node \"second\"): index -101 (number 7) is outside a dim of 100");
    numbers[LIST - 1] = 2000;
    numbers[LIST - 2] = -1010;
    expect_error(look_up(&compiled, numbers, LIST, 100),
                 "access (node \"first\"): index -101 (number 39998) is outside a dim of 100");
    expect_error(look_up(&compiled, numbers, 5, 0),
                 "access (node \"first\"): index 0 (number 0) is outside a dim of 0");
    value_release(&compiled.outputs[0]);
    no_error(look_up(&compiled, numbers, 0, 0));
    kernel_program_close(&compiled);
}

static void computed_numbers_are_checked(void **state)
{
    struct device_context context;
    struct team team;
    (void)state;
    if (!can_compile())
        skip();
    check_computed_numbers(test_device());
    team_open(&team, 2);
    device_context_open(&context, test_device()->device, &allocator_default, &team);
    check_computed_numbers(&context);
    device_context_close(&context);
}

/* Of so many at a level lower than the machine's own (ctest-isa), which are others: fewer, and
 * fewest where code takes longest to compile. */
static unsigned long share_of(unsigned long usual)
{
    return isa_level() < ISA_V3 ? usual / 5 : usual * 2 / 5;
}

/* Of so few a share tells less. */
#define FEW 200

static void check_many(enum kernel_kind kind, unsigned long usual)
{
    if (!can_compile())
        skip();
    const bool is_lower = getenv("TSSA_ISA") != NULL;
    uint64_t begin = is_lower ? programs_count(usual) : 0;
    const bool one = programs_seed(&begin);
    const unsigned long n = one ? 1 : programs_count(is_lower ? share_of(usual) : usual);
    unsigned long compiled = 0;
    for (unsigned long i = 0; i < n; i++)
        compiled += kernel_check(kind, begin + i, test_device());
    print_message("%lu of %lu fuse ops were compiled\n", compiled, n);
    assert_true(n < 20 || compiled > (n < FEW ? n / 4 : n * 2 / 5));
}

static void fuse_ops(void **state)
{
    (void)state;
    check_many(KERNEL_FUSE, 1500);
}

static void fuse_ops_with_maps(void **state)
{
    (void)state;
    check_many(KERNEL_MAPS, 1500);
}

static void fuse_ops_with_rows(void **state)
{
    (void)state;
    check_many(KERNEL_ROWS, 800);
}

static void fuse_ops_with_columns(void **state)
{
    (void)state;
    check_many(KERNEL_COLUMNS, 800);
}

static void fuse_ops_with_planes(void **state)
{
    (void)state;
    check_many(KERNEL_PLANES, 400);
}

static void fuse_ops_of_loops(void **state)
{
    (void)state;
    check_many(KERNEL_LOOPS, 200);
}

static void fuse_ops_that_keep(void **state)
{
    (void)state;
    if (isa_level() < ISA_V3)
        skip();
    check_many(KERNEL_KEEPS, 800);
}

static void fuse_ops_of_running_sums(void **state)
{
    (void)state;
    check_many(KERNEL_SCANS, 600);
}

static void fuse_ops_of_ranges(void **state)
{
    (void)state;
    check_many(KERNEL_RANGES, 300);
}

/* By several threads: each keeps of a slice, and these are joined. */
static void slices_are_joined(void **state)
{
    static const char lists[] =
        FUSED_GRAPH("%x: f32[A], %s: f32[]", "%x, %s",
                    "%p: f32[A], %t: f32[]) { %m = Greater(%p, %t) %e = Exp(%p) "
                    "%k = Compress(%e, %m) {axis = 0} %n = NonZero(%m) return(%k, %n, %e)",
                    "%y, %z, %w"),
                      rows[] = FUSED_GRAPH(
                          "%x: f32[A], %r: f32[A, 4], %l: i16[1, A, 9], %s: f32[]",
                          "%x, %r, %l, %s",
                          "%p: f32[A], %q: f32[A, 4], %o: i16[1, A, 9], %t: f32[]) { "
                          "%m = Greater(%p, %t) %e = Mul(%q, %t) %k = Compress(%p, %m) {axis = 0} "
                          "%b = Compress(%e, %m) {axis = 0} %d = Compress(%q, %m) {axis = 0} "
                          "%f = access(%o, %m) {rule = [mask(1, $0)]} return(%k, %b, %d, %f)",
                          "%y, %z, %v, %w"),
                      numbers[] = FUSED_GRAPH(
                          "%x: f32[A], %l: i16[1, A, 9], %s: f32[]", "%x, %l, %s",
                          "%p: f32[A], %o: i16[1, A, 9], %t: f32[]) { %m = Greater(%p, %t) "
                          "%n = NonZero(%m) %f = Compress(%o, %m) {axis = 1} return(%n, %f)",
                          "%y, %z");
    struct device_context context;
    struct team team;
    (void)state;
    if (isa_level() < ISA_V3 || !can_compile())
        skip();
    team_open(&team, 3);
    device_context_open(&context, device_find(NULL), &allocator_default, &team);
    for (uint64_t seed = 0; seed < 60; seed++) {
        assert_true(kernel_check_text(KERNEL_KEEPS, lists, seed, &context));
        assert_true(kernel_check_text(KERNEL_KEEPS, rows, seed, &context));
        assert_true(kernel_check_text(KERNEL_KEEPS, numbers, seed, &context));
    }
    device_context_close(&context);
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* Of floats all over the line, the emitted functions are the interpreter's. */
static void functions(void **state)
{
    (void)state;
    if (!can_compile())
        skip();
    static const char *const names[] = {"Exp", "Sigmoid", "Tanh", "Erf", "Log"};
    const int64_t n = 1 << 20;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        struct kernel_program compiled = {0}, interpreted = {0};
        struct compile_report report = {0};
        snprintf(text, sizeof text,
                 "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[N]) -> (%%y) {\n"
                 "  %%y = fuse(%%x) { body(%%p: f32[N]) { %%a = %s(%%p) return(%%a) } }\n"
                 "  return(%%y)\n}\n",
                 names[i]);
        struct ir_graph *graph = kernel_parse(text);
        no_error(compile_fused(graph, test_device(), -1, &report));
        assert_int_equal(report.compiled, 1);
        kernel_program_open(&compiled, graph, test_device());
        kernel_program_open(&interpreted, kernel_parse(text), test_device());
        struct value input = {.kind = TSSA_KIND_TENSOR,
                              .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {n}}};
        input.tensor.owner = buffer_create(&allocator_default, tensor_bytes(&input.tensor));
        assert_non_null(input.tensor.owner);
        input.tensor.data = input.tensor.owner->data;
        /* Every 4093rd number, so that vectors have neighbours; then vectors of which one lane is
         * far away. */
        for (uint32_t k = 0; k < n; k++)
            ((uint32_t *)input.tensor.data)[k] = k < n / 2 ? k * 8186
                                                 : k % 29  ? 0x3f000000 + k
                                                           : k * 8191;
        const struct value *given[] = {&input};
        no_error(run_execute(compiled.run, given, compiled.outputs));
        no_error(run_execute(interpreted.run, given, interpreted.outputs));
        kernel_compare(&compiled.outputs[0].tensor, &interpreted.outputs[0].tensor, text, 0);
        value_release(&input);
        kernel_program_close(&compiled);
        kernel_program_close(&interpreted);
    }
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void count_kernels(void *user, const tssa_step_profile *step)
{
    *(size_t *)user += strcmp(step->op, "fuse") == 0;
}

static size_t n_kernels; /* steps of all models */

/* The same outputs as without, three times over. */
static void one_model(void **state)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options compile = {
        .struct_size = sizeof compile, .profile = 1, .compile = TSSA_COMPILE_WAIT};
    struct model_run run = {0};
    tssa_session *session;
    no_error(model_run_open(&run, *state, 0));
    no_error(tssa_model_optimize(run.model, &optimize));
    no_error(model_run_read_inputs(&run, *state));
    no_error(model_run_execute(&run));
    no_error(tssa_session_create(run.model, &compile, &session));
    for (int i = 0; i < 3; i++)
        kernel_compare_run(session, &run, *state);
    no_error(tssa_session_profile_steps(session, count_kernels, &n_kernels));
    tssa_session_free(session);
    model_run_close(&run);
}

static void kernels_ran(void **state)
{
    (void)state;
    if (!can_compile())
        skip();
    assert_true(n_kernels > 100);
}

static tssa_status *make_session(const tssa_allocator *allocator)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/bbox_expand/model.onnx";
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = allocator};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options compile = {.struct_size = sizeof compile,
                                          .compile = TSSA_COMPILE_WAIT};
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    TRY(tssa_context_create(&options, &context));
    tssa_status *status = tssa_model_load_file(context, path, NULL, &model);
    if (!status) {
        status = tssa_model_optimize(model, &optimize);
        if (!status)
            status = tssa_session_create(model, &compile, &session);
        if (!status)
            tssa_session_free(session);
        tssa_model_free(model);
    }
    tssa_context_free(context);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(make_session) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_lie_on_operands),
                                       cmocka_unit_test(errors_name_operators),
                                       cmocka_unit_test(computed_numbers_are_checked),
                                       cmocka_unit_test(fuse_ops),
                                       cmocka_unit_test(fuse_ops_with_maps),
                                       cmocka_unit_test(fuse_ops_with_rows),
                                       cmocka_unit_test(fuse_ops_with_columns),
                                       cmocka_unit_test(fuse_ops_with_planes),
                                       cmocka_unit_test(fuse_ops_of_loops),
                                       cmocka_unit_test(fuse_ops_that_keep),
                                       cmocka_unit_test(fuse_ops_of_running_sums),
                                       cmocka_unit_test(fuse_ops_of_ranges),
                                       cmocka_unit_test(slices_are_joined),
                                       cmocka_unit_test(functions),
                                       cmocka_unit_test(every_allocation_fails_once)},
                            last[] = {cmocka_unit_test(kernels_ran)};
    return cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model) +
           cmocka_run_group_tests(last, NULL, NULL);
}
