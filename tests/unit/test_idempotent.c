/* SPDX-License-Identifier: Apache-2.0 */
/* The committed models, optimized, written, read, optimized and written: the second time changes no
 * operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/graph_text.h"
#include "onnx/importer.h"
#include "passes/pipeline.h"

static void must(const char *path, tssa_status *status)
{
    if (status)
        fail_msg("%s: %s", path, tssa_status_message(status));
}

/* Ops by kind, subgraphs included; Constants are counted elsewhere: they are shared and moved. */
struct tally {
    size_t ops[IR_OP_COUNT];
};

static tssa_status *count(void *context, struct ir_op *op)
{
    struct tally *tally = context;
    if (!ir_op_is(op, IR_OP_Constant))
        tally->ops[op->info->id]++;
    return NULL;
}

static struct ir_graph *rewrite(const char *path, struct ir_graph *graph, struct text *bytes)
{
    const tssa_optimize_options options = {.level = 2};
    const struct pipeline pipeline = {.options = &options};
    must(path, pipeline_run(graph, 2, &pipeline));
    struct ir_graph *again = export_import(path, graph, NULL, bytes);
    ir_graph_free(graph);
    return again;
}

static void one_model(void **state)
{
    const char *path = *state;
    struct ir_graph *graph = NULL;
    struct text first, second;
    struct tally one = {{0}}, two = {{0}};
    text_init(&first, &allocator_default);
    text_init(&second, &allocator_default);
    must(path, onnx_import_file(&allocator_default, path, NULL, &graph));
    graph = rewrite(path, graph, &first);
    must(path, ir_block_walk(graph->body, count, &one));
    graph = rewrite(path, graph, &second);
    must(path, ir_block_walk(graph->body, count, &two));
    for (size_t i = 0; i < IR_OP_COUNT; i++)
        if (one.ops[i] != two.ops[i])
            fail_msg("%s: %zu %s become %zu", path, one.ops[i], ir_op_info((enum ir_op_id)i)->name,
                     two.ops[i]);
    ir_graph_free(graph);
    text_free(&second);
    text_free(&first);
}

int main(void)
{
    return committed_models_test(one_model);
}
