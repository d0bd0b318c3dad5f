/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "api/options.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* Without options, quick passes. */
#define DEFAULT_LEVEL 1

tssa_status *tssa_model_optimize(tssa_model *model, const tssa_optimize_options *given)
{
    tssa_optimize_options options;
    if (!model)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_optimize: model is NULL");
    TRY(OPTIONS_READ(tssa_optimize_options, given, &options));
    struct evaluator evaluator;
    evaluator_init(&evaluator, model->graph->allocator);
    const struct pipeline pipeline = {
        .options = given ? &options : NULL, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    int level = given ? options.level : DEFAULT_LEVEL;
    tssa_status *status = pipeline_run(model->graph, level, &pipeline);
    evaluator_free(&evaluator);
    if (!status)
        context_log(model->context, TSSA_LOG_INFO, "optimized at level %d", level);
    return status;
}
