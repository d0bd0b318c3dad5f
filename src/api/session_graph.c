/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph that a session's plan is made from. Where the session's device makes kernels of fused
 * ops, its library computes convolutions in layouts of its own, or the session rounds otherwise, it
 * is a copy of the model's as it was before its rules were lowered (they say what a kernel reads):
 * floats are relaxed, images are laid out, what is made of bytes is looked up, ops are fused as the
 * device says, what it has no kernel for is lowered as in the model, and recurrent layers in a row
 * are one op. Else it is the model's own graph.
 */
#include "api/handles.h"
#include "gir/fuse.h"
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/layers.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* What the device makes kernels of; NULL: it makes none, or has to compile them and is not asked
 * to. */
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

/* What passes are told of a session. */
static tssa_optimize_options told(const tssa_session_options *options)
{
    return (tssa_optimize_options){.target = TSSA_TARGET_SESSION,
                                   .remark = options->remark,
                                   .remark_user = options->remark_user};
}

/* ---- Precision ------------------------------------------------------------------------------- */

static tssa_status *find_narrow(void *context, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *type = op->results[i].type;
        *(bool *)context |= type->dtype == TSSA_FLOAT16 || type->dtype == TSSA_BFLOAT16;
    }
    return NULL;
}

/* Is there anything that would be rounded otherwise? */
static bool relaxes(const struct ir_graph *graph, const tssa_session_options *options)
{
    bool any = false;
    if (options->precision == TSSA_PRECISION_RELAXED)
        tssa_status_free(ir_block_walk(graph->body, find_narrow, &any));
    return any;
}

