/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/graph.h"
#include "bench/cuda_probe/probe.h"

struct chain {
    cuda_function kernel;
    int count;
};

static tssa_status *fill(struct card *card, cuda_stream stream, void *data)
{
    struct chain *chain = data;
    for (int i = 0; i < chain->count; i++)
        TRY(CARD_LAUNCH(card, stream, chain->kernel, 1, 1, NULL));
    return NULL;
}

/* The call alone: waited for outside of the clock. */
static tssa_status *time_call(struct card *card, struct graph *graph, double *least)
{
    enum { ROUNDS = 50 };
    *least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = stopwatch_now();
        TRY(CARD(card, cuGraphLaunch, graph->exec, card->stream));
        double seconds = stopwatch_now() - start;
        *least = seconds < *least ? seconds : *least;
        TRY(card_sync(card));
    }
    return NULL;
}

static tssa_status *ask(struct card *card, FILE *out, struct chain *chain)
{
    struct graph graph;
    struct timing timing;
    double least, start = stopwatch_now();
    TRY(graph_capture(card, fill, chain, &graph));
    record_figure(out, (stopwatch_now() - start) * 1e6, "us", "capture, %d kernels", chain->count);
    start = stopwatch_now();
    TRY(graph_instantiate(card, &graph));
    record_figure(out, (stopwatch_now() - start) * 1e6, "us", "instantiate, %d kernels",
                  chain->count);
    start = stopwatch_now();
    TRY(graph_run(card, &graph));
    record_figure(out, (stopwatch_now() - start) * 1e6, "us", "first launch and wait, %d kernels",
                  chain->count);
    TRY(time_call(card, &graph, &least));
    record_figure(out, least * 1e6, "us", "the call alone, %d kernels, least of 50", chain->count);
    TRY(stopwatch_time(card, graph_run, &graph, 1, &timing));
    record_timing(out, timing, "launch and wait, %d kernels", chain->count);
    return NULL;
}

tssa_status *probe_graph_launch(struct card *card, FILE *out)
{
    static const int counts[] = {1, 10, 100};
    struct chain chain;
    TRY(card_kernel(card, KERNELS_BASIC, "empty", &chain.kernel));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        chain.count = counts[i];
        TRY(ask(card, out, &chain));
    }
    return NULL;
}
