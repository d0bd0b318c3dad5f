/* SPDX-License-Identifier: Apache-2.0 */
/* A counted loop as a WHILE node: what an ONNX Loop would become. */
#ifndef TSSA_CUDA_PROBE_LOOP_H
#define TSSA_CUDA_PROBE_LOOP_H

#include "bench/cuda_probe/graph.h"
#include "bench/cuda_probe/stopwatch.h"

struct loop {
    int count;        /* iterations */
    graph_fill *fill; /* what each does before its condition is set; NULL: nothing */
    void *data;       /* for fill */
    /* The rest is written by loop_make. */
    struct graph graph;
    cuda_graph body;
    cuda_address left; /* iterations to come: an int */
};

tssa_status *loop_make(struct card *card, struct loop *loop);

/* Runs it once, and fails if not exactly its iterations were done. */
tssa_status *loop_check(struct card *card, struct loop *loop);

/* What an iteration costs: the time of a long loop less that of a short one. */
tssa_status *loop_time(struct card *card, graph_fill *fill, void *data, struct timing *timing);

#endif
