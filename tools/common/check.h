/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check: does the rewritten model give what the original gives, in no more than twice the memory?
 *
 * Both run on the same inputs: those recorded beside the model first, then random ones. Random
 * inputs have to suit the model: where the original refuses them, tamer ones are tried. What runs
 * the models is an engine: tssa's own sessions, or a command (check_engine.h).
 */
#ifndef TSSA_TOOLS_CHECK_H
#define TSSA_TOOLS_CHECK_H

#include <stdio.h>

#include "tools/common/arguments.h"
#include "tools/common/check_engine.h"
#include "tools/common/compare.h"

/*
 * The rewritten model takes too much when it takes more than twice the original's memory and this.
 */
#define CHECK_MEMORY_FLOOR ((size_t)64 << 20)
/* What inputs and a run of the original may take together where sizes are chosen to be large. */
#define CHECK_LARGE_MEMORY ((size_t)256 << 20)
/* Seconds, where nobody says how long a check may take. */
#define CHECK_TIMEOUT 60

struct check_options {
    const char
        *path;    /* of the original model; its folder may hold recorded inputs; "-": it has none */
    int64_t sets; /* of random inputs */
    const struct input_source *source; /* shapes, dims and the seed */
    struct compare_rule rule;
    double seconds; /* that all runs together may take */
    bool quiet;     /* tells of differences alone */
    FILE *out;      /* where all that is told goes */
};

enum check_verdict {
    CHECK_SAME, /* on all that was compared, which is something */
    CHECK_DIFFERS,
    CHECK_NOTHING /* nothing could be compared */
};

struct check_result {
    enum check_verdict verdict;
    char why[600]; /* CHECK_NOTHING: one line */
};

/* Names, kinds and element types of inputs and outputs; an error says which is not the same. */
tssa_status *check_signatures(const tssa_model *original, const tssa_model *rewritten);

/*
 * Tells in one line what was compared and what was not, and a line per output. `original` says
 * which inputs there are. An error is something that keeps the check from being made: a model that
 * the engine cannot run at all (TSSA_UNSUPPORTED), no memory, no place for a file.
 */
tssa_status *check_models(tssa_context *context, const tssa_model *original,
                          struct check_engine *engine, const struct check_options *options,
                          struct check_result *result);

#endif
