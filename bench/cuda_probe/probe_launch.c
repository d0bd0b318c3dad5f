/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/probe.h"

struct launches {
    cuda_function kernel;
    int count;
};

static tssa_status *launch(struct card *card, void *data)
{
    struct launches *launches = data;
    for (int i = 0; i < launches->count; i++)
        TRY(CARD_LAUNCH(card, card->stream, launches->kernel, 1, 1, NULL));
    return card_sync(card);
}

/* What the host itself spends on a call: the launches are waited for outside of the clock. */
static tssa_status *time_calls(struct card *card, cuda_function kernel, FILE *out)
{
    enum { CALLS = 64, ROUNDS = 20 };
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = stopwatch_now();
        for (int i = 0; i < CALLS; i++)
            TRY(CARD_LAUNCH(card, card->stream, kernel, 1, 1, NULL));
        double seconds = stopwatch_now() - start;
        least = seconds < least ? seconds : least;
        TRY(card_sync(card));
    }
    record_figure(out, least / CALLS * 1e6, "us", "the call alone, least of %d", ROUNDS);
    return NULL;
}

tssa_status *probe_launch(struct card *card, FILE *out)
{
    static const int counts[] = {1, 10, 100, 1000};
    struct launches launches;
    struct timing timing;
    double start = stopwatch_now();
    TRY(card_kernel(card, KERNELS_BASIC, "empty", &launches.kernel));
    record_figure(out, (stopwatch_now() - start) * 1e3, "ms", "compile and load the kernels");
    start = stopwatch_now();
    launches.count = 1;
    TRY(launch(card, &launches));
    record_figure(out, (stopwatch_now() - start) * 1e6, "us", "first launch and wait");
    TRY(time_calls(card, launches.kernel, out));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        launches.count = counts[i];
        TRY(stopwatch_time(card, launch, &launches, counts[i], &timing));
        record_timing(out, timing, "per launch, %d in a row and wait", counts[i]);
    }
    return NULL;
}
