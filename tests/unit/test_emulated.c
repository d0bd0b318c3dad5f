/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device `emulated`: all committed models give the CPU's bits on it, fused as for a GPU, and
 * ask of it what tests/golden/emulated.txt says, which TSSA_UPDATE_GOLDEN=1 in the environment has
 * written anew.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/work_table.h"

#define RUNS 8 /* sizes are learnt, and the layout has taken its time */
#define LEVELS 3

static struct work_table table;

static void run_level(const char *path, int level, tssa_session_work *work)
{
    struct model_run here = {0}, there = {0};
    tssa_session_work before;
    no_error(model_on_device_open(&here, path, level, "cpu"));
    no_error(model_on_device_open(&there, path, level, "emulated"));
    no_error(model_run_execute(&here));
    for (int i = 0; i < RUNS; i++) {
        before = *work;
        no_error(model_on_device_run(&there));
        no_error(tssa_session_counts(there.session, work));
        model_on_device_compare(&there, &here, path);
    }
    assert_memory_equal(work, &before, sizeof before);
    model_run_close(&here);
    model_run_close(&there);
}

static void one_model(void **state)
{
    tssa_session_work work = {0};
    for (int level = 0; level < LEVELS; level++)
        run_level(*state, level, &work);
    work_table_add(&table, *state, &work);
}

/* It computes: what `null` guesses is told by the data. */
static void test_share(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/get_started_small/model.onnx";
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "emulated", .data_share = 0.5};
    struct model_run run = {0};
    (void)state;
    no_error(model_run_open(&run, path, 0));
    tssa_status *status = tssa_session_create(run.model, &options, &run.session);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    assert_non_null(strstr(tssa_status_message(status), "device emulated computes"));
    tssa_status_free(status);
    model_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share)};
    work_table_open(&table, "emulated.txt", "test_emulated");
    int failed = cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model);
    failed += work_table_close(&table, !failed);
    return failed;
}
