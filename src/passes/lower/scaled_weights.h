/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that fold_scales has made of others, by what they were made of. A session's graph is a
 * copy of what the model's was (ir_graph.source), and takes the same factors into the same weights:
 * it finds those that the model's has, which would be there twice.
 */
#ifndef TSSA_PASSES_LOWER_SCALED_WEIGHTS_H
#define TSSA_PASSES_LOWER_SCALED_WEIGHTS_H

#include "passes/lower/scale_chains.h"

/* A factor of each input and each output of the product. */
struct scales {
    const double *in, *out;
};

/* The product's weights times these, in the graph or in what it is a copy of; NULL: nobody has made
 * them. */
const struct tensor *scaled_weights_find(const struct ir_graph *graph, const struct product *p,
                                         const struct scales *by);
/* `made`, and the product's weights, live as long as the graph. */
tssa_status *scaled_weights_add(struct ir_graph *graph, const struct product *p,
                                const struct scales *by, const struct tensor *made);

/* What a product computes with in place of its own, in the graph's arena. */
struct scaled_weights {
    const struct tensor *w; /* NULL: its own */
    struct tensor *bias;    /* NULL: its own, or none */
    const char *obstacle;   /* why numbers of these cannot be said, or NULL */
};

/* Of what `in` does to what the product reads and `out` to what it makes, both of its type,
 * computed in double and rounded once. */
tssa_status *scaled_weights_make(struct ir_graph *graph, const struct product *p,
                                 const struct affine *in, const struct affine *out,
                                 struct scaled_weights *made);

#endif
