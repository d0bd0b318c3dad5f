/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of several threads at once. */
#ifndef TSSA_BENCH_CONCURRENCY_H
#define TSSA_BENCH_CONCURRENCY_H

#include "tools/bench/measure.h"

/* What a thread calls, and what became of it. */
struct crew_member {
    const struct callee *callee;
    size_t first;        /* set of inputs */
    double *nanoseconds; /* `count` places */
    size_t done;
    double pace;             /* the slower reading of before and after */
    uint64_t started, ended; /* its calls */
};

/*
 * Starts a thread per member, waits until all are there, and lets each make up to `count` calls for
 * `nanoseconds`. The first error of a member is returned when all have ended; TSSA_LIMIT when a
 * thread cannot be started.
 */
tssa_status *crew_run(struct crew_member *members, size_t n, size_t count, uint64_t nanoseconds);

#endif
