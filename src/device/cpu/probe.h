/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core of this machine takes for a few things that are always the same, so that rates that
 * were chosen on one machine (gir/estimate.h) can be told for another: each as its probe compares.
 *
 * Threads: measures on the calling one, some 60 ms, of which others that run make it no faster: of
 * several times the least counts.
 */
#ifndef TSSA_DEVICE_CPU_PROBE_H
#define TSSA_DEVICE_CPU_PROBE_H

#include "base/alloc.h"
#include "gir/estimate.h"

struct cpu_probe {
    double bytes[GIR_LEVELS];   /* of caches of one core alone; 0: nobody says, or it is none */
    double pace;                /* of integer operations, one after the other */
    double operation, division; /* on a vector register */
    double read[GIR_LEVELS], written[GIR_LEVELS]; /* a byte */
};

/* Nanoseconds. False: there is not the memory for it. */
bool cpu_probe(const tssa_allocator *allocator, struct cpu_probe *probe);

/* `rates`, which were chosen where `there` was found, as they are where `here` was. */
void cpu_probe_scale(const struct cpu_probe *there, const struct cpu_probe *here,
                     struct gir_rates *rates);

#endif
