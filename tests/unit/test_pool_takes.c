/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where everything has a place, a run takes nothing from the pool: neither for results, nor on the way of a
 * kernel, nor for what loops stack and carry. That holds for every committed model at level 2 whose runs are alike
 * and whose outputs the caller gives; what is left is named here, with the reason.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/xmalloc.h"
#include "runtime/executor.h"

#define RUNS 8 /* sizes are learnt, outputs are given, and the layout has taken its time */

static const struct {
    const char *model;
    uint64_t takes; /* in a run */
    const char *reason;
} exceptions[] = {
    {"multiscale_bbox", 9, "a sequence of three tensors is returned: it holds memory of its own"},
    {"multiscale_bbox_levels", 9, "the same"},
    {"multiscale_bbox_map", 9, "the same"},
    {"yolov3_by_class_small", 2,
     "two tensors are changed in place by a loop, for whoever owns them"},
};

static uint64_t expected_takes(const char *path)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        const size_t length = strlen(exceptions[i].model);
        const char *name = strstr(path, exceptions[i].model);
        if (name && name[-1] == '/' && name[length] == '/')
            return exceptions[i].takes;
    }
    return 0;
}

/* Sequences cannot be given. */
static void drop_sequences(struct value *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (outputs[i].kind != TSSA_KIND_TENSOR)
            value_release(&outputs[i]);
}

static void one_model(void **state)
{
    const char *path = *state;
    const tssa_optimize_options options = {.struct_size = sizeof options, .level = 2};
    struct model_run model = {0};
    struct plan *plan;
    struct run *run;
    uint64_t takes = 0;
    no_error(model_run_open(&model, path, 0));
    no_error(tssa_model_optimize(model.model, &options));
    no_error(model_run_read_inputs(&model, path));
    no_error(plan_create(model.model->graph, &model.context->device, &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    const struct value **inputs = xcalloc(model.input_count, sizeof *inputs);
    struct value *outputs = xcalloc(model.output_count, sizeof *outputs);
    for (size_t i = 0; i < model.input_count; i++)
        inputs[i] = model.inputs[i] ? &model.inputs[i]->value : NULL;
    for (int r = 0; r < RUNS; r++) {
        const uint64_t before = run->pool.takes;
        drop_sequences(outputs, model.output_count);
        no_error(run_execute(run, inputs, outputs));
        takes = run->pool.takes - before;
    }
    assert_int_equal(takes, expected_takes(path));
    for (size_t i = 0; i < model.output_count; i++)
        value_release(&outputs[i]);
    free(inputs);
    free(outputs);
    run_free(run);
    plan_free(plan);
    model_run_close(&model);
}

int main(void)
{
    return committed_models_test(one_model);
}
