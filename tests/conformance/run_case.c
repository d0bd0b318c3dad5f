/* SPDX-License-Identifier: Apache-2.0 */
#include "run_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "common/model_run.h"
#include "common/xmalloc.h"
#include "tools/common/compare.h"
#include "tools/common/value_file.h"

static tssa_status *list_operators(const tssa_model *model, struct text *operators)
{
    size_t count;
    TRY(tssa_model_op_counts(model, NULL, 0, &count));
    tssa_op_count *rows = xcalloc(count, sizeof *rows);
    tssa_status *status = tssa_model_op_counts(model, rows, count, &count);
    for (size_t i = 0; i < count && !status; i++)
        text_printf(operators, "%c%s%s%s\n", rows[i].supported ? '+' : '-', rows[i].domain,
                    rows[i].domain[0] ? ":" : "", rows[i].name);
    free(rows);
    return status;
}

/* Feeds input_K.pb to the K-th input for as many files as there are: the initializers that old
 * models list as inputs come last and have none. */
static tssa_status *feed(struct model_run *run, const char *folder)
{
    for (size_t i = 0; i < run->input_count; i++) {
        struct onnx_value_type type = model_run_input_type(run, i);
        struct value value;
        bool found;
        TRY(data_set_read(&run->context->allocator, folder, "input", i, &type, &found, &value));
        if (!found)
            break;
        TRY(model_run_set_input(run, i, &value));
    }
    return NULL;
}

static tssa_status *check_output(struct model_run *run, size_t index, const struct value *expected,
                                 const struct compare_rule *rule)
{
    struct compare_report report;
    tssa_value_info info;
    if (compare_values(model_run_output(run, index), expected, rule, &report))
        return NULL;
    TRY(tssa_model_output(run->model, index, &info));
    return ERROR(TSSA_RUNTIME, "output %zu (%s): %s", index, info.name, report.why);
}

static tssa_status *check_data_set(struct model_run *run, const struct test_case *test,
                                   const char *folder)
{
    const struct compare_rule rule = {.rtol = test->rtol, .atol = test->atol};
    tssa_status *status = NULL;
    TRY(feed(run, folder));
    TRY(model_run_execute(run));
    for (size_t i = 0; i < run->output_count && !status; i++) {
        struct onnx_value_type type = model_run_output_type(run, i);
        struct value expected;
        bool found;
        TRY(data_set_read(&run->context->allocator, folder, "output", i, &type, &found, &expected));
        if (!found)
            return ERROR(TSSA_RUNTIME, "there is no expected output %zu", i);
        status = check_output(run, i, &expected, &rule);
        value_release(&expected);
    }
    return status;
}

static tssa_status *check_data_sets(struct model_run *run, const struct test_case *test)
{
    tssa_status *status = NULL;
    size_t sets = 0;
    for (bool more = true; more && !status; sets += more) {
        char *folder = xprintf("%s/test_data_set_%zu", test->folder, sets);
        more = access(folder, F_OK) == 0;
        if (more)
            status = check_data_set(run, test, folder);
        model_run_clear(run);
        free(folder);
    }
    if (!status && !sets)
        return ERROR(TSSA_RUNTIME, "there is no data set");
    return status;
}

/* A real model's only input: i / n, divided in double. Unknown dims are 1. */
static tssa_status *feed_range(struct model_run *run)
{
    tssa_value_info info;
    struct value value = {.kind = TSSA_KIND_TENSOR};
    TRY(tssa_model_input(run->model, 0, &info));
    if (info.kind != TSSA_KIND_TENSOR || info.dtype != TSSA_FLOAT || info.rank < 0)
        return ERROR(TSSA_RUNTIME, "the input is no float tensor of known rank");
    for (int i = 0; i < info.rank; i++) {
        if (info.dims[i] < 0)
            info.dims[i] = 1;
    }
    TRY(tensor_create(&run->context->allocator, TSSA_FLOAT, info.rank, info.dims, &value.tensor));
    size_t count = tensor_count(&value.tensor);
    float *elements = value.tensor.data;
    for (size_t i = 0; i < count; i++)
        elements[i] = (float)((double)i / (double)count);
    return model_run_set_input(run, 0, &value);
}

/* The expected output of light/NAME.onnx is light/NAME_output_0.pb. */
static tssa_status *check_real(struct model_run *run, const struct test_case *test)
{
    const struct compare_rule rule = {.rtol = test->rtol, .atol = test->atol};
    struct value expected;
    TRY(feed_range(run));
    TRY(model_run_execute(run));
    char *path =
        xprintf("%.*s_output_0.pb", (int)(strlen(test->model) - strlen(".onnx")), test->model);
    struct onnx_value_type type = model_run_output_type(run, 0);
    tssa_status *status = value_file_read(&run->context->allocator, path, &type, &expected);
    if (!status) {
        status = check_output(run, 0, &expected, &rule);
        value_release(&expected);
    }
    free(path);
    return status;
}

static enum outcome conclude(tssa_status *status, bool may_skip, struct text *report)
{
    enum outcome outcome = OUTCOME_PASS;
    if (status)
        outcome =
            may_skip && tssa_status_code(status) == TSSA_UNSUPPORTED ? OUTCOME_SKIP : OUTCOME_FAIL;
    if (status)
        text_printf(report, "%s\n", tssa_status_message(status));
    else
        text_puts(report, "\n");
    tssa_status_free(status);
    return outcome;
}

/* *refused is set when there is no session. */
static tssa_status *run_in_way(const struct test_case *test, enum model_way way,
                               struct text *operators, bool *refused)
{
    struct model_run run = {0};
    tssa_status *status = model_run_open(&run, test->model, 0);
    if (!status && way == MODEL_AS_LOADED)
        status = list_operators(run.model, operators);
    if (!status)
        status = model_run_prepare(&run, way);
    if (!status) {
        status = tssa_session_create(run.model, NULL, &run.session);
        *refused = status != NULL;
    }
    if (!status)
        status = test->folder ? check_data_sets(&run, test) : check_real(&run, test);
    model_run_close(&run);
    return way && !*refused ? status_prefix(status, "%s", model_way_names[way]) : status;
}

/* All passes, with what is fused kept for the session. */
static tssa_status *make_session(struct model_run *run, const char *device)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options session = {.struct_size = sizeof session, .device = device};
    TRY(tssa_model_optimize(run->model, &optimize));
    return tssa_session_create(run->model, &session, &run->session);
}

static tssa_status *run_on(const struct test_case *test, const char *device, struct text *operators,
                           bool *refused)
{
    struct model_run run = {0};
    tssa_status *status = model_run_open(&run, test->model, 0);
    if (!status)
        status = list_operators(run.model, operators);
    if (!status) {
        status = make_session(&run, device);
        *refused = status != NULL;
    }
    if (!status)
        status = test->folder ? check_data_sets(&run, test) : check_real(&run, test);
    model_run_close(&run);
    return status;
}

enum outcome run_case(const struct test_case *test, const char *device, struct text *report)
{
    struct text operators;
    text_init(&operators, &allocator_default);
    bool refused = false;
    tssa_status *status = device ? run_on(test, device, &operators, &refused) : NULL;
    for (int way = 0; way < MODEL_WAY_COUNT && !status && !device; way++)
        status = run_in_way(test, (enum model_way)way, &operators, &refused);
    enum outcome outcome = conclude(status, refused, report);
    text_append(report, operators.data, operators.size);
    text_free(&operators);
    return outcome;
}
