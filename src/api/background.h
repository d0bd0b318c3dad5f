/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that makes the second plan of a session, with kernels. It holds no lock at any time
 * and writes nothing that a run reads before it is done: a process that is forked meanwhile has all
 * that it needs to go on without it.
 */
#ifndef TSSA_API_BACKGROUND_H
#define TSSA_API_BACKGROUND_H

#include "api/generation.h"
#include "api/handles.h"

struct background;

/* Of session_graph_clone's, which it takes, on failure too, and fuses unless it is. NULL: no thread
 * can be had. */
struct background *background_start(struct ir_graph *graph, bool fused,
                                    struct device_context *device, struct generation_extras extras);
/* Costs nothing; any thread. */
bool background_is_done(const struct background *background);

/* What has become of it. */
struct background_result {
    struct generation *generation; /* NULL: there is nothing to run by; owned by who is given it */
    struct compile_report report;
    tssa_status *status; /* what failed; owned */
    uint64_t nanoseconds;
};

/* When it is done: ends it. */
void background_take(struct background *background, struct background_result *result);
/* Ends it, done or not, at the next kernel at the latest. In a process that was forked meanwhile it
 * is gone already, and what it had is lost. NULL is accepted. */
void background_stop(struct background *background);

#endif
