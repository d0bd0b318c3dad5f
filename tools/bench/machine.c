/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/machine.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/common/clock.h"

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* user, nice, system, idle, iowait, irq, softirq, steal: ticks of all cores. */
static double read_busy(void)
{
    double ticks[8] = {0}, busy = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return 0;
    int found = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2],
                       &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
    fclose(file);
    for (int i = 0; i < 8 && found == 8; i++)
        if (i != 3 && i != 4)
            busy += ticks[i];
    long rate = sysconf(_SC_CLK_TCK);
    return rate > 0 ? busy / (double)rate : 0;
}

struct machine_use machine_read(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (struct machine_use){.wall = (double)clock_now() * 1e-9,
                                .cores = read_busy(),
                                .own = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
}

double machine_others(const struct machine_use *before, const struct machine_use *after)
{
    double wall = after->wall - before->wall;
    double others = (after->cores - before->cores) - (after->own - before->own);
    return wall > 0 && others > 0 ? others / wall : 0;
}

size_t machine_rss_peak(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss << 10;
}

long machine_preemptions(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}
