/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for people (standard output) and for programs (JSON). */
#ifndef TSSA_CUDA_PROBE_REPORT_H
#define TSSA_CUDA_PROBE_REPORT_H

#include "bench/cuda_probe/run.h"

void report_print(struct answer *answer);

/* One object: {"program", "date", "probes": [{"name", "question", "seconds", "failure", "figures":
 * [{"name", "value", "least", "unit"}], "facts": {NAME: TEXT}}]}. `end` closes it. */
void report_json_begin(FILE *out);
void report_json(FILE *out, struct answer *answer, bool first);
void report_json_end(FILE *out);

#endif
