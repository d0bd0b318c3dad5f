/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics against values known by hand, and against numpy's where they have the same meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/common/statistics.h"

#define near(a, b) assert_float_equal(a, b, 1e-12)

static void of_one_value(void **state)
{
    (void)state;
    const double one[] = {7};
    struct statistics of = statistics_of(one, 1);
    assert_int_equal(of.count, 1);
    near(of.min, 7);
    near(of.max, 7);
    near(of.mean, 7);
    near(of.median, 7);
    near(of.deviation, 0);
    for (int percent = 0; percent <= 100; percent += 10)
        near(statistics_percentile(one, 1, percent), 7);
}

static void sorts_first(void **state)
{
    (void)state;
    double values[] = {4, 1, 3, 2};
    statistics_sort(values, 4);
    for (int i = 0; i < 4; i++)
        near(values[i], i + 1);
    statistics_sort(NULL, 0);
}

/* numpy.std([2, 4, 4, 4, 5, 5, 7, 9], ddof=1) */
static void of_many_values(void **state)
{
    (void)state;
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    struct statistics of = statistics_of(values, 8);
    near(of.mean, 5);
    near(of.median, 4.5);
    assert_float_equal(of.deviation, 2.13808993529939, 1e-12);
    near(statistics_median(values, 7), 4);
}

/* The smallest value that so many percent of the values do not exceed. */
static void percentiles_are_of_nearest_rank(void **state)
{
    (void)state;
    double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = i + 1;
    for (int percent = 1; percent <= 100; percent++) {
        near(statistics_percentile(values, 100, percent), percent);
        near(statistics_percentile(values, 1000, percent), 10 * percent);
    }
    near(statistics_percentile(values, 1000, 99.9), 999);
    near(statistics_percentile(values, 1000, 99.91), 1000);
    near(statistics_percentile(values, 1000, 0), 1);
    /* Wikipedia's example of the nearest-rank method. */
    const double five[] = {15, 20, 35, 40, 50};
    near(statistics_percentile(five, 5, 5), 15);
    near(statistics_percentile(five, 5, 30), 20);
    near(statistics_percentile(five, 5, 40), 20);
    near(statistics_percentile(five, 5, 50), 35);
    near(statistics_percentile(five, 5, 100), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_value),
        cmocka_unit_test(sorts_first),
        cmocka_unit_test(of_many_values),
        cmocka_unit_test(percentiles_are_of_nearest_rank),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
