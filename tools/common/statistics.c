/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/statistics.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void statistics_sort(double *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof *values, by_size);
}

double statistics_median(const double *sorted, size_t count)
{
    size_t middle = count / 2;
    return count % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double statistics_percentile(const double *sorted, size_t count, double percent)
{
    /* 99.9 % of 1000 are 999, not 999.0000000000001. */
    double rank = ceil(percent * (double)count / 100 * (1 - 1e-12));
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

struct statistics statistics_of(const double *sorted, size_t count)
{
    struct statistics s = {.count = count, .min = sorted[0], .max = sorted[count - 1]};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += sorted[i];
    s.mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    s.deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    s.median = statistics_median(sorted, count);
    return s;
}
