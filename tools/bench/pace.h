/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine is quiet: nobody else takes its cores' throughput away.
 *
 * A virtual machine's neighbours make everything up to twice as slow, for milliseconds or for
 * minutes, and steal time tells little of it: they share the cores' other hardware threads, and
 * caches. A little work that is always the same tells it, timed between the calls that are
 * measured. What is timed between two quiet readings can be repeated; what is not says more about
 * the neighbours (bench/README.md, and bench/peers/pace.py, which waits where this only says so).
 */
#ifndef TSSA_BENCH_PACE_H
#define TSSA_BENCH_PACE_H

#include <stdbool.h>
#include <stddef.h>

#define PACE_TOLERANCE 1.15 /* of the quiet reading; a busy sibling of a core: 1.3 to 1.4 */

/* Microseconds of the work, on the core that the caller runs on: the better of two, because the
 * first after a long call is slower on a quiet core, too. Takes about 20 us. Any thread. */
double pace_read(void);

struct pace {
    double *readings; /* in the order in which they came */
    size_t count, capacity;
};

/* All zero at first. False when memory runs out. */
bool pace_note(struct pace *pace, double reading);
/* Reads for some 20 ms, before anything is measured. */
bool pace_learn(struct pace *pace);
/* The best of all readings but the odd one in a hundred; 0: there are none. */
double pace_quiet(const struct pace *pace);
void pace_free(struct pace *pace);

#endif
