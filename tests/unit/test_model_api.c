/* SPDX-License-Identifier: Apache-2.0 */
/* What tssa.h tells of passes and of a model's loops, and how it fixes shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/test_alloc.h"
#include "tssa.h"

static const char start[] = TSSA_SOURCE_DIR "/models/get_started_small/model.onnx";
static const char lists[] = TSSA_SOURCE_DIR "/models/multiscale_bbox/model.onnx";
static const char yolact[] = TSSA_SOURCE_DIR "/models/yolact_loop_small/model.onnx";

struct loaded {
    tssa_context *context;
    tssa_model *model;
};

static int open_start(void **state)
{
    static struct loaded loaded;
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    assert_null(tssa_context_create(&options, &loaded.context));
    assert_null(tssa_model_load_file(loaded.context, start, NULL, &loaded.model));
    *state = &loaded;
    return 0;
}

static int close_start(void **state)
{
    struct loaded *loaded = *state;
    tssa_model_free(loaded->model);
    tssa_context_free(loaded->context);
    return 0;
}

static void expect_refused(tssa_status *status, tssa_code code, const char *part)
{
    assert_int_equal(tssa_status_code(status), code);
    if (!strstr(tssa_status_message(status), part))
        print_error("%s\n", tssa_status_message(status));
    assert_non_null(strstr(tssa_status_message(status), part));
    tssa_status_free(status);
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void passes_are_listed(void **state)
{
    (void)state;
    tssa_pass_info info;
    bool found = false;
    assert_true(tssa_pass_count() >= 3);
    for (size_t i = 0; i < tssa_pass_count(); i++) {
        assert_null(tssa_pass(i, &info));
        assert_true(info.name[0] && info.summary[0]);
        found |= strcmp(info.name, "dead_code") == 0;
    }
    assert_true(found);
    expect_refused(tssa_pass(tssa_pass_count(), &info), TSSA_INVALID_ARGUMENT, "no pass");
}

static bool is_pass(const char *name)
{
    tssa_pass_info info;
    for (size_t i = 0; i < tssa_pass_count(); i++)
        if (!tssa_pass(i, &info) && strcmp(info.name, name) == 0)
            return true;
    return false;
}

static void stages_consist_of_passes(void **state)
{
    (void)state;
    tssa_stage_info stage;
    assert_int_equal(tssa_stage_count(0), 0);
    assert_int_equal(tssa_stage_count(-1), 0);
    assert_int_equal(tssa_stage_count(3), 0);
    for (int level = 1; level <= 2; level++) {
        assert_true(tssa_stage_count(level) >= 1);
        for (size_t i = 0; i < tssa_stage_count(level); i++) {
            assert_null(tssa_stage(level, i, &stage));
            assert_true(stage.rounds >= 1 && stage.pass_count >= 1);
            for (size_t k = 0; k < stage.pass_count; k++)
                assert_true(is_pass(stage.passes[k]));
        }
    }
    expect_refused(tssa_stage(2, tssa_stage_count(2), &stage), TSSA_INVALID_ARGUMENT, "no stage");
}

struct runs {
    size_t count, changed, first, last;
    bool joined; /* each pass begins with what the one before it left */
};

static void note_run(void *user, const tssa_pass_run *run)
{
    struct runs *runs = user;
    assert_true(is_pass(run->pass));
    assert_true(run->seconds >= 0);
    if (runs->count++ == 0)
        runs->first = run->ops_before;
    else
        runs->joined &= run->ops_before == runs->last;
    runs->changed += run->changed != 0;
    runs->last = run->ops_after;
}

