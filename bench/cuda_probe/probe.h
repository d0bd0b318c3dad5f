/* SPDX-License-Identifier: Apache-2.0 */
/* A probe asks the card one question. probes.def lists them; this is all that they share. */
#ifndef TSSA_CUDA_PROBE_PROBE_H
#define TSSA_CUDA_PROBE_PROBE_H

#include "bench/cuda_probe/card.h"
#include "bench/cuda_probe/record.h"
#include "bench/cuda_probe/stopwatch.h"

/* Asks, and writes the answer with record_*(). */
typedef tssa_status *probe_function(struct card *card, FILE *out);

#define PROBE(name, question) probe_function probe_##name;
#include "bench/cuda_probe/probes.def"
#undef PROBE

struct probe {
    const char *name, *question;
    probe_function *ask;
};

extern const struct probe probes[];
extern const size_t probe_count;

/* By name; NULL when there is none. */
const struct probe *probe_find(const char *name);

#endif
