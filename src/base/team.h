/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread team: parallel loops over index ranges.
 *
 * There is one way to be parallel, OpenMP, because oneDNN's Debian package brings its OpenMP
 * runtime along and two teams that spin slow each other down many times over. OpenMP lives in a
 * plugin that is opened when the first team with more than one thread is made (team_open), never in
 * libtssa itself; a team without the plugin runs serially.
 *
 * OpenMP reads its environment when it is opened. On a machine whose threads should stay where they
 * are, set OMP_PROC_BIND=true before that: an unbound second thread may take milliseconds to start.
 * Programs do that in main; a library has no business with the environment.
 *
 * Results never depend on the number of threads: a body must compute each index on its own.
 */
#ifndef TSSA_BASE_TEAM_H
#define TSSA_BASE_TEAM_H

#include <sched.h>
#include <stdint.h>

/* Where the OpenMP team lives: the symbol is a function like `parallel_for` below. */
#define TEAM_PLUGIN "tssa-openmp"
#define TEAM_PLUGIN_SYMBOL "tssa_plugin_parallel_for"

/* Computes indices begin <= i < end. */
typedef void (*team_body)(void *context, int64_t begin, int64_t end);

struct team {
    int threads;
    /* Those of the thread that made the team, before OpenMP bound it to one of them: what processes
     * that it starts may run on. None: not known. */
    cpu_set_t processors;
    /* Runs body over [0, count) in `threads` contiguous parts; NULL: serial only. */
    void (*parallel_for)(int threads, int64_t count, team_body body, void *context);
};

/*
 * A team of `threads` threads (at least 1). Opens the OpenMP plugin on first use; where it cannot
 * be opened, the team is serial and everything still works.
 */
void team_open(struct team *team, int threads);

/* Splits [0, count) when count >= 2 * grain, so that each part has at least `grain` indices;
 * otherwise stays on the calling thread. A NULL team is serial. */
static inline void team_for(const struct team *team, int64_t count, int64_t grain, team_body body,
                            void *context)
{
    if (count <= 0)
        return;
    if (!team || !team->parallel_for || team->threads < 2 || count / 2 < grain) {
        body(context, 0, count);
        return;
    }
    int64_t parts = count / (grain > 0 ? grain : 1);
    team->parallel_for(parts < team->threads ? (int)parts : team->threads, count, body, context);
}

#endif
