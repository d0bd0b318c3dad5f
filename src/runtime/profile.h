/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of a session's runs took. One walk over them, profile_visit, serves every reader;
 * one is here: Chrome trace events (chrome://tracing, Perfetto), one complete event ("ph": "X") per
 * step. The steps of a loop body appear once, inside their loop's event, with their total time and
 * count.
 */
#ifndef TSSA_RUNTIME_PROFILE_H
#define TSSA_RUNTIME_PROFILE_H

#include "runtime/executor.h"

/* total += run, and empties `run`. */
void profile_add(const struct plan *plan, struct step_profile *total, struct step_profile *run);

/* A step that was run. */
struct profile_entry {
    const struct ir_op *op;
    const struct profile_entry *around; /* the control flow that it is in; NULL: the main graph */
    const struct step_profile *time;
    uint64_t start;  /* nanoseconds since the first step, if each ran once and for all its time */
    uint64_t nested; /* nanoseconds of the steps in its own blocks */
    uint32_t step;   /* its number */
};

typedef tssa_status *profile_visitor(void *user, const struct profile_entry *entry);

/* Visits every step that was run, in the order of the plan, control flow before what is in it. */
tssa_status *profile_visit(const struct plan *plan, const struct step_profile *profile,
                           profile_visitor *visit, void *user);
tssa_status *profile_write(const struct plan *plan, const struct step_profile *profile,
                           void (*write)(void *user, const char *text, size_t size), void *user);

#endif
