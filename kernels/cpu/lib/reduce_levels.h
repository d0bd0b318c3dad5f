/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of ir/reduction.def for steps that a kernel computes itself: accumulators of `n`
 * results or lanes, to which it combines a few steps at a time.
 *
 *     reduce_levels_begin(&levels, loops, width, n, memory);
 *     while (steps remain) {
 *         count = reduce_levels_room(&levels, steps that remain);
 *         combine so many steps with levels.memory, one after the other
 *         reduce_levels_add(&levels, count);
 *     }
 *     result = reduce_levels_end(&levels);
 */
#ifndef TSSA_KERNELS_CPU_LIB_REDUCE_LEVELS_H
#define TSSA_KERNELS_CPU_LIB_REDUCE_LEVELS_H

#include "kernels/cpu/lib/reduce.h"

#define REDUCE_LEVELS 11 /* REDUCTION_RADIX to this power is more than there are elements */
#define REDUCE_WIDEST 8  /* bytes of an accumulator */

/*
 * Level 0 has the last steps, fewer than REDUCTION_RADIX; level l + 1 what came from level l.
 * Levels above `top` are not there yet: to combine with an identity changes nothing.
 */
struct reduce_levels {
    const struct reduce_loops *loops;
    char *memory; /* REDUCE_LEVELS times n accumulators; first those of level 0 */
    int64_t n, steps;
    size_t bytes; /* of a level */
    int top;
};

/* Levels that so many steps need; REDUCE_LEVELS are always enough. */
static inline int reduce_levels_needed(int64_t steps)
{
    int levels = 1;
    for (; steps >= REDUCTION_RADIX; steps /= REDUCTION_RADIX)
        levels++;
    return levels;
}

/* `width`: bytes of an accumulator. The memory is the caller's. */
void reduce_levels_begin(struct reduce_levels *levels, const struct reduce_loops *loops,
                         size_t width, int64_t n, void *memory);
/*
 * How many of so many steps can be combined with level 0 before the next call of reduce_levels_add.
 */
int64_t reduce_levels_room(const struct reduce_levels *levels, int64_t steps);
void reduce_levels_add(struct reduce_levels *levels, int64_t steps);
/*
 * Combines what REDUCTION_RADIX to the power `level` steps gave that were combined apart. As many
 * or more, to a multiple of it, must have been combined before, or none.
 */
void reduce_levels_join(struct reduce_levels *levels, int level, const void *results);
/* The accumulators of all steps. */
void *reduce_levels_end(struct reduce_levels *levels);

#endif
