/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check: does the rewritten model give what the original gives?
 *
 * Both run in tssa's interpreter on the same inputs: those recorded beside the model first, then random
 * ones. Random inputs have to suit the model: where the original refuses them, tamer ones are tried.
 */
#ifndef TSSA_TOOLS_CHECK_H
#define TSSA_TOOLS_CHECK_H

#include <stdio.h>

#include "tools/common/arguments.h"
#include "tools/common/compare.h"

struct check_options {
    const char
        *path;    /* of the original model; its folder may hold recorded inputs; "-": it has none */
    int64_t sets; /* of random inputs */
    const struct input_source *source; /* shapes, dims and the seed */
    struct compare_rule rule;
    unsigned timeout; /* seconds that a run may take; 0: no limit */
    bool quiet;       /* tells of differences alone */
    FILE *out;        /* where all that is told goes */
};

/* Names, kinds and element types of inputs and outputs; an error says which is not the same. */
tssa_status *check_signatures(const tssa_model *original, const tssa_model *rewritten);

/* Tells a line per output. *same is false when one differs, or the rewritten model fails where the
 * original runs. An error is something that keeps the check from being made. Neither model is optimized
 * here. */
tssa_status *check_models(tssa_context *context, tssa_model *original, tssa_model *rewritten,
                          const struct check_options *options, bool *same);

#endif
