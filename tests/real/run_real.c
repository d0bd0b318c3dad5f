/* SPDX-License-Identifier: Apache-2.0 */
#include "run_real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/handles.h"
#include "base/dtype.h"
#include "common/model_run.h"
#include "tools/common/compare.h"
#include "tools/common/random.h"
#include "tools/common/value_file.h"

static const struct compare_rule rule = {.rtol = 1e-3, .atol = 1e-5, .exact_integers = true};

/* ---- Quantized models ------------------------------------------------------------------------ */

/*
 * The distance of neighbours among the distinct values, which for a dequantized tensor is its step.
 */
static double grid_step(const struct tensor *tensor)
{
    const float *values = tensor->data;
    size_t count = tensor_count(tensor);
    double step = INFINITY;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            double gap = fabs((double)values[i] - (double)values[k]);
            if (gap > 0 && gap < step)
                step = gap;
        }
    }
    return isinf(step) ? 0 : step;
}

static size_t argmax(const float *row, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = row[i] > row[best] ? i : best;
    return best;
}

/*
 * A rounding of a quantized value that falls the other way moves an output by a step, and what
 * follows from it in a recurrence by more; then the largest element of every row must be the same.
 */
static bool quantized_match(const struct value *actual, const struct value *expected, char *how,
                            size_t size)
{
    const struct tensor *a = &actual->tensor, *e = &expected->tensor;
    if (actual->kind != TSSA_KIND_TENSOR || expected->kind != TSSA_KIND_TENSOR ||
        a->dtype != TSSA_FLOAT || e->dtype != TSSA_FLOAT || !tensor_same_shape(a, e) || !e->rank)
        return false;
    const struct compare_rule step = {.rtol = 1e-5, .atol = 1.001 * grid_step(e)};
    struct compare_report report;
    if (compare_values(actual, expected, &step, &report)) {
        snprintf(how, size, "within one step of %.6g", step.atol / 1.001);
        return true;
    }
    size_t columns = (size_t)e->dims[e->rank - 1], rows = columns ? tensor_count(e) / columns : 0;
    for (size_t i = 0; i < rows; i++) {
        const float *p = (const float *)a->data + i * columns,
                    *q = (const float *)e->data + i * columns;
        if (argmax(p, columns) != argmax(q, columns))
            return false;
    }
    snprintf(how, size, "same largest elements, off by up to %.3g", report.max_abs);
    return true;
}

/* ---- Data sets ------------------------------------------------------------------------------- */

/* The model's input of a name, or input_count. */
static tssa_status *find_input(const struct model_run *run, const char *name, size_t *index)
{
    for (*index = 0; *index < run->input_count; ++*index) {
        tssa_value_info info;
        TRY(tssa_model_input(run->model, *index, &info));
        if (strcmp(info.name, name) == 0)
            return NULL;
    }
    return ERROR(TSSA_RUNTIME, "the model has no input \"%s\"", name);
}

static tssa_status *feed(struct model_run *run, const struct real_case *test)
{
    for (size_t i = 0; test->inputs[i]; i++) {
        struct value value;
        size_t index;
        bool found;
        TRY(find_input(run, test->inputs[i], &index));
        struct onnx_value_type type = model_run_input_type(run, index);
        TRY(data_set_read(&run->context->allocator, test->folder, "in", i, &type, &found, &value));
        if (!found)
            return ERROR(TSSA_RUNTIME, "there is no in_%zu.npy", i);
        TRY(model_run_set_input(run, index, &value));
    }
    return NULL;
}

