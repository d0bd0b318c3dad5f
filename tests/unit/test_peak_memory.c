/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run holds at one time (tssa_session_memory) is at most a tenth more than its values need at one time: than the
 * greatest sum of live bytes of a run in which nothing is placed (common/live_bytes.h), for every committed model.
 */
/* ctest-timeout: 300 */
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
#include "common/live_bytes.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/xmalloc.h"
#include "runtime/executor.h"

#define RUNS 6 /* sizes are learnt, and the layout takes its time */
/* Of what comes from the pool: its smallest class is 256 bytes, and sequences are arrays of handles. */
#define POOLED ((size_t)6 * 1024)
/* The branch of an If that is not taken has places too, and where that taken needs no memory, they are all there is. */
#define NOT_TAKEN ((size_t)64)

struct figures {
    size_t held, live;
    bool pooled; /* the last run took from the pool */
};

/* From the second run on, outputs that are tensors are written where those of the first are. */
static void release_others(struct value *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (outputs[i].kind != TSSA_KIND_TENSOR || outputs[i].tensor.dtype == TSSA_STRING)
            value_release(&outputs[i]);
}

static struct figures measure(const struct model_run *model)
{
    const struct ir_graph *graph = model->model->graph;
    struct device_context *device = &model->context->device;
    const struct value **inputs = xcalloc(model->input_count + 1, sizeof *inputs);
    struct value *outputs = xcalloc(model->output_count + 1, sizeof *outputs);
    struct figures figures;
    struct plan *plan;
    struct run *run;
    for (size_t i = 0; i < model->input_count; i++)
        inputs[i] = model->inputs[i] ? &model->inputs[i]->value : NULL;
    no_error(plan_create(graph, device, &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    for (int i = 0; i < RUNS; i++) {
        release_others(outputs, model->output_count);
        run->pool.takes = 0;
        no_error(run_execute(run, inputs, outputs));
    }
    figures.held = run->memory.held; /* as tssa_session_memory tells */
    figures.pooled = run->pool.takes > 0;
    run_free(run);
    plan_free(plan);
    release_others(outputs, model->output_count);
    figures.live = live_bytes(graph, device, inputs, outputs);
    for (size_t i = 0; i < model->output_count; i++)
        value_release(&outputs[i]);
    free(inputs);
    free(outputs);
    return figures;
}

static struct figures measure_model(const char *path, int level, tssa_target target)
{
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = level, .target = target};
    struct model_run model = {0};
    no_error(model_run_open(&model, path, 0));
    no_error(tssa_model_optimize(model.model, &options));
    no_error(model_run_read_inputs(&model, path));
    const struct figures figures = measure(&model);
    model_run_close(&model);
    return figures;
}

static void one_model(void **state)
{
    for (int target = TSSA_TARGET_ONNX; target <= TSSA_TARGET_SESSION; target++) {
        const struct figures f = measure_model(*state, 2, (tssa_target)target);
        const size_t most = f.live + f.live / 10 + NOT_TAKEN + (f.pooled ? POOLED : 0);
        if (f.held > most)
            fail_msg("%zu bytes are held where %zu are live at one time", f.held, f.live);
    }
}

/* A row of a table. */
static void print_model(const char *path)
{
    static const struct {
        int level;
        tssa_target target;
    } ways[] = {{0, TSSA_TARGET_ONNX}, {2, TSSA_TARGET_ONNX}, {2, TSSA_TARGET_SESSION}};
    const char *end = strrchr(path, '/'), *name = end;
    while (name > path && name[-1] != '/')
        name--;
    printf("| %.*s", (int)(end - name), name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct figures f = measure_model(path, ways[i].level, ways[i].target);
        printf(" | %zu | %zu | %.3f", f.held, f.live, f.live ? (double)f.held / (double)f.live : 1);
    }
    printf(" |\n");
}

/* With models as arguments, rows of a table: name; bytes held, bytes live and their ratio, as loaded, at level 2, and at
 * level 2 for sessions. */
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        print_model(argv[i]);
    return argc > 1 ? 0 : committed_models_test(one_model);
}
