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

/* On a device that records runs (runtime/recorded.h), so many run states are kept for as many
 * shapes of inputs that come again; and of so many latest runs it is known which they had. */
enum { GENERATION_STATES = 4, GENERATION_SEEN = 16 };

/* A run state that no run has, and the shapes of its latest one. */
struct idle_run {
    struct run *run;
    uint64_t shapes;
};

/* The session's lock guards what changes while the session runs: placed, idle, seen, out, retired
 * and profile. */
struct generation {
    const tssa_allocator *allocator;
    struct ir_graph *graph; /* the plan's, where it is not the model's */
    struct plan *plan;
    bool placed; /* the plan is (plan_place): when its first run begins, if not before */
    VEC(struct idle_run) idle;      /* the latest one last */
    uint64_t seen[GENERATION_SEEN]; /* 0: none yet */
    uint32_t n_seen;                /* in turns */
    unsigned out;                   /* runs under way */
    bool retired;                   /* no run begins any more */
    struct step_profile *profile;   /* sums over finished runs; NULL: off */
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
/* Makes a state for the first run, if nothing but inputs is needed to know what its values take.
 * It stops where `stop` is set. */
tssa_status *generation_get_ready(struct generation *generation, const struct team *team,
                                  const atomic_bool *stop);
/* A state for a run whose inputs have these shapes, a hash; NULL: a new one is to be made. The run
 * is `out` already. */
struct run *generation_take(struct generation *generation, uint64_t shapes);
/* False: there is no room for it. */
bool generation_give(struct generation *generation, struct run *run, uint64_t shapes);
/* Does it matter which state a run has? */
bool generation_records(const struct generation *generation);
/* When no run of it is under way. NULL is accepted. */
void generation_free(struct generation *generation);

#endif