static tssa_status *check_output(struct model_run *run, const struct real_case *test, size_t index,
                                 struct real_report *report)
{
    struct onnx_value_type type = model_run_output_type(run, index);
    struct compare_report compared;
    struct value expected;
    bool found;
    TRY(data_set_read(&run->context->allocator, test->folder, "out", index, &type, &found,
                      &expected));
    if (!found)
        return ERROR(TSSA_RUNTIME, "there is no out_%zu.npy", index);
    const struct value *actual = model_run_output(run, index);
    bool equal = compare_values(actual, &expected, &rule, &compared);
    report->max_abs = fmax(report->max_abs, compared.max_abs);
    report->max_rel = fmax(report->max_rel, compared.max_rel);
    if (!equal && test->quantized)
        equal = quantized_match(actual, &expected, report->text, sizeof report->text);
    value_release(&expected);
    return equal ? NULL : ERROR(TSSA_RUNTIME, "output %zu: %s", index, compared.why);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Up to 20 runs within a fifth of a second, the first one not counted. */
static tssa_status *measure(struct model_run *run, struct real_report *report)
{
    double start = now_ms();
    report->milliseconds = INFINITY;
    for (int i = 0; i < 20 && (i == 0 || now_ms() - start < 200); i++) {
        for (size_t k = 0; k < run->output_count; k++) {
            tssa_value_free(run->outputs[k]);
            run->outputs[k] = NULL;
        }
        double begin = now_ms();
        TRY(model_run_execute(run));
        report->milliseconds = fmin(report->milliseconds, now_ms() - begin);
    }
    return NULL;
}

static tssa_status *check_set(struct model_run *run, const struct real_case *test,
                              struct real_report *report)
{
    TRY(feed(run, test));
    TRY(model_run_execute(run));
    for (size_t i = 0; i < run->output_count; i++)
        TRY(check_output(run, test, i, report));
    return NULL;
}

/* ---- Models without data --------------------------------------------------------------------- */

/* Every unknown dim is 4, and so is every integer scalar, a trip count; other integers, indices
 * perhaps, are 0. */
static tssa_status *feed_some(struct model_run *run)
{
    for (size_t i = 0; i < run->input_count; i++) {
        struct value value = {.kind = TSSA_KIND_TENSOR};
        tssa_value_info info;
        struct random random;
        TRY(tssa_model_input(run->model, i, &info));
        if (info.kind != TSSA_KIND_TENSOR || info.rank < 0)
            return ERROR(TSSA_RUNTIME, "input %s is no tensor of known rank", info.name);
        for (int k = 0; k < info.rank; k++)
            info.dims[k] = info.dims[k] < 0 ? 4 : info.dims[k];
        TRY(tensor_create(&run->context->allocator, info.dtype, info.rank, info.dims,
                          &value.tensor));
        random_seed(&random, 1, i);
        random_fill(&random, &value.tensor);
        if (dtype_is_integer(info.dtype))
            memset(value.tensor.data, 0, tensor_bytes(&value.tensor));
        if (dtype_is_integer(info.dtype) && info.rank == 0)
            dtype_store_int64(info.dtype, value.tensor.data, 4);
        TRY(model_run_set_input(run, i, &value));
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------- */

/* Checks, and times what was optimized. *refused is set when there is no session for want of an
 * operator. */
static tssa_status *run_in_way(const struct real_case *test, enum model_way way,
                               struct real_report *report, bool *refused)
{
    struct model_run run = {0};
    tssa_status *status = model_run_open(&run, test->path, 0);
    if (!status)
        status = model_run_prepare(&run, way);
    if (!status) {
        status = tssa_session_create(run.model, NULL, &run.session);
        *refused = status && tssa_status_code(status) == TSSA_UNSUPPORTED;
    }
    if (!status)
        status = test->set ? check_set(&run, test, report) : feed_some(&run);
    if (!status && (way || !test->set))
        status = measure(&run, report);
    model_run_close(&run);
    return way && !*refused ? status_prefix(status, "%s", model_way_names[way]) : status;
}

enum outcome run_real(const struct real_case *test, struct text *report)
{
    struct real_report result = {0};
    bool refused = false;
    tssa_status *status = NULL;
    for (int way = 0; way < MODEL_WAY_COUNT && !status; way++)
        status = run_in_way(test, (enum model_way)way, &result, &refused);
    enum outcome outcome = !status ? OUTCOME_PASS : refused ? OUTCOME_SKIP : OUTCOME_FAIL;
    if (status)
        snprintf(result.text, sizeof result.text, "%s", tssa_status_message(status));
    tssa_status_free(status);
    text_append(report, &result, sizeof result);
    return outcome;
}
