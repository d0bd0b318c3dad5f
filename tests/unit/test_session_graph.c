/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on a device that makes kernels of fused ops plan from graphs of their own: the same bits
 * as without, also where the device has no kernel for some of what was fused, and the model is as
 * it was. And copies of graphs are equal and on their own.
 */
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
#include "api/options.h"
#include "base/text.h"
#include "common/committed_models.h"
#include "common/fusing_device.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/test_alloc.h"
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"

#define RUNS 3

static const tssa_session_options session_options = {.struct_size = sizeof session_options};
static size_t n_fused; /* steps of all models that a kernel of a fuse op computes */

static char *print(const struct ir_graph *graph)
{
    struct text text;
    text_init(&text, &allocator_default);
    ir_print_graph(graph, true, &text);
    char *string = strdup(text_string(&text));
    text_free(&text);
    assert_non_null(string);
    return string;
}

static void expect_text(const struct ir_graph *graph, const char *text)
{
    char *now = print(graph);
    assert_string_equal(now, text);
    free(now);
}

static tssa_status *optimize(tssa_model *model)
{
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = 2, .target = TSSA_TARGET_SESSION};
    return tssa_model_optimize(model, &options);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void count_fused(void *user, const tssa_step_profile *step)
{
    *(size_t *)user += strncmp(step->op, "fuse", 4) == 0;
}

static tssa_session *create(struct model_run *run, bool refuses)
{
    tssa_session *session;
    tssa_session_options options = session_options;
    options.profile = 1;
    no_error(session_create_on(run->model, fusing_device(refuses), &options, &session));
    return session;
}

/* The outputs are those of the model's own session. */
static void expect_run(struct model_run *run, tssa_session *session)
{
    tssa_value **outputs = calloc(run->output_count + 1, sizeof *outputs);
    assert_non_null(outputs);
    no_error(tssa_session_run(session, run->input_count, run->inputs, run->output_count, outputs));
    for (size_t k = 0; k < run->output_count; k++) {
        assert_true(same_value(&outputs[k]->value, model_run_output(run, k)));
        tssa_value_free(outputs[k]);
    }
    free(outputs);
}

static void compare(struct model_run *run, bool refuses)
{
    tssa_session *session = create(run, refuses);
    size_t found = 0;
    for (int i = 0; i < RUNS; i++)
        expect_run(run, session);
    no_error(tssa_session_profile_steps(session, count_fused, &found));
    n_fused += found;
    tssa_session_free(session);
}

static void one_model(void **state)
{
    struct model_run run = {0};
    no_error(model_run_open(&run, *state, 0));
    no_error(optimize(run.model));
    assert_non_null(run.model->raised);
    no_error(model_run_read_inputs(&run, *state));
    char *lowered = print(run.model->graph), *raised = print(run.model->raised);
    no_error(model_run_execute(&run));
    compare(&run, false);
    compare(&run, true);
    expect_text(run.model->graph, lowered);
    expect_text(run.model->raised, raised);
    free(lowered);
    free(raised);
    model_run_close(&run);
}

/* What a session computes does not depend on what becomes of the model. */
static void changed_models(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/ssd_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    tssa_session *plain;
    no_error(model_run_open(&run, path, 0));
    no_error(optimize(run.model));
    no_error(model_run_read_inputs(&run, path));
    no_error(session_create_on(run.model, fusing_device(false), &session_options, &run.session));
    no_error(tssa_session_create(run.model, NULL, &plain));
    no_error(model_run_execute(&run));
    tssa_value **first = calloc(run.output_count, sizeof *first);
    assert_non_null(first);
    memcpy(first, run.outputs, run.output_count * sizeof *first);
    memset(run.outputs, 0, run.output_count * sizeof *first);
    tssa_session_free(plain);
    const tssa_optimize_options options = {.struct_size = sizeof options, .level = 2};
    no_error(tssa_model_optimize(run.model, &options));
    assert_null(run.model->raised);
    no_error(model_run_execute(&run));
    for (size_t i = 0; i < run.output_count; i++) {
        assert_true(same_value(&first[i]->value, model_run_output(&run, i)));
        tssa_value_free(first[i]);
    }
    free(first);
    model_run_close(&run);
}

/* ---- Remarks --------------------------------------------------------------------------------- */

struct said {
    size_t applied, missed, refused, estimated;
};

static void count_remark(void *user, const tssa_remark *remark)
{
    struct said *said = user;
    if (strcmp(remark->pass, "gir") == 0) {
        assert_int_equal(remark->kind, TSSA_REMARK_APPLIED);
        assert_non_null(strstr(remark->message, ", bound by "));
        said->estimated++;
        return;
    }
    assert_string_equal(remark->pass, "fuse");
    said->applied += remark->kind == TSSA_REMARK_APPLIED;
    said->missed += remark->kind == TSSA_REMARK_MISSED;
    said->refused += strstr(remark->message, "no kernel was made of it") != NULL;
}

