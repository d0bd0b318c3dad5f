/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver's graphs. Work that a stream captures becomes nodes; they run in a random order
 * that their edges allow, so that a missing edge shows. What is made here lives until the process
 * ends.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

enum { NODE_LIMIT = 4096, BEFORE_LIMIT = 4, CONDITION_LIMIT = 1 << 14 };

struct CUgraphNode_st {
    struct fake_work work;
    size_t index;                   /* in its graph */
    cuda_node before[BEFORE_LIMIT]; /* what must have run */
    size_t before_count;
};

struct CUgraph_st {
    cuda_node nodes[NODE_LIMIT];
    size_t count;
    cuda_node last[BEFORE_LIMIT]; /* while it is being captured: what comes next is after these */
    size_t last_count;
    bool is_body; /* of a conditional node, whose it is */
};

struct CUgraphExec_st {
    cuda_graph graph;
};

/* ---- Running --------------------------------------------------------------------------------- */

static unsigned condition_values[CONDITION_LIMIT], condition_defaults[CONDITION_LIMIT];
static unsigned condition_count;

void fake_set_condition(cuda_condition handle, unsigned value)
{
    if (handle < condition_count)
        condition_values[handle] = value;
    else
        fake_break(FAKE_LAUNCH_FAILED);
}

static bool is_ready(cuda_node node, const char *done)
{
    for (size_t i = 0; i < node->before_count; i++)
        if (!done[node->before[i]->index])
            return false;
    return true;
}

static void run_graph(cuda_graph graph)
{
    char done[NODE_LIMIT + 1] = {0};
    for (size_t left = graph->count; left > 0;) {
        size_t i = (size_t)rand() % graph->count;
        if (done[i] || !is_ready(graph->nodes[i], done))
            continue;
        const unsigned result = fake_do(&graph->nodes[i]->work);
        if (result != FAKE_OK)
            fake_break(result);
        done[i] = 1;
        left--;
    }
}

void fake_do_condition(const struct fake_work *work)
{
    const unsigned *value = &condition_values[work->condition];
    if (work->condition_type == CUDA_CONDITION_WHILE) {
        while (*value && fake_context_state() == FAKE_OK)
            run_graph(work->bodies[0]);
    } else if (*value || work->body_count > 1) {
        run_graph(work->bodies[*value ? 0 : 1]);
    }
}

