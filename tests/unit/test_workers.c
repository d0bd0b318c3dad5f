/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in child processes: every way in which one can end is told from the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/workers.h"

enum { JOBS = 40 };

struct outcome {
    int result, times;
    char report[80];
};

static int job(void *context, size_t index, struct text *report)
{
    (void)context;
    switch (index % 5) {
    case 1:
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        break;
    case 2:
        _exit(9);
    case 3:
        if (index == 3) /* once: it costs its time limit */
            pause();
        break;
    default:
        break;
    }
    text_printf(report, "job %zu", index);
    return (int)index;
}

static void done(void *context, size_t index, int result, const char *report, size_t size,
                 double seconds)
{
    struct outcome *outcome = (struct outcome *)context + index;
    assert_int_equal(report[size], '\0');
    assert_true(seconds >= 0);
    outcome->result = result;
    outcome->times++;
    snprintf(outcome->report, sizeof outcome->report, "%s", report);
}

static void check(const struct outcome *outcomes)
{
    for (size_t i = 0; i < JOBS; i++) {
        const struct outcome *outcome = &outcomes[i];
        char wanted[80];
        snprintf(wanted, sizeof wanted, "job %zu", i);
        assert_int_equal(outcome->times, 1);
        if (i % 5 == 1) {
            assert_int_equal(outcome->result, WORKER_DIED);
            assert_string_equal(outcome->report, "crashed: Segmentation fault");
        } else if (i % 5 == 2) {
            assert_int_equal(outcome->result, WORKER_EXITED(9));
            assert_string_equal(outcome->report, "ended the process with status 9");
        } else if (i == 3) {
            assert_int_equal(outcome->result, WORKER_TIMEOUT);
            assert_string_equal(outcome->report, "did not end within 1 s");
        } else {
            assert_int_equal(outcome->result, (int)i);
            assert_string_equal(outcome->report, wanted);
        }
    }
}

static void every_end_is_told(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        struct outcome outcomes[JOBS] = {0};
        const struct workers_options options = {.workers = workers,
                                                .timeout_seconds = 1,
                                                .quiet = true,
                                                .job = job,
                                                .done = done,
                                                .context = outcomes};
        assert_int_equal(workers_run(&options, JOBS), 0);
        check(outcomes);
    }
}

static void nothing_to_do(void **state)
{
    (void)state;
    const struct workers_options options = {
        .workers = 2, .timeout_seconds = 1, .job = job, .done = done};
    assert_int_equal(workers_run(&options, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_told),
        cmocka_unit_test(nothing_to_do),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
