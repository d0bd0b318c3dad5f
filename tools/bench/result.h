/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of the lanes come to. Times are milliseconds. */
#ifndef TSSA_BENCH_RESULT_H
#define TSSA_BENCH_RESULT_H

#include "tools/bench/lane.h"
#include "tools/common/statistics.h"

/* How much faster a lane is than its baseline: the median over pairs of blocks, one beside the
 * other, of the ratio of their typical times, and the quartiles of it. */
struct ratio {
    size_t pairs; /* 0: nothing to compare */
    double median, low, high;
    bool quiet; /* only pairs of quiet blocks are in it; else there were too few of them */
};

struct result {
    const struct lane *lane;
    struct statistics of; /* count 0: no call was measured, and nothing else is set */
    double percentiles[BENCH_MAX_LIST];
    double throughput; /* calls per second, of all threads together */
    double quiet;      /* the share of calls in quiet blocks: see pace.h; no core was taken away */
    double quiet_median; /* of these; 0: there are none */
    /* per set of inputs, 0: its turn did not come; NULL: one set, or several threads */
    double *set_medians;
    struct ratio ratio;
};

struct results {
    struct result *items; /* one per lane */
    size_t count;
    double pace_quiet, pace_median, pace_worst; /* microseconds */
    double others;                              /* cores that others had, on average */
    size_t rss_peak;                            /* of the process, bytes */
    const struct lanes *lanes;
    const struct bench_arguments *arguments;
    int stopped; /* the signal that ended it, or 0 */
};

/* Refers to the lanes. results_free in any case. */
tssa_status *results_make(const struct lanes *lanes, const struct bench_arguments *arguments,
                          struct results *results);
void results_free(struct results *results);

/*
 * Are there several sizes or numbers of threads, so that a table tells more than a page per lane?
 */
bool results_are_table(const struct results *results);
/* "test_data_set_0", or "seed 3"; at most `size` bytes. */
void result_set_name(const struct input_set *set, char *text, size_t size);

#endif
