/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/samples.h"

#include <stdlib.h>
#include <string.h>

bool samples_reserve(struct samples *samples, size_t calls)
{
    if (samples->capacity - samples->count >= calls)
        return true;
    size_t capacity = samples->count + calls;
    if (capacity < samples->capacity + samples->capacity / 2)
        capacity = samples->capacity + samples->capacity / 2;
    double *more = reallocarray(samples->ns, capacity, sizeof *more);
    if (!more)
        return false;
    samples->ns = more;
    samples->capacity = capacity;
    memset(more + samples->count, 0, (capacity - samples->count) * sizeof *more);
    return true;
}

bool samples_end_block(struct samples *samples, size_t calls, double wall_ns, double pace,
                       bool preempted)
{
    if (samples->block_count == samples->block_capacity) {
        size_t capacity = samples->block_capacity ? 2 * samples->block_capacity : 1024;
        struct block *more = reallocarray(samples->blocks, capacity, sizeof *more);
        if (!more)
            return false;
        samples->blocks = more;
        samples->block_capacity = capacity;
    }
    samples->blocks[samples->block_count++] =
        (struct block){samples->count, calls, wall_ns, pace, preempted};
    samples->count += calls;
    samples->wall_ns += wall_ns;
    return true;
}

double block_mean(const struct samples *samples, const struct block *block)
{
    double sum = 0;
    for (size_t i = 0; i < block->count; i++)
        sum += samples->ns[block->first + i];
    return sum / (double)block->count;
}

void samples_free(struct samples *samples)
{
    free(samples->ns);
    free(samples->blocks);
    *samples = (struct samples){0};
}
