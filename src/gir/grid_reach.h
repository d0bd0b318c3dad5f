/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which numbers the integers of a grid's kernel may be, in some of its rows: of indices that data
 * tells, what checks say. A number is never outside of its range, if no check has failed.
 *
 * Threads: what is asked only reads.
 */
#ifndef TSSA_GIR_GRID_REACH_H
#define TSSA_GIR_GRID_REACH_H

#include "gir/gir.h"

/* Both ends are in it; of what nobody knows all of int64. */
struct gir_interval {
    int64_t low, high;
};

struct gir_reach {
    struct gir_interval ranges[GIR_MAX_CODES];  /* per step; of what is no int64, all */
    struct gir_interval checked[GIR_MAX_CODES]; /* what checks leave of it */
};

/* Of which elements, in which iterations. */
struct gir_reach_of {
    struct gir_interval rows, positions, trips;
    const int64_t *numbers; /* what a call tells; NULL: anything */
};

void gir_find_reach(const struct gir_kernel *kernel, const struct gir_reach_of *of,
                    struct gir_reach *reach);
/* The same, ranges[n_codes], whether checks fail or not. */
void gir_find_ranges(const struct gir_kernel *kernel, const struct gir_reach_of *of,
                     struct gir_interval *ranges);

#endif
