/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph that a session's plan is made from. Where the session's device makes kernels of fused ops, it is a copy of
 * the model's as it was before its rules were lowered (they say what a kernel reads): ops are fused as the device says,
 * and what it has no kernel for is lowered as in the model. Else it is the model's own graph.
 */
#include "api/handles.h"
#include "ir/clone.h"
#include "ir/fuse.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* What the device makes kernels of; NULL: it makes none, or has to compile them and is not asked to. */
static const struct ir_fusion *fusion_of(struct device_context *device, bool compile)
{
    if (!device->device->fusion || (device->device->compile && !compile))
        return NULL;
    return device->device->fusion(device);
}

/* Puts the ops of fuse ops back that the device has no kernel for. */
static tssa_status *refuse(struct ir_block *block, const struct device *device,
                           const struct pass_context *pass)
{
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        if (!ir_fuse_body(op)) {
            for (uint32_t i = 0; i < op->n_blocks; i++)
                TRY(refuse(op->blocks[i], device, pass));
        } else if (!device->find_kernel(op)) {
            TRY(pass_remark(pass, TSSA_REMARK_MISSED, op,
                            "no kernel was made of it: its operators run one by one"));
            ir_fuse_inline(op);
        }
    }
    return NULL;
}

/* The passes behind `fuse` said what they do when the model was optimized. */
static tssa_status *finish(struct ir_graph *graph, const struct pipeline *pipeline)
{
    const tssa_optimize_options options = {.target = TSSA_TARGET_SESSION};
    struct pipeline quiet = *pipeline;
    quiet.options = &options;
    return pipeline_finish(graph, &quiet);
}

static tssa_status *fuse(struct ir_graph *graph, const struct ir_fusion *fusion,
                         struct device_context *device, const tssa_optimize_options *options,
                         struct compile_report *report)
{
    static const char *const names[] = {"fuse"};
    const struct pass_context pass = {
        .graph = graph, .pass = pass_find(names[0]), .options = options};
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {.options = options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .fusion = fusion};
    tssa_status *status =
        pipeline_run_passes(graph, names, sizeof names / sizeof *names, &pipeline);
    if (!status && device->device->compile)
        status = compile_fused(graph, device, report);
    if (!status)
        status = refuse(graph->body, device->device, &pass);
    if (!status)
        status = finish(graph, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

tssa_status *session_graph_make(const struct tssa_model *model, struct device_context *device,
                                const tssa_session_options *options, struct compile_report *report,
                                struct ir_graph **own, const struct ir_graph **graph)
{
    const tssa_optimize_options fuse_options = {.target = TSSA_TARGET_SESSION,
                                                .remark = options->remark,
                                                .remark_user = options->remark_user};
    const struct ir_fusion *fusion = fusion_of(device, options->compile != TSSA_COMPILE_OFF);
    *report = (struct compile_report){0};
    *own = NULL;
    *graph = model->graph;
    if (!fusion || !model->raised)
        return NULL;
    TRY(ir_clone_graph(model->raised, own));
    *graph = *own;
    return fuse(*own, fusion, device, &fuse_options, report);
}
