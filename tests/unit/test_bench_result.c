/* SPDX-License-Identifier: Apache-2.0 */
/* What tssa-bench makes of samples that are known: medians of sets, quiet runs, ratios. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/no_error.h"
#include "tools/bench/result.h"

#define near(a, b) assert_float_equal(a, b, 1e-9)
#define PACE 10.0
#define LOUD 20.0

/* Two lanes, of two sets of inputs each. */
struct fixture {
    struct subject subjects[2];
    struct lane items[2];
    struct lanes lanes;
    struct bench_arguments arguments;
    struct results results;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (int i = 0; i < 2; i++) {
        f->subjects[i].set_count = 2;
        f->items[i] = (struct lane){.subject = &f->subjects[i], .concurrency = 1};
    }
    f->lanes = (struct lanes){.items = f->items, .count = 2, .group = 2};
    f->arguments = (struct bench_arguments){.percentiles = {50, 90}, .percentile_count = 2};
    for (int i = 0; i < 100; i++)
        assert_true(pace_note(&f->lanes.pace, PACE));
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    results_free(&f->results);
    for (int i = 0; i < 2; i++)
        samples_free(&f->items[i].samples);
    pace_free(&f->lanes.pace);
    free(f);
    return 0;
}

/* A block of milliseconds. */
static void add_block(struct fixture *f, int lane, size_t count, const double *ms, double pace)
{
    struct samples *samples = &f->items[lane].samples;
    double wall = 0;
    assert_true(samples_reserve(samples, count));
    for (size_t i = 0; i < count; i++) {
        samples->ns[samples->count + i] = ms[i] * 1e6;
        wall += ms[i] * 1e6;
    }
    assert_true(samples_end_block(samples, count, wall, pace, pace == LOUD));
}

static const struct result *result_of(struct fixture *f, int lane)
{
    results_free(&f->results);
    no_error(results_make(&f->lanes, &f->arguments, &f->results));
    return &f->results.items[lane];
}

static void sums_up(void **state)
{
    struct fixture *f = *state;
    add_block(f, 0, 4, (double[]){1, 10, 2, 20}, PACE);
    add_block(f, 0, 2, (double[]){3, 30}, LOUD);
    const struct result *result = result_of(f, 0);
    assert_int_equal(result->of.count, 6);
    near(result->of.min, 1);
    near(result->of.mean, 11);
    near(result->of.median, 6.5);
    near(result->of.max, 30);
    near(result->percentiles[0], 3);
    near(result->percentiles[1], 30);
    near(result->throughput, 6 / 0.066);
    near(result->set_medians[0], 2);
    near(result->set_medians[1], 20);
    near(result->quiet, 4.0 / 6);
    near(result->quiet_median, 6);
    near(f->results.pace_quiet, PACE);
    assert_int_equal(result->ratio.pairs, 0);
}

static void has_no_results_without_runs(void **state)
{
    struct fixture *f = *state;
    const struct result *result = result_of(f, 1);
    assert_int_equal(result->of.count, 0);
    assert_int_equal(result->ratio.pairs, 0);
    assert_null(result->set_medians);
}

/* Twice as fast, whatever the machine did to every third call. */
static void a_ratio_passes_over_what_disturbs(void **state)
{
    struct fixture *f = *state;
    double slow[24], fast[24];
    for (int b = 0; b < 5; b++) {
        for (int i = 0; i < 24; i++) {
            slow[i] = i % 2 ? 4 : 2;
            fast[i] = (i % 2 ? 2 : 1) + (i % 3 == b % 3 ? 8 : 0);
        }
        add_block(f, 0, 24, slow, LOUD);
        add_block(f, 1, 24, fast, LOUD);
    }
    const struct result *result = result_of(f, 1);
    assert_int_equal(result->ratio.pairs, 5);
    assert_false(result->ratio.quiet);
    near(result->ratio.median, 2);
    near(result->ratio.low, 2);
    near(result->ratio.high, 2);
    assert_int_equal(result_of(f, 0)->ratio.pairs, 0); /* the baseline itself */
}

/* The quartiles tell the spread; a last block that is no whole round is left out. */
static void a_ratio_has_a_spread(void **state)
{
    struct fixture *f = *state;
    for (int b = 1; b <= 8; b++) {
        add_block(f, 0, 2, (double[]){b, b}, LOUD);
        add_block(f, 1, 2, (double[]){1, 1}, LOUD);
    }
    add_block(f, 0, 1, (double[]){1000}, LOUD);
    add_block(f, 1, 1, (double[]){1}, LOUD);
    const struct result *result = result_of(f, 1);
    assert_int_equal(result->ratio.pairs, 8);
    near(result->ratio.median, 4.5);
    near(result->ratio.low, 2);
    near(result->ratio.high, 6);
}

/* With ten quiet pairs the loud ones do not count; with nine they do. */
static void quiet_pairs_are_preferred(void **state)
{
    struct fixture *f = *state;
    for (int b = 0; b < 20; b++) {
        double other = b < 9 ? 3 : 7;
        add_block(f, 0, 2, (double[]){other, other}, b < 9 ? PACE : LOUD);
        add_block(f, 1, 2, (double[]){1, 1}, PACE);
    }
    assert_false(result_of(f, 1)->ratio.quiet);
    assert_int_equal(result_of(f, 1)->ratio.pairs, 20);
    near(result_of(f, 1)->ratio.median, 7);
    add_block(f, 0, 2, (double[]){3, 3}, PACE);
    add_block(f, 1, 2, (double[]){1, 1}, PACE);
    const struct result *result = result_of(f, 1);
    assert_true(result->ratio.quiet);
    assert_int_equal(result->ratio.pairs, 10);
    near(result->ratio.median, 3);
    near(result->ratio.high, 3);
}

static void counts_the_cores_of_others(void **state)
{
    (void)state;
    const struct machine_use before = {.wall = 10, .cores = 100, .own = 5};
    const struct machine_use after = {.wall = 14, .cores = 110, .own = 9};
    near(machine_others(&before, &after), 1.5);
    near(machine_others(&after, &before), 0);
    assert_true(machine_rss_peak() > 0);
    assert_true(machine_read().wall > 0);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(sums_up),
        WITH_FIXTURE(has_no_results_without_runs),
        WITH_FIXTURE(a_ratio_passes_over_what_disturbs),
        WITH_FIXTURE(a_ratio_has_a_spread),
        WITH_FIXTURE(quiet_pairs_are_preferred),
        cmocka_unit_test(counts_the_cores_of_others),
    };
    return cmocka_run_group_tests_name("bench_result", tests, NULL, NULL);
}