static void runs_of_passes_are_told(void **state)
{
    const struct loaded *loaded = *state;
    struct runs runs = {.joined = true};
    const char *const names[] = {"identity", "dead_code", "identity"};
    const tssa_optimize_options options = {.struct_size = sizeof options,
                                           .passes = names,
                                           .n_passes = 3,
                                           .pass_done = note_run,
                                           .pass_done_user = &runs};
    assert_null(tssa_model_optimize(loaded->model, &options));
    assert_int_equal(runs.count, 3);
    assert_int_equal(runs.changed, 1);
    assert_int_equal(runs.first - runs.last, 2); /* two Identities */
    assert_true(runs.joined);
    assert_null(tssa_model_verify(loaded->model));
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static void shapes_are_fixed_everywhere(void **state)
{
    const struct loaded *loaded = *state;
    tssa_value_info info;
    assert_null(tssa_model_set_input_shape(loaded->model, "a", 2, (const int64_t[]){5, -1}));
    assert_null(tssa_model_input(loaded->model, 1, &info));
    assert_int_equal(info.dims[0], 5); /* of b, which has the same symbol */
    assert_int_equal(info.dims[1], -1);
    assert_null(tssa_model_output(loaded->model, 0, &info));
    assert_int_equal(info.dims[0], 5);
    /* A number is replaced in the one input. */
    assert_null(tssa_model_set_input_shape(loaded->model, "a", 2, (const int64_t[]){6, 2}));
    assert_null(tssa_model_input(loaded->model, 0, &info));
    assert_int_equal(info.dims[0], 6);
    assert_null(tssa_model_input(loaded->model, 1, &info));
    assert_int_equal(info.dims[0], 5);
    assert_int_equal(info.dims[1], 2);
}

static void wrong_shapes_are_refused(void **state)
{
    const struct loaded *loaded = *state;
    tssa_model *model = loaded->model;
    const int64_t dims[] = {2, 3, 4}, negative[] = {2, -2};
    expect_refused(tssa_model_set_input_shape(model, "z", 2, dims), TSSA_INVALID_ARGUMENT, "\"z\"");
    expect_refused(tssa_model_set_input_shape(model, "a", 3, dims), TSSA_INVALID_ARGUMENT,
                   "2 dims, not 3");
    expect_refused(tssa_model_set_input_shape(model, "a", 2, negative), TSSA_INVALID_ARGUMENT,
                   "-2");
    expect_refused(tssa_model_set_input_shape(model, "n", 1, dims), TSSA_INVALID_ARGUMENT,
                   "0 dims, not 1");
    expect_refused(tssa_model_set_input_shape(NULL, "a", 2, dims), TSSA_INVALID_ARGUMENT, "NULL");
    assert_null(tssa_model_set_input_shape(model, "n", 0, NULL));
}

/* ---- Control flow ---------------------------------------------------------------------------- */

struct seen {
    size_t count;
    int deepest;
    tssa_control_info last;
    char op[128], trips[64], condition[64], carries[256];
};

static void note_control(void *user, const tssa_control_info *info)
{
    struct seen *seen = user;
    seen->count++;
    seen->deepest = info->depth > seen->deepest ? info->depth : seen->deepest;
    seen->last = *info;
    snprintf(seen->op, sizeof seen->op, "%s", info->op);
    snprintf(seen->trips, sizeof seen->trips, "%s", info->trips);
    snprintf(seen->condition, sizeof seen->condition, "%s", info->condition);
    snprintf(seen->carries, sizeof seen->carries, "%s", info->carries);
}

static void loops_are_described(void **state)
{
    const struct loaded *loaded = *state;
    struct seen seen = {.count = 0};
    assert_null(tssa_model_control_flow(loaded->model, note_control, &seen));
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.op, "Loop (node \"Loop\")");
    assert_string_equal(seen.trips, "%n");
    assert_false(seen.last.trips_are_constant);
    assert_string_equal(seen.condition, "true");
    assert_true(seen.last.condition_is_constant);
    assert_string_equal(seen.carries, "%carried f32[rows, columns]");
    assert_int_equal(seen.last.carried, 1);
    assert_int_equal(seen.last.collected, 0);
    assert_int_equal(seen.last.captured, 0);
    assert_int_equal(seen.last.op_count, 6);
    expect_refused(tssa_model_control_flow(NULL, note_control, &seen), TSSA_INVALID_ARGUMENT,
                   "NULL");
}

/* ---- Sequences as inputs --------------------------------------------------------------------- */

static tssa_value *make_sequence(tssa_context *context, int rank, const int64_t *dims)
{
    tssa_value *elements[2], *sequence;
    for (int i = 0; i < 2; i++)
        assert_null(tssa_tensor_create(context, TSSA_FLOAT, rank, dims, &elements[i]));
    assert_null(tssa_sequence_create(context, TSSA_FLOAT, 2, elements, &sequence));
    tssa_value_free(elements[0]);
    tssa_value_free(elements[1]);
    return sequence;
}

