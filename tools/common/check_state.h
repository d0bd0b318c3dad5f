/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a check share: check.c compares and tells, check_sets.c makes the inputs. */
#ifndef TSSA_TOOLS_CHECK_STATE_H
#define TSSA_TOOLS_CHECK_STATE_H

#include "tools/common/check.h"

#define CHECK_SET_NAME 128

/* The worst that was seen of an output, over all sets. */
struct tally {
    struct compare_report worst;
    char set[CHECK_SET_NAME]; /* where that was */
    bool differs;
};

enum set_outcome {
    SET_COMPARED,
    /* the original does not give the same twice, or for inputs a little beside: that proves
     * nothing */
    SET_UNSTABLE,
    SET_REFUSED, /* by the original: other inputs may do */
    SET_CUT      /* time was up before both had run */
};

struct check {
    tssa_context *context;
    const tssa_model *original;
    struct check_engine *engine;
    const struct check_options *options;
    double end; /* of the time that all runs may take, by clock_seconds */
    size_t n_outputs;
    struct tally *tallies;
    tssa_value **outputs[3]; /* of the original, of the rewritten, of the original once more */
    struct check_sets {
        size_t recorded, random;             /* were compared */
        size_t unstable, refused, unreached; /* were not, and why */
        int64_t dim, number; /* the largest random dim that was compared, and integer by itself */
    } sets;
    size_t memory[2];   /* of the run in which the new model took most */
    char why[512];      /* the original's last refusal */
    tssa_status *error; /* ends the check */
    bool made_up;       /* the inputs at hand are random */
    bool hopeless;      /* the engine cannot run the original, whatever the inputs are */
    bool failed;        /* the new model failed where the original ran, or takes too much */
};

/*
 * Runs both. The original gets `seconds` at most, and beyond what is held `memory` (0: no limit).
 */
enum set_outcome check_run(struct check *check, const char *set, const struct run_inputs *inputs,
                           double seconds, size_t memory);
/* Seconds that are left for runs. */
double check_time_left(const struct check *check);
/* Whether what was seen, an error, a signal or the time keeps other sets from being run. */
bool check_is_over(const struct check *check);
/* Keeps the reason why inputs did not do, and frees it. */
void check_refuse(struct check *check, tssa_status *status);

/* Frees outputs[which]. */
void check_clear(struct check *check, int which);

/* In check_sensitive.c: where outputs[0] and outputs[1] differ, do the original's own results on
 * nudged inputs differ about as much? Uses outputs[2]. */
bool check_is_sensitive(struct check *check, const struct run_inputs *inputs);

/* In check_sets.c. Both count sets, outcome by outcome. */
tssa_status *check_recorded(struct check *check);
void check_random(struct check *check);

#endif
