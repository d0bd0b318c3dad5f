/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of a session, with the run states that its runs take turns with. A session whose kernels
 * are compiled in the background has two, one after the other: the first lives until its last run
 * ends.
 */
#ifndef TSSA_API_GENERATION_H
#define TSSA_API_GENERATION_H

#include "base/vec.h"
#include "runtime/executor.h"
#include "runtime/profile.h"

/* The session's lock guards what changes while the session runs: placed, idle, out, retired and
 * profile. */
struct generation {
    const tssa_allocator *allocator;
    struct ir_graph *graph; /* the plan's, where it is not the model's */
    struct plan *plan;
    bool placed; /* the plan is (plan_place): when its first run begins, if not before */
    VEC(struct run *) idle;
    unsigned out;                 /* runs under way */
    bool retired;                 /* no run begins any more */
    struct step_profile *profile; /* sums over finished runs; NULL: off */
};

/* What its runs do besides: as in tssa_session_options. */
struct generation_extras {
    bool profile, poison;
};

/* Takes `own`, the graph or NULL, on failure too. */
tssa_status *generation_create(const struct ir_graph *graph, struct ir_graph *own,
                               struct device_context *device, struct generation_extras extras,
                               struct generation **generation);
/* Places the plan, if nobody has. */
tssa_status *generation_place(struct generation *generation);
/* When no run of it is under way. NULL is accepted. */
void generation_free(struct generation *generation);

#endif