/* What the model says of the elements of a sequence is what passes rely on: a run demands it. */
static void elements_of_sequences_are_checked(void **state)
{
    (void)state;
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    const int64_t dims[] = {3, 4}, other[] = {3, 5};
    struct loaded loaded;
    tssa_session *session;
    tssa_value_info info;
    assert_null(tssa_context_create(&options, &loaded.context));
    assert_null(tssa_model_load_file(loaded.context, lists, NULL, &loaded.model));
    assert_null(tssa_model_input(loaded.model, 0, &info));
    assert_int_equal(info.kind, TSSA_KIND_SEQUENCE);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.dims[1], 4);
    assert_null(tssa_session_create(loaded.model, NULL, &session));
    for (int wrong = 0; wrong < 3; wrong++) {
        tssa_value *output = NULL;
        tssa_value *inputs[] = {make_sequence(loaded.context, 2, wrong == 1 ? other : dims),
                                make_sequence(loaded.context, 2, dims),
                                make_sequence(loaded.context, wrong == 2, dims)};
        tssa_status *status = tssa_session_run(session, 3, inputs, 1, &output);
        assert_int_equal(tssa_status_code(status), wrong ? TSSA_SHAPE_MISMATCH : TSSA_OK);
        tssa_status_free(status);
        tssa_value_free(output);
        for (int i = 0; i < 3; i++)
            tssa_value_free(inputs[i]);
    }
    tssa_session_free(session);
    close_start((void *[]){&loaded});
}

/* The chosen outputs in the chosen order, and no more operators than they need. */
static void outputs_are_chosen(void **state)
{
    (void)state;
    struct loaded loaded;
    tssa_value_info info;
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    assert_null(tssa_context_create(&options, &loaded.context));
    assert_null(tssa_model_load_file(loaded.context, yolact, NULL, &loaded.model));
    size_t count = tssa_model_output_count(loaded.model);
    assert_true(count >= 2);
    assert_null(tssa_model_output(loaded.model, 0, &info));
    const char *first = info.name;
    assert_null(tssa_model_output(loaded.model, 1, &info));
    const char *const both[] = {info.name, first}, *const twice[] = {first, first};
    const char *const unknown[] = {first, "nothing"}, *const absent[] = {NULL};
    expect_refused(tssa_model_keep_outputs(loaded.model, 2, twice), TSSA_INVALID_ARGUMENT,
                   "is named twice");
    expect_refused(tssa_model_keep_outputs(loaded.model, 2, unknown), TSSA_INVALID_ARGUMENT,
                   "no output is named \"nothing\"; the model has \"");
    expect_refused(tssa_model_keep_outputs(loaded.model, 1, absent), TSSA_INVALID_ARGUMENT,
                   "is NULL");
    expect_refused(tssa_model_keep_outputs(loaded.model, 0, both), TSSA_INVALID_ARGUMENT,
                   "no outputs are named");
    assert_int_equal(tssa_model_output_count(loaded.model), count);
    assert_null(tssa_model_keep_outputs(loaded.model, 2, both));
    assert_int_equal(tssa_model_output_count(loaded.model), 2);
    assert_null(tssa_model_output(loaded.model, 1, &info));
    assert_string_equal(info.name, first);
    assert_null(tssa_model_verify(loaded.model));
    close_start((void *[]){&loaded});
}

/* ---- Lack of memory -------------------------------------------------------------------------- */

static void ignore_control(void *user, const tssa_control_info *info)
{
    *(int *)user += info->depth;
}

static tssa_status *use_model(tssa_context *context)
{
    tssa_model *model;
    size_t cut;
    int depths = 0;
    tssa_status *status = tssa_model_load_file(context, yolact, NULL, &model);
    if (status)
        return status;
    tssa_value_info last;
    status = tssa_model_control_flow(model, ignore_control, &depths);
    if (!status)
        status = tssa_model_output(model, tssa_model_output_count(model) - 1, &last);
    if (!status)
        status = tssa_model_keep_outputs(model, 1, &last.name);
    if (!status)
        status = tssa_model_cut_unsupported(model, &cut);
    if (!status)
        status = tssa_model_verify(model);
    tssa_model_free(model);
    return status;
}

static tssa_status *use_all(const tssa_allocator *allocator)
{
    const tssa_context_options options = {
        .struct_size = sizeof options, .allocator = allocator, .threads = 1};
    tssa_context *context;
    tssa_status *status = tssa_context_create(&options, &context);
    if (status)
        return status;
    status = use_model(context);
    tssa_context_free(context);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(use_all) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_listed),
        cmocka_unit_test(stages_consist_of_passes),
        cmocka_unit_test_setup_teardown(runs_of_passes_are_told, open_start, close_start),
        cmocka_unit_test_setup_teardown(shapes_are_fixed_everywhere, open_start, close_start),
        cmocka_unit_test_setup_teardown(wrong_shapes_are_refused, open_start, close_start),
        cmocka_unit_test_setup_teardown(loops_are_described, open_start, close_start),
        cmocka_unit_test(elements_of_sequences_are_checked),
        cmocka_unit_test(outputs_are_chosen),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
