/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured: lanes, each a subject and how many threads run it. Lanes take turns, block by
 * block (A, B, B, A, ...), so that a machine that becomes slow becomes so for all of them; the
 * ratio of two lanes is that of blocks beside each other.
 */
#ifndef TSSA_BENCH_LANE_H
#define TSSA_BENCH_LANE_H

#include "tools/bench/machine.h"
#include "tools/bench/pace.h"
#include "tools/bench/samples.h"
#include "tools/bench/subject.h"

struct lane {
    struct subject *subject;
    struct caller *callers; /* one per thread */
    size_t concurrency;
    size_t baseline; /* index of the lane that it is compared with; its own: none */
    struct samples samples;
    double expected_ns; /* of a call, by the best block of the warm-up */
};

struct lanes {
    struct lane *items;
    size_t count;
    size_t group; /* lanes beside each other that differ in the model alone */
    struct pace pace;
    bool crowded;                     /* more threads than cores: they preempt each other */
    struct machine_use before, after; /* what is measured */
    size_t rss_before;                /* the peak before memory for samples was reserved */
};

/* The first run of each subject was made. lanes_free in any case. */
tssa_status *lanes_add(struct lanes *lanes, struct subject *subject, size_t concurrency,
                       size_t baseline);
void lanes_free(struct lanes *lanes);

/* Warms up and measures, until enough was measured or interrupt_came(). After an error, too, the
 * samples hold what was measured. */
tssa_status *lanes_measure(struct lanes *lanes, const struct bench_arguments *arguments);

#endif
