/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "base/status.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

tssa_status *tssa_model_optimize(tssa_model *model, const tssa_optimize_options *options)
{
    if (!model)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_optimize: model is NULL");
    struct evaluator evaluator;
    evaluator_init(&evaluator, model->graph->allocator);
    const struct pipeline pipeline = {
        .options = options, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status = pipeline_run(model->graph, options ? options->level : 1, &pipeline);
    evaluator_free(&evaluator);
    return status;
}
