/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs from captured streams, with conditional nodes in them. */
#ifndef TSSA_CUDA_PROBE_GRAPH_H
#define TSSA_CUDA_PROBE_GRAPH_H

#include "bench/cuda_probe/card.h"

struct graph {
    cuda_graph graph;
    cuda_graph_exec exec;
};

/* Does on a stream that captures what is to be in a graph. */
typedef tssa_status *graph_fill(struct card *card, cuda_stream stream, void *data);

tssa_status *graph_capture(struct card *card, graph_fill *fill, void *data, struct graph *graph);
tssa_status *graph_instantiate(struct card *card, struct graph *graph);
tssa_status *graph_make(struct card *card, graph_fill *fill, void *data, struct graph *graph);

/* Launches and waits; a stopwatch_work whose data is the struct graph. */
tssa_status *graph_run(struct card *card, void *graph);

/*
 * While `stream` captures: a value that kernels of the graph set, zero at each launch, and a node
 * that looks at it. The value must be of the graph that holds the node, a body's of the body.
 * `type`: CUDA_CONDITION_*. The body is written to *body.
 */
tssa_status *graph_condition(struct card *card, cuda_stream stream, cuda_condition *condition);
tssa_status *graph_conditional(struct card *card, cuda_stream stream, unsigned type,
                               cuda_condition condition, graph_fill *fill, void *data,
                               cuda_graph *body);

/* "2 kernel, 1 memset": what a graph holds. */
tssa_status *graph_kinds(struct card *card, cuda_graph graph, char *text, size_t size);

#endif
