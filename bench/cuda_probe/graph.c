/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/graph.h"

#include <stdio.h>
#include <stdlib.h>

/* Captures are relaxed: a library that loads a kernel at its first launch would spoil a stricter
 * one. */

tssa_status *graph_capture(struct card *card, graph_fill *fill, void *data, struct graph *graph)
{
    TRY(CARD(card, cuStreamBeginCapture_v2, card->stream, CUDA_CAPTURE_RELAXED));
    tssa_status *status = fill(card, card->stream, data);
    tssa_status *ended = CARD(card, cuStreamEndCapture, card->stream, &graph->graph);
    if (!status)
        return ended;
    tssa_status_free(ended);
    return status;
}

tssa_status *graph_instantiate(struct card *card, struct graph *graph)
{
    return CARD(card, cuGraphInstantiateWithFlags, &graph->exec, graph->graph, 0);
}

tssa_status *graph_make(struct card *card, graph_fill *fill, void *data, struct graph *graph)
{
    TRY(graph_capture(card, fill, data, graph));
    return graph_instantiate(card, graph);
}

tssa_status *graph_run(struct card *card, void *data)
{
    struct graph *graph = data;
    TRY(CARD(card, cuGraphLaunch, graph->exec, card->stream));
    return card_sync(card);
}

/* Where a stream's capture is: its graph, and what the next node has to wait for. */
struct frontier {
    cuda_graph graph;
    const cuda_node *nodes;
    const void *edges;
    size_t count;
};

static tssa_status *find_frontier(struct card *card, cuda_stream stream, struct frontier *frontier)
{
    unsigned state;
    TRY(CARD(card, cuStreamGetCaptureInfo_v3, stream, &state, NULL, &frontier->graph,
             &frontier->nodes, &frontier->edges, &frontier->count));
    if (state != CUDA_CAPTURE_ACTIVE)
        return ERROR(TSSA_RUNTIME, "the capture has ended by itself");
    return NULL;
}

tssa_status *graph_condition(struct card *card, cuda_stream stream, cuda_condition *condition)
{
    struct frontier frontier;
    TRY(find_frontier(card, stream, &frontier));
    return CARD(card, cuGraphConditionalHandleCreate, condition, frontier.graph, card->context, 0,
                CUDA_CONDITION_ASSIGN_DEFAULT);
}

static tssa_status *add_node(struct card *card, cuda_stream stream, unsigned type,
                             cuda_condition condition, cuda_graph *body)
{
    struct frontier frontier;
    struct cuda_node_parameters parameters = {.type = CUDA_NODE_CONDITIONAL};
    cuda_node node;
    parameters.conditional.handle = condition;
    parameters.conditional.type = type;
    parameters.conditional.size = 1;
    parameters.conditional.context = card->context;
    TRY(find_frontier(card, stream, &frontier));
    TRY(CARD(card, cuGraphAddNode_v2, &node, frontier.graph, frontier.nodes, frontier.edges,
             frontier.count, &parameters));
    *body = parameters.conditional.bodies[0];
    return CARD(card, cuStreamUpdateCaptureDependencies_v2, stream, &node, NULL, 1,
                CUDA_DEPENDENCIES_SET);
}

tssa_status *graph_conditional(struct card *card, cuda_stream stream, unsigned type,
                               cuda_condition condition, graph_fill *fill, void *data,
                               cuda_graph *body)
{
    cuda_stream inner;
    TRY(add_node(card, stream, type, condition, body));
    TRY(CARD(card, cuStreamCreate, &inner, CUDA_STREAM_NON_BLOCKING));
    TRY(CARD(card, cuStreamBeginCaptureToGraph, inner, *body, NULL, NULL, 0, CUDA_CAPTURE_RELAXED));
    tssa_status *status = fill(card, inner, data);
    cuda_graph same;
    tssa_status *ended = CARD(card, cuStreamEndCapture, inner, &same);
    if (!status)
        return ended;
    tssa_status_free(ended);
    return status;
}

static const char *kind_name(unsigned type)
{
    static const char *const names[] = {
        "kernel",       "memcpy",      "memset",       "host",       "child graph",
        "empty",        "event wait",  "event record", "semaphore",  "semaphore",
        "memory alloc", "memory free", "batch mem op", "conditional"};
    return type < sizeof names / sizeof *names ? names[type] : "unknown";
}

static void write_kinds(const size_t *counts, size_t kinds, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned type = 0; type < kinds; type++) {
        if (counts[type] && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%zu %s", used ? ", " : "",
                                     counts[type], kind_name(type));
    }
}

tssa_status *graph_kinds(struct card *card, cuda_graph graph, char *text, size_t size)
{
    enum { KINDS = 32 };
    size_t counts[KINDS] = {0}, count = 0;
    TRY(CARD(card, cuGraphGetNodes, graph, NULL, &count));
    cuda_node *nodes = calloc(count + 1, sizeof *nodes);
    TRY_ALLOC(nodes);
    tssa_status *status = CARD(card, cuGraphGetNodes, graph, nodes, &count);
    for (size_t i = 0; i < count && !status; i++) {
        unsigned type;
        status = CARD(card, cuGraphNodeGetType, nodes[i], &type);
        if (!status)
            counts[type < KINDS ? type : KINDS - 1]++;
    }
    free(nodes);
    write_kinds(counts, KINDS, text, size);
    return status;
}
