/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/reduce_levels.h"

#define RADIX REDUCTION_RADIX

void reduce_levels_begin(struct reduce_levels *levels, const struct reduce_loops *loops,
                         size_t width, int64_t n, void *memory)
{
    *levels = (struct reduce_levels){loops, memory, n, 0, (size_t)n * width, 0};
    loops->fill(memory, n);
}

static char *level_at(const struct reduce_levels *levels, int level)
{
    return levels->memory + (size_t)level * levels->bytes;
}

static void grow(struct reduce_levels *levels, int top)
{
    while (levels->top < top)
        levels->loops->fill(level_at(levels, ++levels->top), levels->n);
}

/* `count`: the steps so far, in units of what a result of this level has. After RADIX of them, it
 * goes up. */
static void carry(struct reduce_levels *levels, int level, int64_t count)
{
    for (; count % RADIX == 0; level++, count /= RADIX) {
        char *from = level_at(levels, level);
        grow(levels, level + 1);
        levels->loops->join(from + levels->bytes, from, levels->n);
        levels->loops->fill(from, levels->n);
    }
}

int64_t reduce_levels_room(const struct reduce_levels *levels, int64_t steps)
{
    int64_t room = RADIX - levels->steps % RADIX;
    return steps < room ? steps : room;
}

void reduce_levels_add(struct reduce_levels *levels, int64_t steps)
{
    levels->steps += steps;
    carry(levels, 0, levels->steps);
}

void reduce_levels_join(struct reduce_levels *levels, int level, const void *results)
{
    int64_t unit = 1;
    for (int i = 0; i < level; i++)
        unit *= RADIX;
    grow(levels, level);
    levels->loops->join(level_at(levels, level), results, levels->n);
    levels->steps += unit;
    carry(levels, level, levels->steps / unit);
}

void *reduce_levels_end(struct reduce_levels *levels)
{
    char *at = levels->memory;
    for (int level = 0; level < levels->top; level++, at += levels->bytes)
        levels->loops->join(at + levels->bytes, at, levels->n);
    return at;
}
