/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes, what a level runs, and the dumps and checks between passes. */
#include "passes/pipeline.h"

#include <string.h>
#include <time.h>

#include "ir/clone.h"
#include "ir/cost.h"
#include "ir/printer.h"
#include "ir/verifier.h"

static const struct pass passes[] = {
#define PASS(name_, summary_) {.name = #name_, .summary = summary_, .run = pass_##name_},
#include "passes/passes.def"
#undef PASS
};

/*
 * Passes that run in a row, and again while one of them changes something, `rounds` times at most.
 */
struct stage {
    int rounds;
    const char *const *names; /* ends with NULL */
};

#define STAGE(rounds_, ...)                                                                        \
    {                                                                                              \
        .rounds = (rounds_), .names = (const char *const[])                                        \
        {                                                                                          \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }

/* Identities go first: they hide constants; dead code goes last. An If whose condition is a
 * constant by now does not stay: ONNX Runtime takes the branch, and gets names in it wrong, or
 * refuses what is in the other one. */
#define SIMPLIFY "identity", "fold_shapes", "known_branches", "dead_code"

/* TensorSSA conversion: what makes an imperative program a functional one. */
#define CONVERT "separate_names", "rewrite_mutation", "block_propagation", "rename", "remove_update"

static const struct stage level_1[] = {STAGE(1, CONVERT), STAGE(1, SIMPLIFY)};
/* One pass a line. */
/* clang-format off */
/* What makes any graph smaller, and raises nothing. */
#define CLEAN                                                                                      \
    "infer", "identity", "algebra", "fold_shapes", "fold_constants", "common_subexpressions",      \
        "known_branches", "select_branches", "chosen_terms", "induction", "loop_conditions",       \
        "carried_values", "outer_shapes", "hoist", "sequences", "unroll", "narrow_selection",      \
        "known_order", "compose_selections", "masked_elements", "push_slices", "push_selections",  \
        "dead_code"

/*
 * What raises ops to what a loop does: regions that it reads and writes, rows that it stacks, maps.
 */
#define RAISE                                                                                      \
    "recover", "sink_permutes", "forward_assigns", "branch_writes", "merge_updates",               \
        "split_columns", "scalar_replacement", "carried_rows", "scan_outputs", "stack_concats",    \
        "stack_sequences", "sequence_maps", "ragged_rows"

/* A stage by itself. */
#define FUSE "fuse"

static const struct stage level_2[] = {
    STAGE(1, CONVERT),
    STAGE(8, CLEAN),
    /*
     * Products of one body are packed here: side by side, they are several once the loop is gone.
     */
    STAGE(4, RAISE, "pack_matmuls", CLEAN),
    /* How each loop is run is decided where nothing else is left to be raised. */
    STAGE(4,
          RAISE,
          "distribute",
          "coalesce",
          "parallelize",
          "batch_writes",
          "peel",
          "pack_matmuls",
          "widen",
          "fold_lookups",
          CLEAN),
    STAGE(1, "explain_loops"),
    /* With what is quantized before there are kernels: they take what is left in floats. */
    STAGE(1,
          "sink_dequantizes",
          "dead_code",
          "multiply_bytes",
          "dead_code",
          "fold_zeros",
          "channels_last",
          "dequantize_constants",
          "dead_code"),
    /* Rules are still there: they say what a kernel reads. Nothing is fused unless kernels are
     * lent. Sessions that fuse for themselves go on behind it (pipeline_finish). */
    STAGE(1, FUSE),
    /* What is bounded reads planes by rules, and is found where no pass moves rows any more.
     * Sessions that fuse for themselves do it before, as suits their device. */
    STAGE(1, "bound_scores", "infer", "dead_code"),
    /* Nothing raises ops again after this. */
    STAGE(1, "lower_rules"),
    /* Passes that look beyond a loop would not see through the branch. */
    STAGE(1, "guard_loops"),
    STAGE(8, CLEAN),
    /* Other passes look for a MatMul, and for an Add. */
    STAGE(1, "make_gemms", "fold_pads", "fold_scales", "dead_code"),
    /* Ops that no other pass knows; of sessions that fuse for themselves alone. */
    STAGE(1, "follow_boxes", "group_lists"),
};
/* clang-format on */

static const struct {
    const struct stage *stages;
    size_t count;
} levels[PIPELINE_MAX_LEVEL + 1] = {
    {NULL, 0},
    {level_1, sizeof level_1 / sizeof *level_1},
    {level_2, sizeof level_2 / sizeof *level_2},
};

const struct pass *pass_table(size_t *count)
{
    *count = sizeof passes / sizeof *passes;
    return passes;
}

const struct pass *pass_find(const char *name)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

size_t pipeline_stage_count(int level)
{
    return level < 0 || level > PIPELINE_MAX_LEVEL ? 0 : levels[level].count;
}

tssa_stage_info pipeline_stage(int level, size_t index)
{
    const struct stage *stage = &levels[level].stages[index];
    tssa_stage_info info = {.passes = stage->names, .rounds = stage->rounds};
    while (stage->names[info.pass_count])
        info.pass_count++;
    return info;
}

static const tssa_optimize_options no_options;

static const tssa_optimize_options *options_of(const struct pipeline *pipeline)
{
    return pipeline && pipeline->options ? pipeline->options : &no_options;
}

static bool wants_verifier(const tssa_optimize_options *options)
{
#ifndef NDEBUG
    (void)options;
    return true;
#else
    return options->verify_after_passes;
#endif
}

static tssa_status *dump(const struct ir_graph *graph, const struct pass *pass,
                         const tssa_optimize_options *options)
{
    struct text text;
    if (!options->dump || (options->dump_pass && strcmp(options->dump_pass, pass->name) != 0))
        return NULL;
    text_init(&text, graph->allocator);
    ir_print_graph(graph, false, &text);
    const char *string = text_string(&text);
    if (string)
        options->dump(options->dump_user, pass->name, string, text.size);
    text_free(&text);
    return string ? NULL : status_out_of_memory();
}

/* ---- Telling what a pass did ----------------------------------------------------------------- */

static tssa_status *count_op(void *count, struct ir_op *op)
{
    (void)op;
    ++*(size_t *)count;
    return NULL;
}

static size_t count_ops(struct ir_graph *graph)
{
    size_t count = 0;
    return ir_block_walk(graph->body, count_op, &count) ? 0 : count;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *refuses_none(void *user, const struct ir_op *fuse)
{
    (void)user, (void)fuse;
    return NULL;
}

static bool is_free_of_all(void *user, const struct ir_op *fuse, const struct dim *size)
{
    (void)user, (void)fuse, (void)size;
    return true;
}

static bool follows_all(void *user, const struct ir_op *conv)
{
    (void)user, (void)conv;
    return true;
}

/* For who asks for the pass by name and lends nothing. */
static const struct ir_fusion any_fusion = {.classes = IR_FUSES_ALL | IR_FUSES_LISTS,
                                            .machine = &cost_cpu,
                                            .most_operands = 32,
                                            .table_bytes = 1,
                                            .moves_inside = true,
                                            .expands = true,
                                            .refuses_whole = refuses_none,
                                            .is_free_of = is_free_of_all,
                                            .follows = follows_all};

/* One optimization under way. */
struct runner {
    struct ir_graph *graph;
    const struct pipeline *pipeline;
    const tssa_optimize_options *options;
    const struct ir_fusion *fusion;
    bool imperative; /* no pass makes a graph so: looked at until it is not */
    size_t ops;      /* for pass_done */
    /* How often the graph has changed, and when each pass found nothing to do, counting from 1: it
     * has nothing to do until the graph changes again. */
    uint32_t changes, idle[sizeof passes / sizeof *passes];
};

static struct runner start(struct ir_graph *graph, const struct pipeline *pipeline)
{
    const tssa_optimize_options *options = options_of(pipeline);
    return (struct runner){.graph = graph,
                           .pipeline = pipeline,
                           .options = options,
                           .fusion = pipeline ? pipeline->fusion : NULL,
                           .imperative = true,
                           .ops = options->pass_done ? count_ops(graph) : 0};
}

/* Runs it, and says so when somebody wants to know. */
static tssa_status *run_told(struct runner *runner, struct pass_context *context)
{
    if (!context->options->pass_done)
        return context->pass->run(context);
    tssa_pass_run run = {.pass = context->pass->name, .ops_before = runner->ops};
    double begun = now();
    TRY(context->pass->run(context));
    run.seconds = now() - begun;
    if (context->changed)
        runner->ops = count_ops(context->graph);
    run.ops_after = runner->ops;
    run.changed = context->changed;
    context->options->pass_done(context->options->pass_done_user, &run);
    return NULL;
}

static bool is_skipped(const struct pass *pass, const tssa_optimize_options *options)
{
    for (size_t i = 0; i < options->n_skipped; i++)
        if (strcmp(options->skipped[i], pass->name) == 0)
            return true;
    return false;
}

/* The others count on values that never change: what conversion had to leave imperative, they
 * leave. */
static bool is_conversion(const struct pass *pass)
{
    static const char *const names[] = {CONVERT};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], pass->name) == 0)
            return true;
    return false;
}

