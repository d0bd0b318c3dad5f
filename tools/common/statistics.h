/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What many measurements come to. All of these take values in ascending order, at least one;
 * percentiles are values that occurred (nearest rank), the median is the mean of the middle two
 * where there are two.
 */
#ifndef TSSA_TOOLS_STATISTICS_H
#define TSSA_TOOLS_STATISTICS_H

#include <stddef.h>

struct statistics {
    size_t count;
    double min, max, mean, median;
    double deviation; /* standard, of the sample; 0 of one value */
};

/* Into ascending order. */
void statistics_sort(double *values, size_t count);

struct statistics statistics_of(const double *sorted, size_t count);
double statistics_median(const double *sorted, size_t count);
/* The smallest value that at least `percent` (0 to 100) of the values do not exceed. */
double statistics_percentile(const double *sorted, size_t count, double percent);

#endif
