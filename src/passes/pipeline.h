/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager: which passes run at which level, with dumps and checks between them. */
#ifndef TSSA_PASSES_PIPELINE_H
#define TSSA_PASSES_PIPELINE_H

#include "ir/fuse.h"
#include "passes/pass.h"

#define PIPELINE_MAX_LEVEL 2

struct pipeline {
    const tssa_optimize_options *options; /* NULL: the level's passes, no dumps, no remarks */
    pass_evaluate_fn evaluate;            /* for constant folding; NULL: none */
    void *evaluate_user;
    struct pass_batching batching;
    /* Does a library compute `convolve` (ir/convolve.h)? Asked only where that matters, since it
     * may open the library. NULL: no. */
    bool (*convolves)(void);
    const struct ir_fusion *fusion; /* NULL: levels fuse nothing; by name, `fuse` takes any op */
    /* Where *raised is NULL, a level that lowers rules puts a copy of the graph there
     * (ir_clone_graph) as it is before, and fused by nobody: pipeline_finish. NULL: nobody asks. */
    struct ir_graph **raised;
};

/*
 * Runs the passes of an optimization level over a verified and inferred graph, or those that
 * options->passes names. `pipeline` may be NULL. The level in the options is not read.
 * The verifier runs after every pass in debug builds, and on request.
 */
tssa_status *pipeline_run(struct ir_graph *graph, int level, const struct pipeline *pipeline);
/*
 * What is left of the level when its passes have been run over a graph, *pipeline.raised, and what
 * may become kernels is fused or not: rules are lowered and so on, so that nothing is there in the
 * end that no kernel takes. Options and evaluation as before.
 */
tssa_status *pipeline_finish(struct ir_graph *graph, const struct pipeline *pipeline);
/* Runs passes by name, in order. */
tssa_status *pipeline_run_passes(struct ir_graph *graph, const char *const *names, size_t count,
                                 const struct pipeline *pipeline);

/* What a level runs; see tssa_stage. */
size_t pipeline_stage_count(int level);
tssa_stage_info pipeline_stage(int level, size_t index);

#endif
