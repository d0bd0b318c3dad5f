/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs take for their values: tssa_session_memory tells, and once runs are alike it is at most
 * a tenth more than what the values of a run need at one time, for every committed model at level 2
 * (as loaded, many have values of which not even the rank is known).
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"

#define RUNS 8                        /* sizes are learnt, and the layout has taken its time */
#define SMALL 8192                    /* bytes that do not matter */
#define MOST_READY ((size_t)16 << 20) /* that there are before the first run */

/* Sequences cannot be given, and are made anew. */
static void drop_sequences(struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++)
        if (run->outputs[i] && tssa_value_kind(run->outputs[i]) != TSSA_KIND_TENSOR) {
            tssa_value_free(run->outputs[i]);
            run->outputs[i] = NULL;
        }
}

static void run_model(const char *path, int level, tssa_target target, int profile)
{
    struct model_run run = {0};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = level, .target = target};
    const tssa_session_options options = {.struct_size = sizeof options, .profile = profile};
    tssa_memory_use use;
    no_error(model_run_open(&run, path, 0));
    no_error(tssa_model_optimize(run.model, &optimize));
    no_error(model_run_read_inputs(&run, path));
    no_error(tssa_session_create(run.model, &options, &run.session));
    no_error(tssa_session_memory(run.session, &use));
    assert_true(use.last == 0 && use.peak == 0 && use.live == 0 && use.kept <= MOST_READY);
    for (int i = 0; i < RUNS; i++) {
        drop_sequences(&run);
        const size_t before = use.peak;
        no_error(model_run_execute(&run));
        no_error(tssa_session_memory(run.session, &use));
        assert_true(use.peak >= use.last && use.peak >= before);
        assert_true(use.last >= use.live);
    }
    assert_true(use.kept <= use.last);
    if (!profile)
        assert_int_equal(use.live, 0);
    else if (level == 2 && use.last > use.live + use.live / 10 + SMALL)
        fail_msg("%s, level %d: held %zu bytes for %zu", path, level, use.last, use.live);
    model_run_close(&run);
}

static void one_model(void **state)
{
    run_model(*state, 0, TSSA_TARGET_SESSION, 1);
    run_model(*state, 2, TSSA_TARGET_SESSION, 1);
    run_model(*state, 2, TSSA_TARGET_ONNX, 1);
    run_model(*state, 2, TSSA_TARGET_ONNX, 0);
}

static void test_arguments(void **state)
{
    (void)state;
    tssa_memory_use use;
    tssa_status *status = tssa_session_memory(NULL, &use);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arguments)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
