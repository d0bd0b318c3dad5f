/* SPDX-License-Identifier: Apache-2.0 */
#include "common/imperative_check.h"

#include <string.h>

#include "common/imperative.h"
#include "common/same_value.h"
#include "common/test_device.h"
#include "ir/cost.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"
#include "runtime/executor.h"

tssa_status *imperative_read(const char *text, struct ir_graph **graph)
{
    TRY(ir_parse(&allocator_default, text, strlen(text), graph));
    TRY(ir_verify(*graph));
    TRY(ir_infer_graph(*graph));
    return ir_verify(*graph);
}

/* What is done to a program. */
struct way {
    const char *name;
    bool all; /* level 2, not conversion alone */
    tssa_target target;
    struct pass_batching batching;
    const struct ir_fusion *fusion;
};

static const struct ir_fusion kernels = {.classes = IR_FUSES_ALL,
                                         .machine = &cost_cpu,
                                         .most_operands = 8,
                                         .moves_inside = true,
                                         .row_parts = true,
                                         .side_by_side = true};

static const struct way ways[] = {
    {"conversion", false, TSSA_TARGET_ONNX, {0}, NULL},
    {"level 2", true, TSSA_TARGET_ONNX, {0}, NULL},
    {"level 2 for sessions", true, TSSA_TARGET_SESSION, {0}, NULL},
    {"level 2 with ops fused", true, TSSA_TARGET_SESSION, {0}, &kernels},
    {"level 2 in blocks of 2", true, TSSA_TARGET_ONNX, {.block = 2}, NULL},
    {"level 2 in blocks of 100 bytes", true, TSSA_TARGET_SESSION, {.block_bytes = 100}, NULL}};

static tssa_status *convert(struct ir_graph *graph, const struct way *way)
{
    static const char *const steps[] = {"separate_names", "rewrite_mutation", "block_propagation",
                                        "rename", "remove_update"};
    const tssa_optimize_options options = {.verify_after_passes = 1, .target = way->target};
    struct evaluator evaluator;
    evaluator_init(&evaluator, &allocator_default);
    const struct pipeline pipeline = {.options = &options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .batching = way->batching,
                                      .fusion = way->fusion};
    tssa_status *status =
        way->all ? pipeline_run(graph, PIPELINE_MAX_LEVEL, &pipeline)
                 : pipeline_run_passes(graph, steps, sizeof steps / sizeof *steps, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

tssa_status *imperative_fused(const char *text, const struct ir_fusion *fusion,
                              struct ir_graph **graph)
{
    const struct way way = {"fused", true, TSSA_TARGET_SESSION, {0}, fusion};
    TRY(imperative_read(text, graph));
    return convert(*graph, &way);
}

static void release(struct value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        value_release(&values[i]);
}

/* Runs a converted graph; an error when an output is not as expected. */
static tssa_status *compare(struct run *run, const struct value *const *inputs,
                            const struct value *expected, size_t n)
{
    struct value outputs[IMPERATIVE_MAX_OUTPUTS] = {0};
    TRY(run_execute(run, inputs, outputs));
    tssa_status *status = NULL;
    for (size_t i = 0; i < n && !status; i++)
        if (!same_value(&outputs[i], &expected[i]))
            status = ERROR(TSSA_INTERNAL, "output %zu differs", i);
    release(outputs, n);
    return status;
}

/* What is asked of a program. */
struct check {
    const char *text;
    const struct value *const *const *inputs;
    size_t n_runs;
    struct text *message;
};

/* The program with real aliasing against the converted one. */
static tssa_status *compare_runs(const struct check *check, const struct ir_graph *graph,
                                 struct run *run)
{
    size_t n = ir_block_return(graph->body)->n_operands;
    if (n > IMPERATIVE_MAX_OUTPUTS)
        return ERROR(TSSA_UNSUPPORTED, "too many outputs");
    for (size_t i = 0; i < check->n_runs; i++) {
        struct value expected[IMPERATIVE_MAX_OUTPUTS] = {0};
        TRY(imperative_run(graph, check->inputs[i], expected));
        tssa_status *status = compare(run, check->inputs[i], expected, n);
        release(expected, n);
        if (status)
            return status_prefix(status, "run %zu", i);
    }
    return NULL;
}

static tssa_status *run_converted(const struct check *check, const struct ir_graph *graph,
                                  const struct ir_graph *converted)
{
    struct plan *plan = NULL;
    struct run *run = NULL;
    TRY(plan_create(converted, test_device(), &plan));
    tssa_status *status = run_create(plan, &allocator_default, NULL, false, &run);
    if (!status)
        status = compare_runs(check, graph, run);
    run_free(run);
    plan_free(plan);
    return status;
}

static enum imperative_outcome try_way(const struct check *check, const struct way *way)
{
    struct ir_graph *graph = NULL, *converted = NULL;
    enum imperative_outcome outcome = IMPERATIVE_SAME;
    tssa_status *status = imperative_read(check->text, &graph);
    if (!status)
        status = imperative_read(check->text, &converted);
    if (!status)
        status = convert(converted, way);
    if (!status && ir_block_is_imperative(converted->body))
        outcome = IMPERATIVE_REFUSED;
    else if (!status)
        status = run_converted(check, graph, converted);
    if (status) {
        outcome = IMPERATIVE_FAILED;
        text_printf(check->message, "%s: %s\n", way->name, tssa_status_message(status));
        tssa_status_free(status);
    }
    ir_graph_free(graph);
    ir_graph_free(converted);
    return outcome;
}

enum imperative_outcome imperative_check(const char *text, const struct value *const *const *inputs,
                                         size_t n_runs, struct text *message)
{
    const struct check check = {text, inputs, n_runs, message};
    enum imperative_outcome outcome = IMPERATIVE_SAME;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && outcome == IMPERATIVE_SAME; i++)
        outcome = try_way(&check, &ways[i]);
    return outcome;
}
