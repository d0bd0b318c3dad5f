/* SPDX-License-Identifier: Apache-2.0 */
/* --stats: what each pass cost and did. */
#ifndef TSSA_OPT_STATS_H
#define TSSA_OPT_STATS_H

#include <stdbool.h>

#include "tssa.h"

struct pass_stats {
    const char *pass; /* of the pass table */
    size_t runs, changed;
    double seconds;
    size_t before, after; /* operators: before its first run, after its last */
    int64_t change;       /* of their number, over its runs */
};

struct stats {
    struct pass_stats *passes; /* in the order of their first runs */
    size_t count;
    bool failed; /* memory ran out */
};

void stats_add(struct stats *stats, const tssa_pass_run *run);
/* `peak`: the most bytes that were held. */
void stats_print(const struct stats *stats, double seconds, size_t peak);
void stats_free(struct stats *stats);

#endif
