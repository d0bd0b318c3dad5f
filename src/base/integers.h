/* SPDX-License-Identifier: Apache-2.0 */
/* Of integers, what is written everywhere. */
#ifndef TSSA_BASE_INTEGERS_H
#define TSSA_BASE_INTEGERS_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of n >= 0 and by > 0, whose sum is no larger than integers are. */
static inline int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* The next multiple of the alignment. */
static inline size_t aligned(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

#endif
