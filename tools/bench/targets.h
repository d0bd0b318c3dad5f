/* SPDX-License-Identifier: Apache-2.0 */
/* The models of a command line, each with its data sets. */
#ifndef TSSA_BENCH_TARGETS_H
#define TSSA_BENCH_TARGETS_H

#include "tools/bench/arguments.h"

struct target {
    char *name; /* as the user says it, and the level where another has the same name */
    char *path; /* of the model, or "-" */
    int level;
    char **data_sets; /* folders; may be those of another target, see targets_make */
    size_t data_set_count;
    bool found;                  /* they were found beside the model, and not named */
    const struct target *lender; /* whose data sets they are; NULL: its own */
};

struct targets {
    struct target *items; /* the first is what the others are compared with */
    size_t count;
};

/*
 * A name that is a folder with a model.onnx is a model and the test_data_set_* in it, unless others
 * are named; another folder is a data set of the model before it; anything else is a model. A model
 * without data sets borrows those of the first that has any. Not EXIT_OK: it was said why.
 * targets_free them in any case.
 */
enum exit_code targets_make(const struct bench_arguments *arguments, struct targets *targets);
void targets_free(struct targets *targets);

#endif
