/* SPDX-License-Identifier: Apache-2.0 */
/* What each operator of a session took: its profile, as rows. */
#ifndef TSSA_TOOLS_PROFILE_TABLE_H
#define TSSA_TOOLS_PROFILE_TABLE_H

#include <stdbool.h>

#include "tssa.h"

/* All strings are owned. */
struct profile_row {
    char *op;
    char *node;   /* per node: its name as remarks say it; else NULL */
    char *around; /* the control flow that it is in, so named; "": the main graph */
    int depth;
    uint64_t calls;       /* in all runs together */
    uint64_t nanoseconds; /* of its own: without what is in its subgraphs */
    uint64_t nested;      /* in its subgraphs */
};

struct profile_table {
    struct profile_row *rows;
    size_t count;
    uint64_t inside; /* nanoseconds in operators, all together */
    bool layers;
    bool failed; /* memory ran out while it was read */
};

/* A row per operator and the subgraph that it is in, the most expensive first; with `layers` one
 * per node, in the order of the plan. profile_table_free it in any case. */
tssa_status *profile_table_read(tssa_session *session, bool layers, struct profile_table *table);
void profile_table_free(struct profile_table *table);

/*
 * On standard output: of `runs` runs that took `nanoseconds` together. Nothing when there are none.
 */
void profile_table_print(const struct profile_table *table, uint64_t runs, double nanoseconds);

#endif
