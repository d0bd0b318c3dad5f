/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of two spaces compute what plans of one do: all committed models, on a device with memory
 * of its own and the CPU's kernels, give the CPU's bits, several times over; also when the device
 * lacks some kernels.
 */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/session.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/shadow_device.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define RUNS 4

struct fixture {
    struct device_context context;
    struct plan *plan;
    struct run *run;
};

static void fixture_open(struct fixture *f, const struct ir_graph *graph, bool lacks)
{
    device_context_open(&f->context, shadow_device(lacks), &allocator_default, NULL);
    f->context.host = test_device();
    no_error(plan_create(graph, &f->context, &f->plan));
    no_error(run_create(f->plan, &allocator_default, NULL, true, &f->run));
}

static void fixture_close(struct fixture *f)
{
    run_free(f->run);
    plan_free(f->plan);
    device_context_close(&f->context);
}

/* ---- The committed models -------------------------------------------------------------------- */

static void compare_run(struct fixture *f, struct model_run *expected, const char *path)
{
    const struct value **inputs = xcalloc(expected->input_count, sizeof *inputs);
    struct value *outputs = xcalloc(expected->output_count, sizeof *outputs);
    for (size_t i = 0; i < expected->input_count; i++)
        inputs[i] = expected->inputs[i] ? &expected->inputs[i]->value : NULL;
    no_error(run_execute(f->run, inputs, outputs));
    for (size_t i = 0; i < expected->output_count; i++) {
        if (!same_value(&outputs[i], model_run_output(expected, i)))
            fail_msg("%s: output %zu differs", path, i);
        value_release(&outputs[i]);
    }
    free((void *)inputs);
    free(outputs);
}

static void run_model(const char *path, int level, bool lacks)
{
    struct model_run run = {0};
    struct fixture f;
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = level, .target = TSSA_TARGET_SESSION};
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    no_error(tssa_context_create(&options, &run.context));
    no_error(tssa_model_load_file(run.context, path, NULL, &run.model));
    no_error(tssa_model_optimize(run.model, &optimize));
    run.input_count = tssa_model_input_count(run.model);
    run.output_count = tssa_model_output_count(run.model);
    run.inputs = xcalloc(run.input_count, sizeof(tssa_value *));
    run.outputs = xcalloc(run.output_count, sizeof(tssa_value *));
    no_error(model_run_read_inputs(&run, path));
    no_error(model_run_execute(&run));
    fixture_open(&f, run.model->graph, lacks);
    for (int i = 0; i < RUNS; i++)
        compare_run(&f, &run, path);
    fixture_close(&f);
    model_run_close(&run);
}

static void one_model(void **state)
{
    for (int level = 0; level <= 2; level += 2) {
        run_model(*state, level, false);
        run_model(*state, level, true);
    }
}

/* ---- Where things are computed --------------------------------------------------------------- */

/* How many steps of a plan run on the device. */
static int count_away(const struct plan *plan, const struct block_plan *block)
{
    int away = 0;
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        away += plan->spaces.on_device[step->op->id];
        for (uint32_t b = 0; b < step->n_blocks; b++)
            away += count_away(plan, step->blocks[b]);
    }
    return away;
}

static int away_in(const char *text)
{
    struct ir_graph *graph;
    struct fixture f;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    fixture_open(&f, graph, false);
    const int away = count_away(f.plan, f.plan->body);
    fixture_close(&f);
    ir_graph_free(graph);
    return away;
}

static void test_shapes_are_the_hosts(void **state)
{
    (void)state;
    /* The Reshape and the Neg are the device's, what makes the shape is not. */
    assert_int_equal(away_in("graph @g opset(\"\": 18) ir_version(8) (%x: f32[N, 4]) -> (%z) {\n"
                             "  %two = Constant() {value = i64[1] [2]}: i64[1]\n"
                             "  %s = Shape@15(%x)\n"
                             "  %t = Mul@14(%s, %two)\n"
                             "  %u = Div@14(%t, %two)\n"
                             "  %y = Reshape@14(%x, %u)\n"
                             "  %z = Neg@13(%y)\n"
                             "  return(%z)\n"
                             "}\n"),
                     2);
}

static void test_conditions_are_the_hosts(void **state)
{
    (void)state;
    /* The counter is carried and compared by the host; the sum is not. */
    assert_int_equal(
        away_in("graph @g opset(\"\": 18) ir_version(8) (%x: f32[N], %n: i64[]) -> (%y) {\n"
                "  %one = Constant() {value = i64[] 1}: i64[]\n"
                "  %zero = Constant() {value = i64[] 0}: i64[]\n"
                "  %y, %last = Loop@16(_, _, %x, %zero) {\n"
                "    body(%i: i64[], %c: bool[], %v: f32[N], %k: i64[]) {\n"
                "      %w = Add@14(%v, %x)\n"
                "      %m = Add@14(%k, %one)\n"
                "      %d = Less@13(%m, %n)\n"
                "      return(%d, %w, %m)\n"
                "    }\n"
                "  }\n"
                "  return(%y)\n"
                "}\n"),
        1);
}

static void test_data_decides_on_the_device(void **state)
{
    (void)state;
    /* A condition that comes from data is the device's, and is read. */
    assert_int_equal(away_in("graph @g opset(\"\": 18) ir_version(8) (%x: f32[N]) -> (%y) {\n"
                             "  %axes = Constant() {value = i64[1] [0]}: i64[1]\n"
                             "  %zero = Constant() {value = f32[] 0}: f32[]\n"
                             "  %m = ReduceMax@18(%x, %axes) {keepdims = 0}\n"
                             "  %c = Greater@13(%m, %zero)\n"
                             "  %y = If@16(%c) {\n"
                             "    else_branch() {\n"
                             "      %e = Neg@13(%x)\n"
                             "      return(%e)\n"
                             "    }\n"
                             "    then_branch() {\n"
                             "      return(%x)\n"
                             "    }\n"
                             "  }\n"
                             "  return(%y)\n"
                             "}\n"),
                     3);
}

/* ---- Remarks --------------------------------------------------------------------------------- */

static void count_lacked(void *user, const tssa_remark *remark)
{
    static const char lacked[] =
        "device emulated has no kernel for it: it runs on cpu, with copies";
    const bool said = strcmp(remark->message, lacked) == 0;
    *(uint32_t *)user += said;
    assert_true(!said || (remark->kind == TSSA_REMARK_MISSED && *remark->op));
}

static void expect_remarks(tssa_model *model, bool lacks)
{
    uint32_t n = 0;
    const tssa_session_options options = {
        .struct_size = sizeof options, .remark = count_lacked, .remark_user = &n};
    tssa_session *session;
    no_error(session_create_on(model, shadow_device(lacks), &options, &session));
    assert_int_equal(n > 0, lacks);
    assert_int_equal(n, session->now->plan->spaces.n_lacked);
    tssa_session_free(session);
}

/* Of each op that the device lacks, in subgraphs as well. */
static void test_remarks_tell_what_is_lacked(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/ssd_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    no_error(model_run_open(&run, path, 0));
    for (int level = 1; level <= 2; level++) {
        const tssa_optimize_options optimize = {
            .struct_size = sizeof optimize, .level = level, .target = TSSA_TARGET_SESSION};
        no_error(tssa_model_optimize(run.model, &optimize));
        expect_remarks(run.model, true);
        if (level == 2)
            expect_remarks(run.model, false);
    }
    model_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_are_the_hosts),
        cmocka_unit_test(test_conditions_are_the_hosts),
        cmocka_unit_test(test_data_decides_on_the_device),
        cmocka_unit_test(test_remarks_tell_what_is_lacked),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
