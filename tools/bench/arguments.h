/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tssa-bench. */
#ifndef TSSA_BENCH_ARGUMENTS_H
#define TSSA_BENCH_ARGUMENTS_H

#include "tools/common/arguments.h"

#define BENCH_MAX_LIST 64

struct bench_arguments {
    struct common_arguments common;
    const char **names; /* models and data sets, as they came */
    size_t name_count;
    const char *baseline; /* a model, "O0", "O1" or "O2"; NULL: the first model */
    double warmup_ms;
    double duration;    /* seconds of runs that are counted; 0: `iterations` alone ends */
    int64_t iterations; /* runs that are counted; 0: `duration` alone ends; both: what is later */
    double percentiles[BENCH_MAX_LIST];
    size_t percentile_count;
    int64_t sets;                        /* of random inputs */
    int64_t concurrency[BENCH_MAX_LIST]; /* ascending or not; at least one */
    size_t concurrency_count;
    char *sweep; /* the dim; NULL with sizes: that of the batch; owned */
    bool sweep_batch;
    int64_t sizes[BENCH_MAX_LIST]; /* that it has in turn; none: no sweep */
    size_t size_count;
    const char *json, *times; /* files to write; "-": standard output */
    bool layers;
    double share; /* as tssa_session_options.data_share */
};

/* False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. bench_arguments_free them in any case. */
bool bench_arguments_parse(int argc, char **argv, struct bench_arguments *arguments);
void bench_arguments_free(struct bench_arguments *arguments);

#endif
