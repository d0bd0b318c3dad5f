/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NVTX: ranges of each thread nest, and one that nobody has begun does not end. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/fake.h"

static _Thread_local int depth;
static unsigned long n_ranges;
static char latest[256];

EXPORT int nvtxRangePushA(const char *name);
int nvtxRangePushA(const char *name)
{
    ENTER();
    (void)planned_; /* it has no error */
    if (!name[0])
        abort();
    n_ranges++;
    snprintf(latest, sizeof latest, "%s", name);
    return depth++;
}

EXPORT int nvtxRangePop(void);
int nvtxRangePop(void)
{
    ENTER();
    (void)planned_;
    if (depth == 0)
        abort();
    return --depth;
}

int fake_range_depth(void)
{
    return depth;
}

unsigned long fake_ranges(void)
{
    return n_ranges;
}

const char *fake_latest_range(void)
{
    return latest;
}