void fake_do_graph(cuda_graph graph)
{
    memcpy(condition_values, condition_defaults, condition_count * sizeof *condition_values);
    run_graph(graph);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static unsigned add_node(cuda_graph graph, cuda_node node, const cuda_node *before, size_t count)
{
    EXPECT(graph->count < NODE_LIMIT && count <= BEFORE_LIMIT);
    for (size_t i = 0; i < count; i++)
        EXPECT(before[i]->index < graph->count && graph->nodes[before[i]->index] == before[i]);
    if (count)
        memcpy(node->before, before, count * sizeof *before);
    node->before_count = count;
    node->index = graph->count;
    graph->nodes[graph->count++] = node;
    return FAKE_OK;
}

unsigned fake_capture(cuda_stream stream, const struct fake_work *work)
{
    cuda_graph graph = *fake_capturing(stream);
    cuda_node node = fake_hold(sizeof *node);
    node->work = *work;
    const unsigned result = add_node(graph, node, graph->last, graph->last_count);
    graph->last[0] = node;
    graph->last_count = 1;
    return result;
}

bool fake_is_body(cuda_graph graph)
{
    return graph && graph->is_body;
}

FAKE(cuGraphDestroy, cuda_graph graph)
{
    ENTER();
    EXPECT(graph);
    fake_count(-1);
    return planned_;
}

FAKE(cuGraphInstantiateWithFlags, cuda_graph_exec *exec, cuda_graph graph, unsigned long long flags)
{
    IN_CONTEXT();
    EXPECT(flags == 0);
    *exec = fake_hold(sizeof **exec);
    (*exec)->graph = graph;
    fake_count(1);
    return FAKE_OK;
}

FAKE(cuGraphLaunch, cuda_graph_exec exec, cuda_stream stream)
{
    IN_CONTEXT();
    const struct fake_work work = {.kind = FAKE_GRAPH, .graph = exec->graph};
    return fake_push(stream, &work);
}

FAKE(cuGraphExecDestroy, cuda_graph_exec exec)
{
    EXPECT(exec);
    fake_count(-1);
    return FAKE_OK;
}

FAKE(cuGraphGetNodes, cuda_graph graph, cuda_node *nodes, size_t *count)
{
    PLANNED();
    if (nodes) {
        EXPECT(*count >= graph->count);
        memcpy(nodes, graph->nodes, graph->count * sizeof *nodes);
    }
    *count = graph->count;
    return FAKE_OK;
}

FAKE(cuGraphNodeGetType, cuda_node node, unsigned *type)
{
    static const unsigned types[] = {[FAKE_LAUNCH] = CUDA_NODE_KERNEL,
                                     [FAKE_COPY] = CUDA_NODE_MEMCPY,
                                     [FAKE_FILL] = CUDA_NODE_MEMSET,
                                     [FAKE_CONDITION] = CUDA_NODE_CONDITIONAL};
    EXPECT(node->work.kind <= FAKE_CONDITION);
    *type = types[node->work.kind];
    return FAKE_OK;
}

/* ---- Capturing ------------------------------------------------------------------------------- */

static unsigned begin(cuda_stream stream, cuda_graph graph)
{
    EXPECT(!*fake_capturing(stream));
    graph->last_count = 0;
    *fake_capturing(stream) = graph;
    return FAKE_OK;
}

FAKE(cuStreamBeginCapture_v2, cuda_stream stream, unsigned mode)
{
    (void)mode;
    IN_CONTEXT();
    return begin(stream, fake_hold(sizeof(struct CUgraph_st)));
}

/* Where it fails, too, nothing is captured any more. */
FAKE(cuStreamEndCapture, cuda_stream stream, cuda_graph *graph)
{
    ENTER();
    EXPECT(*fake_capturing(stream));
    *graph = planned_ ? NULL : *fake_capturing(stream);
    *fake_capturing(stream) = NULL;
    if (*graph && !(*graph)->is_body)
        fake_count(1);
    return planned_;
}

#ifndef FAKE_CUDA_OLD

FAKE(cuStreamBeginCaptureToGraph, cuda_stream stream, cuda_graph graph, const cuda_node *before,
     const void *edges, size_t count, unsigned mode)
{
    (void)before;
    (void)edges;
    (void)mode;
    IN_CONTEXT();
    EXPECT(count == 0 && graph->is_body && graph->count == 0);
    return begin(stream, graph);
}

FAKE(cuStreamGetCaptureInfo_v3, cuda_stream stream, unsigned *status, unsigned long long *id,
     cuda_graph *graph, const cuda_node **before, const void **edges, size_t *count)
{
    PLANNED();
    cuda_graph capturing = *fake_capturing(stream);
    *status = capturing ? CUDA_CAPTURE_ACTIVE : 0;
    if (id)
        *id = 1;
    if (graph)
        *graph = capturing;
    if (before)
        *before = capturing ? capturing->last : NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = capturing ? capturing->last_count : 0;
    return FAKE_OK;
}

FAKE(cuStreamUpdateCaptureDependencies_v2, cuda_stream stream, cuda_node *nodes, const void *edges,
     size_t count, unsigned flags)
{
    (void)edges;
    cuda_graph graph = *fake_capturing(stream);
    EXPECT(graph && flags == CUDA_DEPENDENCIES_SET && count <= BEFORE_LIMIT);
    memcpy(graph->last, nodes, count * sizeof *nodes);
    graph->last_count = count;
    return FAKE_OK;
}

static cuda_graph condition_graphs[CONDITION_LIMIT]; /* that the node must be in */

FAKE(cuGraphConditionalHandleCreate, cuda_condition *handle, cuda_graph graph, cuda_context context,
     unsigned initial, unsigned flags)
{
    (void)flags;
    PLANNED();
    EXPECT(graph && context && condition_count < CONDITION_LIMIT);
    condition_graphs[condition_count] = graph;
    condition_defaults[condition_count] = initial;
    *handle = condition_count++;
    return FAKE_OK;
}

FAKE(cuGraphAddNode_v2, cuda_node *node, cuda_graph graph, const cuda_node *before,
     const void *edges, size_t count, struct cuda_node_parameters *parameters)
{
    (void)edges;
    PLANNED();
    EXPECT(parameters->type == CUDA_NODE_CONDITIONAL);
    EXPECT(parameters->conditional.size >= 1 && parameters->conditional.size <= 2);
    EXPECT(parameters->conditional.type != CUDA_CONDITION_WHILE ||
           parameters->conditional.size == 1);
    EXPECT(parameters->conditional.handle < condition_count &&
           condition_graphs[parameters->conditional.handle] == graph);
    cuda_node made = fake_hold(sizeof *made);
    made->work.kind = FAKE_CONDITION;
    made->work.condition = parameters->conditional.handle;
    made->work.condition_type = parameters->conditional.type;
    made->work.body_count = parameters->conditional.size;
    for (unsigned i = 0; i < made->work.body_count; i++) {
        made->work.bodies[i] = fake_hold(sizeof(struct CUgraph_st));
        made->work.bodies[i]->is_body = true;
    }
    parameters->conditional.bodies = made->work.bodies;
    *node = made;
    return add_node(graph, made, before, count);
}

#endif
