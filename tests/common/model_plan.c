/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model_plan.h"

#include <stdlib.h>

#include "api/handles.h"
#include "common/no_error.h"
#include "common/xmalloc.h"

void model_plan_open(struct model_plan *p, const char *path, int level, tssa_target target)
{
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = level, .target = target};
    *p = (struct model_plan){0};
    no_error(model_run_open(&p->model, path, 0));
    no_error(tssa_model_optimize(p->model.model, &options));
    no_error(model_run_read_inputs(&p->model, path));
    no_error(plan_create(p->model.model->graph, &p->model.context->device, &p->plan));
    no_error(run_create(p->plan, &allocator_default, NULL, false, &p->run));
    p->inputs = xcalloc(p->model.input_count + 1, sizeof *p->inputs);
    p->outputs = xcalloc(p->model.output_count + 1, sizeof *p->outputs);
    for (size_t i = 0; i < p->model.input_count; i++)
        p->inputs[i] = p->model.inputs[i] ? &p->model.inputs[i]->value : NULL;
}

void model_plan_execute(struct model_plan *p)
{
    no_error(run_execute(p->run, p->inputs, p->outputs));
}

void model_plan_release_outputs(struct model_plan *p)
{
    for (size_t i = 0; i < p->model.output_count; i++)
        value_release(&p->outputs[i]);
}

void model_plan_release_others(struct model_plan *p)
{
    for (size_t i = 0; i < p->model.output_count; i++) {
        const struct value *output = &p->outputs[i];
        if (output->kind != TSSA_KIND_TENSOR || output->tensor.dtype == TSSA_STRING)
            value_release(&p->outputs[i]);
    }
}

void model_plan_close(struct model_plan *p)
{
    model_plan_release_outputs(p);
    free(p->inputs);
    free(p->outputs);
    run_free(p->run);
    plan_free(p->plan);
    model_run_close(&p->model);
}
