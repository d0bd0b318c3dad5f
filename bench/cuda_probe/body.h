/* SPDX-License-Identifier: Apache-2.0 */
/* A library's call in the body of a WHILE node: whether it may be there, and does the same. */
#ifndef TSSA_CUDA_PROBE_BODY_H
#define TSSA_CUDA_PROBE_BODY_H

#include <stdio.h>

#include "bench/cuda_probe/graph.h"

struct body_call {
    const char *name;
    graph_fill *fill; /* makes the call on a stream */
    void *data;
    cuda_address result; /* what it writes */
    size_t size;
};

/* Makes the call outside of a graph and then in a loop; records the kinds of nodes that it became,
 * whether the result has the same bits, and the time of an iteration. */
tssa_status *body_ask(struct card *card, FILE *out, struct body_call *call);

#endif