/* Sets *changed when the pass says so. */
static tssa_status *run_pass(struct runner *runner, const char *name, bool *changed)
{
    const struct pass *pass = pass_find(name);
    const struct pipeline *pipeline = runner->pipeline;
    const tssa_optimize_options *options = runner->options;
    struct ir_graph *graph = runner->graph;
    runner->imperative = runner->imperative && ir_block_is_imperative(graph->body);
    if (is_skipped(pass, options) || (runner->imperative && !is_conversion(pass)))
        return NULL;
    struct pass_context context = {.graph = graph,
                                   .pass = pass,
                                   .options = options,
                                   .evaluate = pipeline ? pipeline->evaluate : NULL,
                                   .evaluate_user = pipeline ? pipeline->evaluate_user : NULL,
                                   .fusion = runner->fusion,
                                   .convolves = pipeline ? pipeline->convolves : NULL};
    if (pipeline)
        context.batching = pipeline->batching;
    tssa_status *status = run_told(runner, &context);
    if (status)
        return status_prefix(status, "pass %s", pass->name);
    *changed |= context.changed;
    TRY(dump(graph, pass, options)); /* first, so that a broken graph can be looked at */
    if (wants_verifier(options))
        return status_prefix(ir_verify(graph), "after pass %s", pass->name);
    return NULL;
}

