/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing calls. The clock is read twice per call, and nothing else happens in between; what is
 * beside the call costs less than 100 ns (tests/unit/test_bench_measure.c).
 */
#ifndef TSSA_BENCH_MEASURE_H
#define TSSA_BENCH_MEASURE_H

#include <stdint.h>

#include "tssa.h"

/* What is timed, with one of its sets of inputs. `after` is not: it frees what the call gave. */
struct callee {
    tssa_status *(*call)(void *user, size_t set);
    void (*after)(void *user);
    void *user;
    size_t set_count;
};

/*
 * Calls it up to `count` times, with set `first`, the next one, ..., until the clock says
 * `deadline` (UINT64_MAX: none), and writes the nanoseconds of each call. *done is how many were
 * made, also where one failed.
 */
tssa_status *measure_calls(const struct callee *callee, size_t first, size_t count,
                           uint64_t deadline, double *nanoseconds, size_t *done);

#endif
