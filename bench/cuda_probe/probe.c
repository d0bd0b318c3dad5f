/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/probe.h"

#include <string.h>

const struct probe probes[] = {
#define PROBE(name, question) {#name, question, probe_##name},
#include "bench/cuda_probe/probes.def"
#undef PROBE
};
const size_t probe_count = sizeof probes / sizeof *probes;

const struct probe *probe_find(const char *name)
{
    for (size_t i = 0; i < probe_count; i++) {
        if (strcmp(probes[i].name, name) == 0)
            return &probes[i];
    }
    return NULL;
}