static tssa_status *check_names(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!pass_find(names[i]))
            return ERROR(TSSA_INVALID_ARGUMENT, "no pass is named \"%s\"", names[i]);
    return NULL;
}

static tssa_status *check_options(const tssa_optimize_options *options)
{
    if (options->dump_pass)
        TRY(check_names(&options->dump_pass, 1));
    TRY(check_names(options->skipped, options->n_skipped));
    return check_names(options->passes, options->n_passes);
}

tssa_status *pipeline_run_passes(struct ir_graph *graph, const char *const *names, size_t count,
                                 const struct pipeline *pipeline)
{
    bool changed = false;
    TRY(check_options(options_of(pipeline)));
    TRY(check_names(names, count));
    struct runner runner = start(graph, pipeline);
    if (!runner.fusion)
        runner.fusion = &any_fusion;
    for (size_t i = 0; i < count; i++)
        TRY(run_pass(&runner, names[i], &changed));
    if (changed)
        ir_graph_number_values(graph);
    return NULL;
}

/* A pass of a stage: not again while the graph is as it left it. */
static tssa_status *run_stage_pass(struct runner *runner, const char *name, bool *changed)
{
    bool now_changed = false;
    uint32_t *idle = &runner->idle[pass_find(name) - passes];
    if (*idle == runner->changes + 1)
        return NULL;
    TRY(run_pass(runner, name, &now_changed));
    if (now_changed)
        runner->changes++;
    else
        *idle = runner->changes + 1;
    *changed |= now_changed;
    return NULL;
}

static tssa_status *run_stage(struct runner *runner, const struct stage *stage)
{
    bool changed = true;
    for (int round = 0; round < stage->rounds && changed; round++) {
        changed = false;
        for (const char *const *name = stage->names; *name; name++)
            TRY(run_stage_pass(runner, *name, &changed));
    }
    if (runner->changes)
        ir_graph_number_values(runner->graph);
    return NULL;
}

static bool is_fuse(const struct stage *stage)
{
    return strcmp(stage->names[0], FUSE) == 0;
}

tssa_status *pipeline_run(struct ir_graph *graph, int level, const struct pipeline *pipeline)
{
    const tssa_optimize_options *options = options_of(pipeline);
    struct ir_graph **raised = pipeline ? pipeline->raised : NULL;
    if (level < 0 || level > PIPELINE_MAX_LEVEL)
        return ERROR(TSSA_INVALID_ARGUMENT, "there is no optimization level %d", level);
    if (options->passes)
        return pipeline_run_passes(graph, options->passes, options->n_passes, pipeline);
    TRY(check_options(options));
    struct runner runner = start(graph, pipeline);
    for (size_t i = 0; i < levels[level].count; i++) {
        const struct stage *stage = &levels[level].stages[i];
        if (raised && !*raised && is_fuse(stage))
            TRY(ir_clone_graph(graph, raised));
        TRY(run_stage(&runner, stage));
    }
    return NULL;
}

tssa_status *pipeline_finish(struct ir_graph *graph, const struct pipeline *pipeline)
{
    const struct stage *stage = level_2, *end = level_2 + sizeof level_2 / sizeof *level_2;
    struct runner runner = start(graph, pipeline);
    while (!is_fuse(stage))
        stage++;
    while (++stage < end)
        TRY(run_stage(&runner, stage));
    return NULL;
}
