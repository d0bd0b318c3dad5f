/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels compiled from fuse ops give the interpreter's bits: random regions of all element types,
 * ranks and broadcasts, and of rows of many lengths, with NaN, infinities, -0, denormals and the
 * ends of integers, one thread and several. Without a generator of code that is skipped, and said.
 * TSSA_SEED=N runs one of each kind and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
/* ctest-timeout: 600 */
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
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_columns.h"
#include "common/random_programs.h"
#include "common/random_region.h"
#include "common/random_rows.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "runtime/compile.h"
#include "runtime/executor.h"

#define MAX_VALUES 16

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    tssa_status *status = ir_parse(&allocator_default, text, strlen(text), &graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = ir_verify(graph);
    if (status)
        print_message("%s\n%s\n", tssa_status_message(status), text);
    no_error(status);
    return graph;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void random_element(struct random *random, tssa_dtype dtype, void *element)
{
    static const double special[] = {
        0.0,  -0.0,  INFINITY,     -INFINITY,     NAN,    1e-41, -1e-310, 6e-8,
        1e30, -1e30, 65504.0,      0x1p-126,      0.5,    -1,    2,       3,
        2.5,  -3.5,  2147483648.0, -2147483649.0, 9.3e18, 88.5,  -104.5,  1.5e9};
    const int64_t way = random_int(random, 0, 9);
    const uint64_t bits = random_bits(random);
    if (way == 0 || (way < 3 && !dtype_is_float(dtype)))
        memcpy(element, &bits, dtype_info(dtype)->size);
    else if (dtype_is_float(dtype) && way < 4)
        dtype_store_double(dtype, element, special[random_int(random, 0, 23)]);
    else if (dtype_is_float(dtype))
        dtype_store_double(dtype, element, (double)random_int(random, -4096, 4096) / 512);
    else
        dtype_store_int64(dtype, element, random_int(random, -3, 5));
}

static void make_input(struct random *random, const struct ir_type *type, const int64_t *sizes,
                       struct value *value)
{
    struct tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor.dims[i]))
            tensor.dims[i] = sizes[type->dims[i]->name[0] - 'A'];
    tensor.owner = buffer_create(&allocator_default, tensor_bytes(&tensor) + 1);
    assert_non_null(tensor.owner);
    tensor.data = tensor.owner->data;
    /* Numbers of rows, some of which are there. */
    const bool small = !dtype_is_float(tensor.dtype) && random_int(random, 0, 1);
    for (size_t i = 0, n = tensor_count(&tensor); i < n; i++) {
        char *element = (char *)tensor.data + i * dtype_info(tensor.dtype)->size;
        if (small)
            dtype_store_int64(tensor.dtype, element, random_int(random, -3, 5));
        else
            random_element(random, tensor.dtype, element);
    }
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensor};
}

/* Few elements in all, and now and then none. */
static void make_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t some[] = {1, 1, 2, 3, 4, 7, 16, 33, 64, 100};
    int64_t count = 1;
    for (int i = 0; i < 8; i++) {
        sizes[i] = random_int(random, 0, 60) ? some[random_int(random, 0, 9)] : 0;
        if (count * sizes[i] > 6000)
            sizes[i] = 1;
        count *= sizes[i] ? sizes[i] : 1;
    }
}

/* Rows of all lengths at which something is done otherwise, H; few of the long ones. */
static void make_row_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0,    1,    64,   65,    100,    1000,   1999,   2048,
                                      2049, 4100, 7000, 33000, 100000, 131072, 131073, 140000};
    const bool is_short = random_int(random, 0, 9) < 6;
    const int64_t n = is_short ? random_int(random, 2, 70) : lengths[random_int(random, 0, 15)];
    int64_t most = 12000 / (n + 1) + 1;
    for (int i = 0; i < 3; i++) {
        sizes[i] = random_int(random, 0, 30) ? random_int(random, 1, 50) : 0;
        if (sizes[i] > most)
            sizes[i] = 1 + (most > 1);
        most /= sizes[i] ? sizes[i] : 1;
    }
    sizes['H' - 'A'] = n;
}

/* Columns, all that is reduced of them, H, and at which lengths something is done otherwise. */
static void make_column_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0, 1, 63, 64, 65, 128, 200, 4095, 4096, 4097, 8200};
    const int64_t n =
        random_int(random, 0, 2) ? random_int(random, 1, 40) : lengths[random_int(random, 0, 10)];
    int64_t most = 400 / (n + 1) + 1;
    for (int i = 0; i < 3; i++) {
        sizes[i] = random_int(random, 0, 30) ? random_int(random, 1, 6) : 0;
        if (sizes[i] > most)
            sizes[i] = 1;
        most /= sizes[i] ? sizes[i] : 1;
    }
    sizes['H' - 'A'] = n;
}

