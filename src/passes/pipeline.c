/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes, what a level runs, and the dumps and checks between passes. */
#include "passes/pipeline.h"

#include <string.h>

#include "ir/printer.h"
#include "ir/verifier.h"

static const struct pass passes[] = {
#define PASS(name_, summary_) {.name = #name_, .summary = summary_, .run = pass_##name_},
#include "passes/passes.def"
#undef PASS
};

/* What level 1 runs. Identities go first: they hide constants; dead code goes last. */
static const char *const level_1[] = {"identity", "fold_shapes", "dead_code"};

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

static bool wants_verifier(const tssa_optimize_options *options)
{
#ifndef NDEBUG
    (void)options;
    return true;
#else
    return options && options->verify_after_passes;
#endif
}

static tssa_status *dump(const struct ir_graph *graph, const struct pass *pass,
                         const tssa_optimize_options *options)
{
    struct text text;
    if (!options || !options->dump ||
        (options->dump_pass && strcmp(options->dump_pass, pass->name) != 0))
        return NULL;
    text_init(&text, graph->allocator);
    ir_print_graph(graph, false, &text);
    const char *string = text_string(&text);
    if (string)
        options->dump(options->dump_user, pass->name, string, text.size);
    text_free(&text);
    return string ? NULL : status_out_of_memory();
}

static tssa_status *run_pass(struct ir_graph *graph, const struct pass *pass,
                             const tssa_optimize_options *options)
{
    tssa_status *status = pass->run(graph);
    if (status)
        return status_prefix(status, "pass %s", pass->name);
    TRY(dump(graph, pass, options)); /* first, so that a broken graph can be looked at */
    if (wants_verifier(options))
        return status_prefix(ir_verify(graph), "after pass %s", pass->name);
    return NULL;
}

tssa_status *pipeline_run_passes(struct ir_graph *graph, const char *const *names, size_t count,
                                 const tssa_optimize_options *options)
{
    if (options && options->dump_pass && !pass_find(options->dump_pass))
        return ERROR(TSSA_INVALID_ARGUMENT, "no pass is named \"%s\"", options->dump_pass);
    for (size_t i = 0; i < count; i++)
        if (!pass_find(names[i]))
            return ERROR(TSSA_INVALID_ARGUMENT, "no pass is named \"%s\"", names[i]);
    for (size_t i = 0; i < count; i++)
        TRY(run_pass(graph, pass_find(names[i]), options));
    return NULL;
}

tssa_status *pipeline_run(struct ir_graph *graph, int level, const tssa_optimize_options *options)
{
    if (level < 0 || level > 1)
        return ERROR(TSSA_INVALID_ARGUMENT, "there is no optimization level %d", level);
    size_t count = level == 0 ? 0 : sizeof level_1 / sizeof *level_1;
    return pipeline_run_passes(graph, level_1, count, options);
}
