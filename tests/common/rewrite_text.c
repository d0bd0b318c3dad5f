/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rewrite_text.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/parser.h"

tssa_status *rewrite_text(const tssa_allocator *allocator, const char *text,
                          const char *const *passes, size_t n_passes,
                          const struct pipeline *pipeline)
{
    struct ir_graph *graph;
    TRY(ir_parse(allocator, text, strlen(text), &graph));
    tssa_status *status = ir_infer_graph(graph);
    if (!status)
        status = pipeline_run_passes(graph, passes, n_passes, pipeline);
    ir_graph_free(graph);
    return status;
}