/* ---- Running --------------------------------------------------------------------------------- */

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    struct value outputs[MAX_VALUES];
    uint32_t n_outputs;
};

static void program_open(struct program *p, struct ir_graph *graph)
{
    p->graph = graph;
    no_error(plan_create(graph, test_device(), &p->plan));
    no_error(run_create(p->plan, &allocator_default, NULL, false, &p->run));
    p->n_outputs = ir_block_return(graph->body)->n_operands;
    assert_true(p->n_outputs <= MAX_VALUES);
}

static void program_close(struct program *p)
{
    for (uint32_t i = 0; i < p->n_outputs; i++)
        value_release(&p->outputs[i]);
    run_free(p->run);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

static bool same_element(tssa_dtype dtype, const char *a, const char *b)
{
    return memcmp(a, b, dtype_info(dtype)->size) == 0 ||
           (dtype_is_float(dtype) && isnan(dtype_load_double(dtype, a)) &&
            isnan(dtype_load_double(dtype, b)));
}

static void compare(const struct tensor *a, const struct tensor *b, const char *text,
                    uint32_t output)
{
    const size_t width = dtype_info(a->dtype)->size;
    assert_true(a->dtype == b->dtype && tensor_same_shape(a, b));
    for (size_t i = 0, n = tensor_count(a); i < n; i++)
        if (!same_element(a->dtype, (char *)a->data + i * width, (char *)b->data + i * width)) {
            print_message("%s", text);
            fail_msg("output %u, element %zu: %.17g where %.17g is right", (unsigned)output, i,
                     dtype_load_double(a->dtype, (char *)a->data + i * width),
                     dtype_load_double(b->dtype, (char *)b->data + i * width));
        }
}

/* Whether the region was compiled. Where one run errs, the other does. */
static bool check_text(char *text, uint64_t seed, void (*make)(struct random *, int64_t *))
{
    struct random random = {seed};
    struct program compiled = {0}, interpreted = {0};
    struct compile_report report = {0};
    struct ir_graph *graph = parse(text);
    uint64_t one;
    if (programs_seed(&one))
        print_message("%s", text);
    no_error(compile_fused(graph, test_device(), -1, &report));
    program_open(&compiled, graph);
    program_open(&interpreted, parse(text));
    for (int round = 0; round < 2; round++) {
        struct value inputs[MAX_VALUES];
        const struct value *given[MAX_VALUES];
        const uint32_t n = graph->body->n_params;
        int64_t sizes[8];
        make(&random, sizes);
        for (uint32_t i = 0; i < n; i++) {
            make_input(&random, graph->body->params[i]->type, sizes, &inputs[i]);
            given[i] = &inputs[i];
        }
        tssa_status *status = run_execute(compiled.run, given, compiled.outputs),
                    *other = run_execute(interpreted.run, given, interpreted.outputs);
        if (!status != !other)
            fail_msg("%s\n%s\n%s", status ? tssa_status_message(status) : "no error",
                     other ? tssa_status_message(other) : "no error", text);
        for (uint32_t i = 0; i < compiled.n_outputs && !status; i++) {
            compare(&compiled.outputs[i].tensor, &interpreted.outputs[i].tensor, text, i);
            value_release(&compiled.outputs[i]);
            value_release(&interpreted.outputs[i]);
        }
        tssa_status_free(status);
        tssa_status_free(other);
        for (uint32_t i = 0; i < n; i++)
            value_release(&inputs[i]);
    }
    program_close(&compiled);
    program_close(&interpreted);
    free(text);
    return report.compiled == 1;
}

static bool check_region(uint64_t seed)
{
    return check_text(random_region(seed), seed, make_sizes);
}

static bool check_maps(uint64_t seed)
{
    return check_text(random_map_region(seed), seed, make_sizes);
}

static bool check_rows(uint64_t seed)
{
    return check_text(random_rows(seed), seed, make_row_sizes);
}

static bool check_columns(uint64_t seed)
{
    return check_text(random_columns(seed), seed, make_column_sizes);
}

static bool check_planes(uint64_t seed)
{
    return check_text(random_planes(seed), seed, make_row_sizes);
}

/* Is there a generator of code? */
static bool can_compile(void)
{
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N]) -> (%y) {\n"
        "  %y = fuse(%x) { body(%p: f32[N]) { %a = Neg(%p) return(%a) } }\n  return(%y)\n}\n";
    struct compile_report report = {0};
    struct ir_graph *graph = parse(text);
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
    struct program compiled = {0};
    struct ir_graph *graph = parse(text);
    uint32_t n = 0;
    no_error(compile_fused(graph, test_device(), -1, &report));
    assert_int_equal(report.refused, 0);
    program_open(&compiled, graph);
    for (uint32_t i = 0; i < compiled.plan->n_placed; i++)
        n += compiled.plan->placed[i].back > 0;
    program_close(&compiled);
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
    struct compile_report report = {0};
    struct program compiled = {0};
    struct ir_graph *graph = parse(text);
    no_error(compile_fused(graph, test_device(), -1, &report));
    assert_int_equal(report.refused, 0);
    program_open(&compiled, graph);
    tssa_status *status = run_execute(compiled.run, given, compiled.outputs);
    assert_non_null(status);
    assert_non_null(strstr(tssa_status_message(status),
                           ": access (node \"pick\"): index -5 is outside a dim of 4"));
    tssa_status_free(status);
    number = -4;
    no_error(run_execute(compiled.run, given, compiled.outputs));
    program_close(&compiled);
}