static struct said remarks_of(tssa_model *model, const struct device *device)
{
    struct said said = {0, 0, 0, 0};
    const tssa_session_options options = {
        .struct_size = sizeof options, .remark = count_remark, .remark_user = &said};
    tssa_session *session;
    no_error(session_create_on(model, device, &options, &session));
    tssa_session_free(session);
    return said;
}

static void sessions_say_what_they_fuse(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/ssd_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    no_error(model_run_open(&run, path, 0));
    no_error(optimize(run.model));
    const struct said all = remarks_of(run.model, fusing_device(false)),
                      some = remarks_of(run.model, fusing_device(true)),
                      none = remarks_of(run.model, device_find(NULL));
    assert_true(all.applied > 0 && all.missed > 0 && all.refused == 0);
    assert_true(some.refused > 0 && some.applied == all.applied);
    assert_true(all.estimated > 0 && some.estimated == all.estimated);
    assert_true(none.applied == 0 && none.missed == 0 && none.estimated == 0);
    model_run_close(&run);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Of each stage the text, in the order in which they came. */
struct dumped {
    const char *stages[4];
    char *texts[4];
    size_t count;
};

static void keep_text(void *user, const char *stage, const char *text, size_t size)
{
    struct dumped *dumped = user;
    assert_int_equal(strlen(text), size);
    assert_true(dumped->count < 4);
    dumped->stages[dumped->count] = stage;
    dumped->texts[dumped->count++] = strdup(text);
}

static struct dumped dump_of(tssa_model *model, const struct device *device)
{
    struct dumped dumped = {.count = 0};
    const tssa_session_options options = {
        .struct_size = sizeof options, .dump = keep_text, .dump_user = &dumped};
    tssa_session *session;
    no_error(session_create_on(model, device, &options, &session));
    tssa_session_free(session);
    return dumped;
}

static void free_texts(struct dumped *dumped)
{
    for (size_t i = 0; i < dumped->count; i++)
        free(dumped->texts[i]);
}

static void sessions_show_what_they_compute(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/ssd_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    no_error(model_run_open(&run, path, 0));
    no_error(optimize(run.model));
    struct dumped fused = dump_of(run.model, fusing_device(false)),
                  apart = dump_of(run.model, device_find(NULL));
    assert_int_equal(fused.count, 3);
    assert_string_equal(fused.stages[0], "gir");
    assert_non_null(strstr(fused.texts[0], "kernel 0: fuse (node \""));
    assert_non_null(strstr(fused.texts[0], "\nargs 0: "));
    assert_non_null(strstr(fused.texts[0], "no kernel: fuse (node \"")); /* it fuses anything */
    assert_string_equal(fused.stages[1], "cuda");
    assert_non_null(strstr(fused.texts[1], "KERNEL kernel_0("));
    assert_string_equal(fused.stages[2], "session");
    assert_non_null(strstr(fused.texts[2], "= fuse("));
    assert_int_equal(apart.count, 1);
    assert_string_equal(apart.stages[0], "session");
    assert_null(strstr(apart.texts[0], "= fuse("));
    free_texts(&fused);
    free_texts(&apart);
    model_run_close(&run);
}

/* ---- Changes after optimizing ---------------------------------------------------------------- */

static size_t fused_steps(struct model_run *run)
{
    tssa_session *session = create(run, false);
    size_t found = 0;
    expect_run(run, session);
    no_error(tssa_session_profile_steps(session, count_fused, &found));
    tssa_session_free(session);
    return found;
}

static void open_optimized(struct model_run *run, const char *path)
{
    no_error(model_run_open(run, path, 0));
    no_error(optimize(run->model));
    no_error(model_run_read_inputs(run, path));
    no_error(model_run_execute(run));
    tssa_session_free(run->session); /* it holds on to outputs as they are */
    run->session = NULL;
}

static void a_symbol_is_fixed_later(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/t_dataflow_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    open_optimized(&run, path);
    const int64_t rows = run.inputs[0]->value.tensor.dims[0];
    const size_t before = fused_steps(&run);
    assert_true(before > 0);
    no_error(tssa_model_set_dim(run.model, "rows", rows));
    assert_true(fused_steps(&run) > 0);
    assert_true(dim_is(run.model->raised->body->params[0]->type->dims[0], rows));
    model_run_close(&run);
}

/* A session's graph shares types with what it is a copy of, which the model has no more use for. */
static void what_is_shared_stays(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/t_dataflow_small/model.onnx";
    static const tssa_optimize_options files = {.struct_size = sizeof files, .level = 2};
    (void)state;
    struct model_run run = {0};
    open_optimized(&run, path);
    no_error(tssa_model_set_dim(run.model, "rows", run.inputs[0]->value.tensor.dims[0]));
    tssa_session *session = create(&run, false);
    no_error(tssa_model_optimize(run.model, &files));
    assert_null(run.model->raised);
    expect_run(&run, session);
    tssa_session_free(session);
    model_run_close(&run);
}

/* Sessions of a model of which sizes are fixed after it was optimized fuse what they did before. */
static void sizes_are_fixed_later(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/offset2bbox/model.onnx";
    (void)state;
    struct model_run run = {0};
    open_optimized(&run, path);
    const struct tensor *input = &run.inputs[0]->value.tensor;
    const size_t before = fused_steps(&run);
    assert_true(before > 0);
    no_error(tssa_model_set_input_shape(run.model, "boxes", 2, input->dims));
    assert_int_equal(fused_steps(&run), before);
    tssa_status *status = tssa_model_set_dim(run.model, "n", 3); /* it has got its size */
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    assert_int_equal(fused_steps(&run), before);
    no_error(optimize(run.model));
    assert_int_equal(fused_steps(&run), before);
    const struct ir_type *type = run.model->raised->body->params[1]->type;
    assert_true(dim_is(type->dims[0], input->dims[0]) && dim_is(type->dims[1], input->dims[1]));
    model_run_close(&run);
}

static void outputs_are_left_out_later(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/ssd_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    tssa_value_info info;
    open_optimized(&run, path);
    const size_t before = fused_steps(&run);
    assert_true(run.output_count > 1);
    no_error(tssa_model_output(run.model, 0, &info));
    no_error(tssa_model_keep_outputs(run.model, 1, &info.name));
    for (size_t i = 1; i < run.output_count; i++)
        tssa_value_free(run.outputs[i]);
    run.output_count = 1;
    const size_t after = fused_steps(&run);
    assert_true(after > 0 && after <= before);
    model_run_close(&run);
}

static tssa_status *make_session(const tssa_allocator *allocator)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/t_dataflow_small/model.onnx";
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = allocator};
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    TRY(tssa_context_create(&options, &context));
    tssa_status *status = tssa_model_load_file(context, path, NULL, &model);
    if (!status) {
        status = optimize(model);
        if (!status)
            status = session_create_on(model, fusing_device(false), &session_options, &session);
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

/* ---- Copies ---------------------------------------------------------------------------------- */

static void copies_are_equal_and_apart(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/yolact_loop_small/model.onnx";
    (void)state;
    struct model_run run = {0};
    struct ir_graph *copy, *again;
    no_error(model_run_open(&run, path, 0));
    char *text = print(run.model->graph);
    no_error(ir_clone_graph(run.model->graph, &copy));
    no_error(ir_verify(copy));
    expect_text(copy, text);
    no_error(ir_clone_graph(copy, &again));
    /* What one makes, the others do not find. */
    const struct dim *one = dim_symbol(&copy->dims, "a_new_one"),
                     *other = dim_symbol(&again->dims, "a_new_one");
    assert_true(one && other && one != other);
    assert_ptr_equal(dim_const(&copy->dims, 1), dim_const(&run.model->graph->dims, 1));
    assert_null(intern_find(&run.model->graph->strings, "a_new_name"));
    assert_non_null(intern_str(&copy->strings, "a_new_name"));
    assert_null(intern_find(&run.model->graph->strings, "a_new_name"));
    bool changed = false;
    ir_fuse_inline_all(copy, &changed);
    assert_false(changed);
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    no_error(pipeline_run(copy, 2, &pipeline));
    expect_text(run.model->graph, text);
    expect_text(again, text);
    ir_graph_free(copy);
    expect_text(again, text);
    ir_graph_free(again);
    free(text);
    model_run_close(&run);
}

static void something_was_fused(void **state)
{
    (void)state;
    assert_true(n_fused > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_equal_and_apart),
                                       cmocka_unit_test(changed_models),
                                       cmocka_unit_test(sessions_say_what_they_fuse),
                                       cmocka_unit_test(sessions_show_what_they_compute),
                                       cmocka_unit_test(a_symbol_is_fixed_later),
                                       cmocka_unit_test(what_is_shared_stays),
                                       cmocka_unit_test(sizes_are_fixed_later),
                                       cmocka_unit_test(outputs_are_left_out_later),
                                       cmocka_unit_test(every_allocation_fails_once)},
                            last[] = {cmocka_unit_test(something_was_fused)};
    return cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model) +
           cmocka_run_group_tests(last, NULL, NULL);
}
