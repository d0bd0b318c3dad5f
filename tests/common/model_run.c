/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handles.h"
#include "common/xmalloc.h"
#include "tools/common/value_file.h"

tssa_status *model_run_open(struct model_run *run, const char *path, size_t memory_limit)
{
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .memory_limit = memory_limit};
    TRY(tssa_context_create(&options, &run->context));
    return model_run_load(run, path);
}

tssa_status *model_run_load(struct model_run *run, const char *path)
{
    TRY(tssa_model_load_file(run->context, path, NULL, &run->model));
    run->input_count = tssa_model_input_count(run->model);
    run->output_count = tssa_model_output_count(run->model);
    run->inputs = xcalloc(run->input_count, sizeof(tssa_value *));
    run->outputs = xcalloc(run->output_count, sizeof(tssa_value *));
    return NULL;
}

const char *const model_way_names[MODEL_WAY_COUNT] = {"as loaded", "optimized", "rewritten"};

static void append(void *user, const void *data, size_t size)
{
    text_append(user, data, size);
}

/* Writes the model and loads what was written. */
static tssa_status *write_and_load(struct model_run *run)
{
    text_init(&run->bytes, &allocator_default);
    TRY(tssa_model_save_memory(run->model, NULL, append, &run->bytes));
    tssa_model_free(run->model);
    run->model = NULL;
    if (run->bytes.failed)
        return status_out_of_memory();
    return tssa_model_load_memory(run->context, run->bytes.data, run->bytes.size, NULL,
                                  &run->model);
}

tssa_status *model_run_prepare(struct model_run *run, enum model_way way)
{
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = (int)way, .verify_after_passes = 1};
    TRY(status_prefix(tssa_model_optimize(run->model, &options), "optimizing"));
    return way == MODEL_REWRITTEN ? status_prefix(write_and_load(run), "writing") : NULL;
}

void model_run_clear(struct model_run *run)
{
    for (size_t i = 0; i < run->input_count; i++) {
        tssa_value_free(run->inputs[i]);
        run->inputs[i] = NULL;
    }
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_free(run->outputs[i]);
        run->outputs[i] = NULL;
    }
}

void model_run_close(struct model_run *run)
{
    model_run_clear(run);
    free(run->inputs);
    free(run->outputs);
    tssa_session_free(run->session);
    tssa_model_free(run->model);
    tssa_context_free(run->context);
    if (run->bytes.allocator)
        text_free(&run->bytes);
    *run = (struct model_run){0};
}

static struct onnx_value_type type_of(tssa_status *status, const tssa_value_info *info)
{
    if (status) { /* reads as a tensor */
        tssa_status_free(status);
        return (struct onnx_value_type){.kind = TSSA_KIND_NONE};
    }
    return value_file_type(info);
}

struct onnx_value_type model_run_input_type(const struct model_run *run, size_t index)
{
    tssa_value_info info;
    tssa_status *status = tssa_model_input(run->model, index, &info);
    return type_of(status, &info);
}

struct onnx_value_type model_run_output_type(const struct model_run *run, size_t index)
{
    tssa_value_info info;
    tssa_status *status = tssa_model_output(run->model, index, &info);
    return type_of(status, &info);
}

tssa_status *model_run_set_input(struct model_run *run, size_t index, struct value *value)
{
    tssa_value_free(run->inputs[index]);
    run->inputs[index] = NULL;
    return value_handle(&run->context->allocator, value, &run->inputs[index]);
}

tssa_status *model_run_read_inputs(struct model_run *run, const char *path)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s/test_data_set_0", (int)(strrchr(path, '/') - path), path);
    for (size_t i = 0; i < run->input_count; i++) {
        struct onnx_value_type type = model_run_input_type(run, i);
        struct value value;
        bool found = false;
        TRY(data_set_read(&run->context->allocator, folder, "input", i, &type, &found, &value));
        if (found)
            TRY(model_run_set_input(run, i, &value));
    }
    return NULL;
}

tssa_status *model_run_execute(struct model_run *run)
{
    if (!run->session)
        TRY(tssa_session_create(run->model, NULL, &run->session));
    return tssa_session_run(run->session, run->input_count, run->inputs, run->output_count,
                            run->outputs);
}

const struct value *model_run_output(const struct model_run *run, size_t index)
{
    return &run->outputs[index]->value;
}