static void check_many(bool (*check)(uint64_t seed), unsigned long usual)
{
    if (!can_compile())
        skip();
    uint64_t begin = 0;
    const bool one = programs_seed(&begin);
    const unsigned long n = one ? 1 : programs_count(usual);
    unsigned long compiled = 0;
    for (unsigned long i = 0; i < n; i++)
        compiled += check(begin + i);
    print_message("%lu of %lu regions were compiled\n", compiled, n);
    assert_true(n < 20 || compiled > n / 2);
}

static void regions(void **state)
{
    (void)state;
    check_many(check_region, 400);
}

static void regions_with_maps(void **state)
{
    (void)state;
    check_many(check_maps, 400);
}

static void regions_with_rows(void **state)
{
    (void)state;
    check_many(check_rows, 400);
}

static void regions_with_columns(void **state)
{
    (void)state;
    check_many(check_columns, 200);
}

static void regions_with_planes(void **state)
{
    (void)state;
    check_many(check_planes, 200);
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* Of floats all over the line, the emitted functions are the interpreter's. */
static void functions(void **state)
{
    (void)state;
    if (!can_compile())
        skip();
    static const char *const names[] = {"Exp", "Tanh", "Log"};
    const int64_t n = 1 << 20;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        struct program compiled = {0}, interpreted = {0};
        struct compile_report report = {0};
        snprintf(text, sizeof text,
                 "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[N]) -> (%%y) {\n"
                 "  %%y = fuse(%%x) { body(%%p: f32[N]) { %%a = %s(%%p) return(%%a) } }\n"
                 "  return(%%y)\n}\n",
                 names[i]);
        struct ir_graph *graph = parse(text);
        no_error(compile_fused(graph, test_device(), -1, &report));
        assert_int_equal(report.compiled, 1);
        program_open(&compiled, graph);
        program_open(&interpreted, parse(text));
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
        compare(&compiled.outputs[0].tensor, &interpreted.outputs[0].tensor, text, 0);
        value_release(&input);
        program_close(&compiled);
        program_close(&interpreted);
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
    tssa_value *outputs[MAX_VALUES] = {NULL};
    no_error(model_run_open(&run, *state, 0));
    no_error(tssa_model_optimize(run.model, &optimize));
    no_error(model_run_read_inputs(&run, *state));
    no_error(model_run_execute(&run));
    no_error(tssa_session_create(run.model, &compile, &session));
    assert_true(run.output_count <= MAX_VALUES);
    for (int i = 0; i < 3; i++) {
        no_error(tssa_session_run(session, run.input_count, run.inputs, run.output_count, outputs));
        for (size_t k = 0; k < run.output_count; k++) {
            const struct value *made = &outputs[k]->value, *wanted = model_run_output(&run, k);
            assert_int_equal(made->kind, wanted->kind);
            if (made->kind == TSSA_KIND_TENSOR)
                compare(&made->tensor, &wanted->tensor, *state, (uint32_t)k);
            tssa_value_free(outputs[k]);
            outputs[k] = NULL;
        }
    }
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
                                       cmocka_unit_test(regions),
                                       cmocka_unit_test(regions_with_maps),
                                       cmocka_unit_test(regions_with_rows),
                                       cmocka_unit_test(regions_with_columns),
                                       cmocka_unit_test(regions_with_planes),
                                       cmocka_unit_test(functions),
                                       cmocka_unit_test(every_allocation_fails_once)},
                            last[] = {cmocka_unit_test(kernels_ran)};
    return cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model) +
           cmocka_run_group_tests(last, NULL, NULL);
}
