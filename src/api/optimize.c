/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "api/options.h"
#include "base/float_mode.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* Without options, quick passes. */
#define DEFAULT_LEVEL 1

/* Does any device make kernels of fused ops? */
static bool somebody_fuses(void)
{
    for (size_t i = 0; device_at(i); i++)
        if (device_at(i)->fusion)
            return true;
    return false;
}

/*
 * What the model is before rules are lowered is kept for sessions alone, and where all passes run:
 * a session runs the last ones itself. What was kept before stays: the rules are gone from what is
 * optimized again.
 */
static bool keeps_raised(const tssa_optimize_options *options)
{
    return options->target == TSSA_TARGET_SESSION && !options->passes && !options->n_skipped &&
           somebody_fuses();
}

tssa_status *tssa_model_optimize(tssa_model *model, const tssa_optimize_options *given)
{
    FLOAT_MODE_ENTER();
    tssa_optimize_options options;
    if (!model)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_optimize: model is NULL");
    TRY(OPTIONS_READ(tssa_optimize_options, given, &options));
    TRY(model_change(model, keeps_raised(&options)));
    struct evaluator evaluator;
    evaluator_init(&evaluator, model->graph->allocator);
    const struct pipeline pipeline = {.options = given ? &options : NULL,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .raised = keeps_raised(&options) ? &model->raised : NULL};
    int level = given ? options.level : DEFAULT_LEVEL;
    tssa_status *status = pipeline_run(model->graph, level, &pipeline);
    evaluator_free(&evaluator);
    if (!status)
        context_log(model->context, TSSA_LOG_INFO, "optimized at level %d", level);
    return status;
}
