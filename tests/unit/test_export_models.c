/* SPDX-License-Identifier: Apache-2.0 */
/* The committed models through the exporter: the file reads back as the same graph. What is written
 * of an optimized graph is a fixed point: read and written again, it is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

static void one_model(void **state)
{
    const char *path = *state;
    struct ir_graph *graph = NULL;
    struct text bytes, more;
    text_init(&bytes, &allocator_default);
    text_init(&more, &allocator_default);
    must(path, onnx_import_file(&allocator_default, path, NULL, &graph));
    struct ir_graph *again = export_import(path, graph, NULL, &bytes);
    same_graphs(path, graph, again, true);
    ir_graph_free(again);

    const struct pipeline pipeline = {.options = NULL};
    must(path, pipeline_run(graph, 1, &pipeline));
    struct ir_graph *first = export_import(path, graph, NULL, &bytes);
    struct ir_graph *second = export_import(path, first, NULL, &more);
    same_graphs(path, first, second, true);
    ir_graph_free(second);
    ir_graph_free(first);
    ir_graph_free(graph);
    text_free(&more);
    text_free(&bytes);
}

int main(void)
{
    return committed_models_test(one_model);
}
