/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/stopwatch.h"

#include <stdlib.h>
#include <time.h>

#define SAMPLES 200
#define LEAST_SAMPLES 3
#define SECONDS 0.33

double stopwatch_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

tssa_status *stopwatch_time(struct card *card, stopwatch_work *work, void *data, double pieces,
                            struct timing *timing)
{
    double samples[SAMPLES];
    size_t count = 0;
    TRY(work(card, data));
    double begin = stopwatch_now(), end = begin;
    while (count < SAMPLES && (count < LEAST_SAMPLES || end - begin < SECONDS)) {
        double start = end;
        TRY(work(card, data));
        end = stopwatch_now();
        samples[count++] = (end - start) * 1e6 / pieces;
    }
    qsort(samples, count, sizeof *samples, by_value);
    *timing = (struct timing){.median = samples[count / 2], .least = samples[0]};
    return NULL;
}
