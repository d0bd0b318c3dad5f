/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe in a process of its own, with a time limit: one that crashes, hangs, or leaves the
 * context broken (as a fault on the card does) takes nothing from the others.
 */
#ifndef TSSA_CUDA_PROBE_RUN_H
#define TSSA_CUDA_PROBE_RUN_H

#include "bench/cuda_probe/probe.h"

struct answer {
    const struct probe *probe;
    FILE *records; /* at its start; the caller closes it */
    double seconds;
    char *failure; /* why there is no (whole) answer, or NULL; owned */
    bool no_card;  /* the card could not even be opened */
};

/* Ctrl-C ends the probe that runs, and what was found until then is still reported: call this once,
 * at the start, and ask before each probe. */
void run_hold_interrupts(void);
bool run_interrupted(void);

/* The status is about starting a process; what goes wrong in it is the answer's failure. */
tssa_status *run_probe(const struct probe *probe, double limit, struct answer *answer);
void run_answer_free(struct answer *answer);

#endif
