/* SPDX-License-Identifier: Apache-2.0 */
/* IR text that verifies and infers goes through all passes of level 2, and still verifies. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A graph that was sound must stay so: what fails now is a bug of a pass. */
static void must_hold(tssa_status *status)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", tssa_status_message(status));
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tssa_optimize_options options = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, (const char *)data, size, &graph);
    if (!status)
        status = ir_verify(graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = ir_verify(graph); /* element types are known only now */
    if (!status) {
        must_hold(pipeline_run(graph, PIPELINE_MAX_LEVEL, &pipeline));
        must_hold(ir_verify(graph));
    }
    tssa_status_free(status);
    ir_graph_free(graph);
    return 0;
}
