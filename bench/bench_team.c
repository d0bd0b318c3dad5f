/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to send a parallel loop to the thread team and to wait for it: the body does
 * nothing. Run with OMP_PROC_BIND=true, as the tools do by themselves. Microseconds; minimum and
 * median.
 */
#include <unistd.h>

#include "base/team.h"
#include "bench/measure.h"
#include "runtime/executor.h"

#define SAMPLES 2001

static void nothing(void *context, int64_t begin, int64_t end)
{
    (void)context;
    (void)begin;
    (void)end;
}

int main(void)
{
    static double samples[SAMPLES];
    struct team team;
    setenv("OMP_PROC_BIND", "true", 0);
    team_open(&team, (int)sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = -100; i < SAMPLES; i++) {
        uint64_t start = executor_now();
        team_for(&team, 1000, 1, nothing, NULL);
        if (i >= 0)
            samples[i] = (double)(executor_now() - start) / 1e3;
    }
    printf("%d threads, %s\n", team.threads, team.parallel_for ? "OpenMP" : "serial");
    report("a parallel loop", "us", samples, SAMPLES);
    return 0;
}
