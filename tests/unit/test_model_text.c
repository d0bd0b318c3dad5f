/* SPDX-License-Identifier: Apache-2.0 */
/* The committed models as text: what is printed parses back and prints the same, before and after
 * the passes, and infers to the same types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "onnx/importer.h"
#include "passes/pipeline.h"

static void must(const char *path, tssa_status *status)
{
    if (status)
        fail_msg("%s: %s", path, tssa_status_message(status));
}

/* Prints, parses, prints: the same text. */
static void round_trip(const char *path, const struct ir_graph *graph)
{
    struct text text, again;
    struct ir_graph *copy = NULL;
    text_init(&text, &allocator_default);
    text_init(&again, &allocator_default);
    ir_print_graph(graph, true, &text);
    must(path, ir_parse(&allocator_default, text.data, text.size, &copy));
    must(path, ir_verify(copy));
    ir_print_graph(copy, true, &again);
    if (text.size != again.size || memcmp(text.data, again.data, text.size) != 0)
        fail_msg("%s: the text changes when it is parsed and printed", path);
    must(path, ir_infer_graph(copy));
    must(path, ir_verify(copy));
    ir_graph_free(copy);
    text_free(&again);
    text_free(&text);
}

static void one_model(void **state)
{
    const char *path = *state;
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = NULL;
    must(path, onnx_import_file(&allocator_default, path, NULL, &graph));
    round_trip(path, graph);
    must(path, pipeline_run(graph, 1, &pipeline));
    round_trip(path, graph);
    ir_graph_free(graph);
}

int main(void)
{
    return committed_models_test(one_model);
}
