/* SPDX-License-Identifier: Apache-2.0 */
/* Who else uses the machine's cores. */
#ifndef TSSA_BENCH_MACHINE_H
#define TSSA_BENCH_MACHINE_H

#include <stddef.h>

/* Seconds, since some beginning. */
struct machine_use {
    double wall;
    double cores; /* that all processes, the kernel and other virtual machines took, core by core */
    double own;   /* of these, this process */
};

/* From /proc/stat, in steps of 10 ms. Where there is none, nobody else uses anything. */
struct machine_use machine_read(void);

/* How many cores others had on average between two readings. */
double machine_others(const struct machine_use *before, const struct machine_use *after);

/* The most bytes of this process that were in memory at one time. */
size_t machine_rss_peak(void);

/* How often the scheduler took a core from a thread of this process that wanted to go on. */
long machine_preemptions(void);

#endif
