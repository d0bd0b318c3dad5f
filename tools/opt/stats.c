/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pass_stats *find(struct stats *stats, const tssa_pass_run *run)
{
    for (size_t i = 0; i < stats->count; i++)
        if (strcmp(stats->passes[i].pass, run->pass) == 0)
            return &stats->passes[i];
    struct pass_stats *more = reallocarray(stats->passes, stats->count + 1, sizeof *more);
    if (!more)
        return NULL;
    stats->passes = more;
    more[stats->count] = (struct pass_stats){.pass = run->pass, .before = run->ops_before};
    return &more[stats->count++];
}

void stats_add(struct stats *stats, const tssa_pass_run *run)
{
    struct pass_stats *pass = find(stats, run);
    if (!pass) {
        stats->failed = true;
        return;
    }
    pass->runs++;
    pass->changed += run->changed != 0;
    pass->seconds += run->seconds;
    pass->after = run->ops_after;
    pass->change += (int64_t)run->ops_after - (int64_t)run->ops_before;
}

void stats_print(const struct stats *stats, double seconds, size_t peak)
{
    double sum = 0;
    printf("  %-28s %6s %8s %10s %9s %9s %9s\n", "passes", "runs", "changed", "ms", "before",
           "after", "change");
    for (size_t i = 0; i < stats->count; i++) {
        const struct pass_stats *pass = &stats->passes[i];
        printf("  %-28s %6zu %8zu %10.3f %9zu %9zu %+9" PRId64 "\n", pass->pass, pass->runs,
               pass->changed, pass->seconds * 1e3, pass->before, pass->after, pass->change);
        sum += pass->seconds;
    }
    printf("  %-28s %6s %8s %10.3f\n", "in all", "", "", sum * 1e3);
    printf("  optimized in %.3f ms; at most %.1f MiB were held, mapped files not counted\n",
           seconds * 1e3, (double)peak / (1 << 20));
}

void stats_free(struct stats *stats)
{
    free(stats->passes);
    *stats = (struct stats){0};
}
