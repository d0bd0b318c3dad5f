/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark programs share: ending on an error, and summing up samples. */
#ifndef TSSA_BENCH_MEASURE_H
#define TSSA_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>

#include "tssa.h"

static inline void check(tssa_status *status)
{
    if (!status)
        return;
    fprintf(stderr, "benchmark: %s\n", tssa_status_message(status));
    tssa_status_free(status);
    exit(1);
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the samples and prints minimum, median and P99. */
static inline void report(const char *what, const char *unit, double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, by_value);
    printf("%-28s min %8.3f %s   median %8.3f %s   P99 %8.3f %s\n", what, samples[0], unit,
           samples[count / 2], unit, samples[count * 99 / 100], unit);
}

#endif
