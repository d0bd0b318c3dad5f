/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbered jobs in child processes, so that a crash, a hang or a leak of one is a result like any
 * other.
 *
 * A child runs one job after the other. When a job kills it, or runs for too long, that job fails
 * and a new child goes on with the next. Children are forked from the caller, which must not have
 * threads.
 */
#ifndef TSSA_TESTS_WORKERS_H
#define TSSA_TESTS_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* What a job that did not return is reported with; jobs return values >= 0. */
#define WORKER_DIED (-1) /* by a signal */
#define WORKER_TIMEOUT (-2)
#define WORKER_EXITED(status) (-100 - (status))

struct workers_options {
    int workers;            /* children at a time, at least 1 */
    double timeout_seconds; /* per job */
    size_t address_space;   /* limit per child in bytes (RLIMIT_AS); 0: none */
    bool quiet;             /* children write to /dev/null instead of standard error */

    /* In the child. What it appends to `report` reaches `done`. */
    int (*job)(void *context, size_t index, struct text *report);
    /* In the parent, in the order in which jobs end. `report` is NUL-terminated; of a job that did
     * not return it says why. */
    void (*done)(void *context, size_t index, int result, const char *report, size_t size,
                 double seconds);
    void *context;
};

/*
 * Runs jobs 0 .. count-1. 0, or the number of children that ended badly between or after their
 * jobs: by a leak that a sanitizer found at exit, say. A negative number when no child could be
 * started.
 */
int workers_run(const struct workers_options *options, size_t count);

#endif
