/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager: which passes run at which level, with dumps and checks between them. */
#ifndef TSSA_PASSES_PIPELINE_H
#define TSSA_PASSES_PIPELINE_H

#include "passes/pass.h"

/*
 * Runs the passes of an optimization level over a verified and inferred graph: none at level 0, those
 * that cannot change a result's bits from level 1. `options` may be NULL; its own level is not read.
 * The verifier runs after every pass in debug builds, and on request.
 */
tssa_status *pipeline_run(struct ir_graph *graph, int level, const tssa_optimize_options *options);
/* Runs passes by name, in order. */
tssa_status *pipeline_run_passes(struct ir_graph *graph, const char *const *names, size_t count,
                                 const tssa_optimize_options *options);

#endif
