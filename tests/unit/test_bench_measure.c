/* SPDX-License-Identifier: Apache-2.0 */
/* ctest-labels: tsan */
/* How tssa-bench times calls: what it adds to each of them, which sets they get, threads, samples,
 * pace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "common/no_error.h"
#include "tools/bench/concurrency.h"
#include "tools/bench/measure.h"
#include "tools/bench/pace.h"
#include "tools/bench/samples.h"
#include "tools/common/clock.h"
#include "tools/common/statistics.h"

#define CALLS 2000
#define ATTEMPTS 200

/* ---- Calls ----------------------------------------------------------------------------------- */

struct log {
    size_t sets[64];
    size_t calls, freed, fails_at;
};

static tssa_status *log_call(void *user, size_t set)
{
    struct log *log = user;
    if (log->calls == log->fails_at)
        return ERROR(TSSA_RUNTIME, "call %zu fails", log->calls);
    log->sets[log->calls++] = set;
    return NULL;
}

static void log_free(void *user)
{
    ((struct log *)user)->freed++;
}

static void sets_take_turns(void **state)
{
    (void)state;
    struct log log = {.fails_at = SIZE_MAX};
    const struct callee callee = {log_call, log_free, &log, 3};
    double times[8];
    size_t done;
    no_error(measure_calls(&callee, 4, 8, UINT64_MAX, times, &done));
    assert_int_equal(done, 8);
    assert_int_equal(log.freed, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(log.sets[i], (4 + i) % 3);
        assert_true(times[i] >= 0);
    }
    no_error(measure_calls(&callee, 0, 8, clock_now(), times, &done));
    assert_int_equal(done, 1); /* the clock is looked at after a call */
}

static void an_error_ends_it(void **state)
{
    (void)state;
    struct log log = {.fails_at = 2};
    const struct callee callee = {log_call, log_free, &log, 1};
    double times[8];
    size_t done;
    tssa_status *status = measure_calls(&callee, 0, 8, UINT64_MAX, times, &done);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_int_equal(done, 2);
    assert_int_equal(log.freed, 2);
    tssa_status_free(status);
}

/* ---- What measuring costs -------------------------------------------------------------------- */

static tssa_status *do_nothing(void *user, size_t set)
{
    (void)user;
    (void)set;
    return NULL;
}

static void free_nothing(void *user)
{
    (void)user;
}

/* Sanitizers and unoptimized code are not what people measure with. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__OPTIMIZE__) && !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__) &&              \
    !defined(__SANITIZE_THREAD__)
#define LIMIT_NS 100
#else
#define LIMIT_NS 5000
#endif

/* All that a call of nothing takes is the tool's own. The machine may be loud: the best of many
 * tries. */
static void a_call_costs_less_than_100_ns(void **state)
{
    (void)state;
    const struct callee callee = {do_nothing, free_nothing, NULL, 4};
    double *times = calloc(CALLS, sizeof *times), best = 1e9, shown = 1e9;
    assert_non_null(times);
    for (int i = 0; i < ATTEMPTS; i++) {
        size_t done;
        uint64_t start = clock_now();
        no_error(measure_calls(&callee, 0, CALLS, UINT64_MAX, times, &done));
        double each = (double)(clock_now() - start) / CALLS;
        assert_int_equal(done, CALLS);
        statistics_sort(times, CALLS);
        best = each < best ? each : best;
        shown = times[CALLS / 2] < shown ? times[CALLS / 2] : shown;
    }
    print_message("beside a call: %.1f ns, of which %.1f are in the time shown\n", best, shown);
    assert_true(best < LIMIT_NS);
    assert_true(shown <= best);
    free(times);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static tssa_status *count_call(void *user, size_t set)
{
    (void)set;
    atomic_fetch_add((atomic_size_t *)user, 1);
    return NULL;
}

static void threads_call_at_once(void **state)
{
    (void)state;
    atomic_size_t calls = 0;
    const struct callee callee = {count_call, free_nothing, &calls, 2};
    static double times[4][100];
    struct crew_member members[4];
    for (int i = 0; i < 4; i++)
        members[i] =
            (struct crew_member){.callee = &callee, .first = (size_t)i, .nanoseconds = times[i]};
    no_error(crew_run(members, 4, 100, UINT64_MAX / 2));
    assert_int_equal(atomic_load(&calls), 400);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(members[i].done, 100);
        assert_true(members[i].ended >= members[i].started);
        assert_true(members[i].pace > 0);
    }
    no_error(crew_run(members, 4, 100, 0)); /* no time at all is one call */
    assert_int_equal(atomic_load(&calls), 404);
}

static void an_error_of_a_thread_is_told(void **state)
{
    (void)state;
    struct log good = {.fails_at = SIZE_MAX}, bad = {.fails_at = 1};
    const struct callee callees[2] = {{log_call, log_free, &good, 1},
                                      {log_call, log_free, &bad, 1}};
    double times[2][4];
    struct crew_member members[2] = {{.callee = &callees[0], .nanoseconds = times[0]},
                                     {.callee = &callees[1], .nanoseconds = times[1]}};
    tssa_status *status = crew_run(members, 2, 4, UINT64_MAX / 2);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_int_equal(members[0].done, 4);
    assert_int_equal(members[1].done, 1);
    tssa_status_free(status);
}

/* ---- Samples and pace ------------------------------------------------------------------------ */

static void samples_grow_by_blocks(void **state)
{
    (void)state;
    struct samples samples = {0};
    for (size_t i = 0; i < 3000; i++) {
        assert_true(samples_reserve(&samples, 2));
        samples.ns[samples.count] = (double)i;
        samples.ns[samples.count + 1] = (double)i + 1;
        assert_true(samples_end_block(&samples, 2, 5, 1, i % 2));
    }
    assert_int_equal(samples.count, 6000);
    assert_int_equal(samples.block_count, 3000);
    assert_float_equal(samples.wall_ns, 15000, 0);
    for (size_t i = 0; i < 3000; i++) {
        assert_int_equal(samples.blocks[i].first, 2 * i);
        assert_float_equal(samples.ns[2 * i + 1], (double)i + 1, 0);
        assert_int_equal(samples.blocks[i].preempted, i % 2);
    }
    samples_free(&samples);
    assert_null(samples.ns);
}

/* The best reading but the odd one in a hundred. */
static void the_quiet_pace_is_not_the_odd_one(void **state)
{
    (void)state;
    struct pace pace = {0};
    assert_float_equal(pace_quiet(&pace), 0, 0);
    for (int i = 0; i < 200; i++)
        assert_true(pace_note(&pace, 20 + i % 7));
    assert_true(pace_note(&pace, 1));
    assert_float_equal(pace_quiet(&pace), 20, 0);
    pace_free(&pace);
    assert_true(pace_read() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_take_turns),
        cmocka_unit_test(an_error_ends_it),
        cmocka_unit_test(a_call_costs_less_than_100_ns),
        cmocka_unit_test(threads_call_at_once),
        cmocka_unit_test(an_error_of_a_thread_is_told),
        cmocka_unit_test(samples_grow_by_blocks),
        cmocka_unit_test(the_quiet_pace_is_not_the_odd_one),
    };
    return cmocka_run_group_tests_name("bench_measure", tests, NULL, NULL);
}
