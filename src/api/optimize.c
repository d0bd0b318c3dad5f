/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "base/status.h"
#include "passes/pipeline.h"

tssa_status *tssa_model_optimize(tssa_model *model, const tssa_optimize_options *options)
{
    if (!model)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_optimize: model is NULL");
    const struct pipeline pipeline = {.options = options};
    return pipeline_run(model->graph, options ? options->level : 1, &pipeline);
}
