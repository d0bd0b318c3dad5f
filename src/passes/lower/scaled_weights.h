/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that fold_scales has made of others, by what they were made of. A session's graph is a
 * copy of what the model's was (ir_graph.source), and takes the same factors into the same weights:
 * it finds those that the model's has, which would be there twice.
 */
#ifndef TSSA_PASSES_LOWER_SCALED_WEIGHTS_H
#define TSSA_PASSES_LOWER_SCALED_WEIGHTS_H

#include "passes/lower/fold_scales.h"

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

#endif
