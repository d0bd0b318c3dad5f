/* SPDX-License-Identifier: Apache-2.0 */
/* The times of many calls, in the blocks in which they were made. */
#ifndef TSSA_BENCH_SAMPLES_H
#define TSSA_BENCH_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

/* Calls that were made one after the other, or by several threads at once. */
struct block {
    size_t first, count; /* of the samples */
    double wall_ns;      /* from the beginning of the first call to the end of the last */
    double pace;         /* the slower of the readings before and after it (pace.h) */
    bool preempted;      /* others took a core away */
};

struct samples {
    double *ns; /* of each call */
    size_t count, capacity;
    struct block *blocks;
    size_t block_count, block_capacity;
    double wall_ns; /* of all blocks */
};

/* Makes room for so many calls more, and touches the memory, so that no page fault falls between
 * calls. All zero at first. False when memory runs out. */
bool samples_reserve(struct samples *samples, size_t calls);
/* The samples from samples->count on, which are written already, become a block. */
bool samples_end_block(struct samples *samples, size_t calls, double wall_ns, double pace,
                       bool preempted);
void samples_free(struct samples *samples);

double block_mean(const struct samples *samples, const struct block *block);

#endif