static tssa_status *relax(struct ir_graph *graph)
{
    static const char *const names[] = {"relax_floats", "common_subexpressions", "dead_code"};
    const tssa_optimize_options quiet = {.target = TSSA_TARGET_SESSION};
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {
        .options = &quiet, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status =
        pipeline_run_passes(graph, names, sizeof names / sizeof *names, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static tssa_status *find_conv(void *context, struct ir_op *op)
{
    const tssa_dtype dtype = op->n_results ? op->results[0].type->dtype : TSSA_UNDEFINED;
    *(bool *)context |= ir_op_is(op, IR_OP_Conv) &&
                        (dtype == TSSA_FLOAT || dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16);
    return NULL;
}

static bool lays_out(const struct ir_graph *graph, const struct device *device)
{
    bool any = false;
    if (!device->library || !device->library->convolves)
        return false;
    tssa_status_free(ir_block_walk(graph->body, find_conv, &any));
    return any;
}

/* Factors and pads first, which no pass finds beside what convolutions become; then convolutions of
 * two-byte floats, which no library computes. */
static const char *const layouts[] = {
    "fold_pads",     "fold_scales",   "widen_convs", "common_subexpressions",
    "lay_out_convs", "join_permutes", "dead_code",   "append_to_convs",
    "dead_code"};

static const char *const winograd = "winograd_convs";

/* Is any of it another op now? */
static tssa_status *find_convolve(void *context, struct ir_op *op)
{
    *(bool *)context |= ir_op_is(op, IR_OP_convolve);
    return NULL;
}

static tssa_status *lay_out(struct ir_graph *graph, const struct device *device,
                            const tssa_session_options *options, bool *done)
{
    const tssa_optimize_options pass_options = told(options);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {.options = &pass_options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .convolves = device->library->convolves};
    tssa_status *status =
        pipeline_run_passes(graph, layouts, sizeof layouts / sizeof *layouts, &pipeline);
    if (!status && !options->no_winograd)
        status = pipeline_run_passes(graph, &winograd, 1, &pipeline);
    evaluator_free(&evaluator);
    *done = false;
    return status ? status : ir_block_walk(graph->body, find_convolve, done);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static tssa_status *find_quantized(void *context, struct ir_op *op)
{
    const struct ir_value *x = ir_op_is(op, IR_OP_QuantizeLinear) ? ir_operand(op, 0) : NULL;
    *(bool *)context |= x && dtype_in(T_I8U8, op->results[0].type->dtype) && !ir_value_constant(x);
    return NULL;
}

/* Is there anything that may be looked up, where there is a kernel for it? */
static bool tabulates(const struct ir_graph *graph, const struct device *device)
{
    bool any = false;
    if (device->is_host)
        tssa_status_free(ir_block_walk(graph->body, find_quantized, &any));
    return any;
}

/* *done is left where nothing was made of it. */
static tssa_status *tabulate(struct ir_graph *graph, const tssa_session_options *options,
                             bool *done)
{
    static const char *const names[] = {"tabulate_bytes", "dead_code"};
    const tssa_optimize_options pass_options = told(options);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {
        .options = &pass_options, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status =
        pipeline_run_passes(graph, names, sizeof names / sizeof *names, &pipeline);
    evaluator_free(&evaluator);
    *done |= ir_block_has(graph->body, IR_OP_byte_table);
    return status;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* A layer whose inputs one op makes of what another layer computes, whatever that is before rules
 * are lowered. */
static tssa_status *find_stack(void *context, struct ir_op *op)
{
    const struct ir_value *x = layers_may_have(op) ? ir_operand(op, RECURRENT_X) : NULL;
    const struct ir_value *y = x && x->op ? ir_operand(x->op, 0) : NULL;
    *(bool *)context |=
        y && y->op && layers_may_have(y->op) && !layers_refuses(y->op) && !layers_refuses(op);
    return NULL;
}

/* Is there a layer behind a layer, which two threads compute side by side? */
static bool has_stacks(const struct ir_graph *graph, const struct device_context *device)
{
    bool any = false;
    if (device->device->is_host && device->team && device->team->threads > 1)
        tssa_status_free(ir_block_walk(graph->body, find_stack, &any));
    return any;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The copy, changed as the options and the device say. */
static tssa_status *change(struct session_graph *made, const struct device_context *context,
                           const tssa_session_options *options)
{
    const struct device *device = context->device;
    bool laid_out = false;
    made->differs = relaxes(made->own, options);
    if (made->differs)
        TRY(relax(made->own));
    if (made->raised && lays_out(made->own, device))
        TRY(lay_out(made->own, device, options, &laid_out));
    made->differs |= laid_out;
    if (made->raised && tabulates(made->own, device))
        TRY(tabulate(made->own, options, &made->differs));
    made->differs |= made->raised && has_stacks(made->own, context);
    return NULL;
}

tssa_status *session_graph_clone(const struct tssa_model *model, struct device_context *device,
                                 const tssa_session_options *options, struct session_graph *made)
{
    const struct ir_graph *raised = model->raised, *of = raised ? raised : model->graph;
    *made = (struct session_graph){.raised = raised != NULL};
    made->fuses = raised && fusion_of(device, options->compile != TSSA_COMPILE_OFF);
    if (!made->fuses && !relaxes(of, options) &&
        !(raised && (lays_out(of, device->device) || tabulates(of, device->device) ||
                     has_stacks(of, device))))
        return NULL;
    TRY(ir_clone_graph(of, &made->own));
    tssa_status *status = change(made, device, options);
    if (!status && (made->fuses || made->differs))
        return NULL;
    ir_graph_free(made->own);
    made->own = NULL;
    return status;
}

static const char fuse[] = "fuse";

/* Puts the ops of fuse ops back of which there is no kernel as a whole, because of their accesses,
 * assigns, Concats, reductions of columns, running sums, triangles, or of what they keep. */
static tssa_status *refuse_maps(struct ir_block *block, const struct pass_context *pass, bool *any)
{
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks && !ir_fuse_body(op); i++)
            TRY(refuse_maps(op->blocks[i], pass, any));
        struct gir_fused built;
        const char *why;
        if (!ir_fuse_body(op) || !gir_has_maps(op))
            continue;
        tssa_status *status = gir_build_fuse(op, pass->graph->allocator, &built, &why);
        gir_fused_free(&built);
        TRY(status);
        if (!why)
            continue;
        TRY(pass_remark(pass, TSSA_REMARK_MISSED, op, "no kernel is made of it: %s", why));
        ir_fuse_inline(op);
        *any = true;
    }
    return NULL;
}

#define GATHERS (IR_FUSES_GATHERS | IR_FUSES_INDICES)

/* What is tried one after the other. Indices that are computed for a gather are no kernel of their
 * own first. */
static const struct {
    uint32_t without; /* of enum ir_fuses */
    bool moves_inside, planes;
    bool always; /* also where there was a kernel of each fuse op before */
} tries[] = {{IR_FUSES_GATHERS, true, true, true},
             {GATHERS | IR_FUSES_CONCATS, true, false, false},
             {GATHERS | IR_FUSES_CONCATS | IR_FUSES_COLUMNS | IR_FUSES_POSITIONS | IR_FUSES_KEEPS |
                  IR_FUSES_SCANS,
              true, false, false},
             /* Gathers join what is left: others do without each other for their sake. */
             {IR_FUSES_COLUMNS | IR_FUSES_POSITIONS | IR_FUSES_SCANS, true, false, true},
             {GATHERS | IR_FUSES_CONCATS | IR_FUSES_COLUMNS | IR_FUSES_POSITIONS | IR_FUSES_RULES |
                  IR_FUSES_KEEPS | IR_FUSES_SCANS,
              false, false, false}};

static tssa_status *fuse_again(struct ir_graph *graph, const struct device *device,
                               const struct pipeline *pipeline)
{
    const char *const names[] = {fuse};
    const struct pass_context pass = {
        .graph = graph, .pass = pass_find(fuse), .options = pipeline->options};
    bool any = false;
    if (!device->compile)
        return pipeline_run_passes(graph, names, 1, pipeline);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct ir_fusion less = *pipeline->fusion;
        struct pipeline own = *pipeline;
        if (!any && !tries[i].always)
            continue;
        less.classes &= ~tries[i].without;
        if (!tries[i].planes)
            less.refuses_planes = NULL;
        less.moves_inside &= tries[i].moves_inside;
        own.fusion = &less;
        any &= tries[i].always;
        TRY(pipeline_run_passes(graph, names, 1, &own));
        TRY(refuse_maps(graph->body, &pass, &any));
    }
    return NULL;
}

static bool has_expanded(const struct ir_graph *graph)
{
    return ir_block_has(graph->body, IR_OP_LSTM) || ir_block_has(graph->body, IR_OP_GRU) ||
           ir_block_has(graph->body, IR_OP_RNN) || ir_block_has(graph->body, IR_OP_Attention);
}

/* What the device has no kernel of, and what comes of it beside what was there before. */
static const char *const expansions[] = {"expand_recurrent", "expand_attention",      "infer",
                                         "forward_assigns",  "common_subexpressions", "dead_code"};

/* Whether these are worth it depends on the device. */
static const char *const before[] = {
    "bound_scores", "one_block",      "peel",  "write_stacks",   "number_masks",
    "infer",        "empty_branches", "infer", "empty_branches", "infer",
    "sink_reads",   "raise_expands",  "infer", "bound_lists",    "infer",
    "split_tables", "dead_code"};

tssa_status *session_graph_fuse(struct ir_graph *graph, struct device_context *device,
                                const tssa_session_options *options)
{
    const tssa_optimize_options pass_options = told(options);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {.options = &pass_options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .fusion = fusion_of(device, true)};
    tssa_status *status = NULL;
    if (has_expanded(graph))
        status = pipeline_run_passes(graph, expansions, sizeof expansions / sizeof *expansions,
                                     &pipeline);
    if (!status)
        status = pipeline_run_passes(graph, before, sizeof before / sizeof *before, &pipeline);
    if (!status)
        status = fuse_again(graph, device->device, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

/* The passes behind `fuse` said what they do when the model was optimized. */
static tssa_status *lower(struct ir_graph *graph, struct device_context *device)
{
    const tssa_optimize_options quiet = {.target = TSSA_TARGET_SESSION};
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {.options = &quiet,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .fusion = fusion_of(device, true)};
    tssa_status *status = pipeline_finish(graph, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

/* Then what is a session's alone, and says what it does: nothing folds into a Conv any more. */
tssa_status *session_graph_finish(struct ir_graph *graph, struct device_context *device,
                                  const tssa_session_options *options)
{
    static const char *const names[] = {"follow_convolutions", "join_layers"};
    const tssa_optimize_options pass_options = told(options);
    const struct pipeline pipeline = {.options = &pass_options, .fusion = fusion_of(device, true)};
    TRY(lower(graph, device));
    return pipeline_run_passes(graph, names, has_stacks(graph, device) ? 2 : 1, &pipeline);
}

tssa_status *session_graph_compile(struct ir_graph *graph, struct device_context *device, int stop,
                                   const tssa_session_options *options,
                                   struct compile_report *report)
{
    const tssa_optimize_options pass_options = told(options);
    const struct pass_context pass = {
        .graph = graph, .pass = pass_find(fuse), .options = &pass_options};
    *report = (struct compile_report){0};
    if (device->device->compile)
        TRY(compile_fused(graph, device, stop, report));
    if (report->stopped)
        return NULL;
    TRY(refuse(graph->body, device->device, &pass));
    return session_graph_finish(graph, device, options);
}
