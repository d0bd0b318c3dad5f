/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs of the committed models would ask of a device, by number: on the device `null`, in a
 * run like the ones before it. tests/golden/null.txt is the table of level 2, null_0.txt and
 * null_1.txt are those of the others, which TSSA_UPDATE_GOLDEN=1 in the environment has written
 * anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/work_table.h"

#define RUNS 8 /* sizes are learnt, and the layout has taken its time */
#define LEVELS 3

static const char *const files[LEVELS] = {"null_0.txt", "null_1.txt", "null.txt"};
static struct work_table tables[LEVELS];

static void drop_outputs(struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_free(run->outputs[i]);
        run->outputs[i] = NULL;
    }
}

/* Every output has a value, of the rank that the model declares, if it does. */
static void check_outputs(const struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_info info;
        assert_non_null(run->outputs[i]);
        no_error(tssa_model_output(run->model, i, &info));
        if (info.kind == TSSA_KIND_TENSOR && info.rank >= 0)
            assert_int_equal(model_run_output(run, i)->tensor.rank, info.rank);
    }
}

static void open_model(struct model_run *run, const char *path, int level, double share)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = level, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "null", .data_share = share};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    no_error(model_run_read_inputs(run, path));
    no_error(tssa_session_create(run->model, &options, &run->session));
}

static void run_model(const char *path, int level, tssa_session_work *work)
{
    struct model_run run = {0};
    open_model(&run, path, level, 0);
    no_error(tssa_session_counts(run.session, work));
    assert_true(work->launches == 0 && work->allocations == 0);
    tssa_session_work before;
    for (int i = 0; i < RUNS; i++) {
        before = *work;
        drop_outputs(&run);
        no_error(model_run_execute(&run));
        no_error(tssa_session_counts(run.session, work));
        check_outputs(&run);
    }
    assert_int_equal(work->launches, before.launches);
    assert_int_equal(work->library_calls, before.library_calls);
    assert_int_equal(work->bytes, before.bytes);
    assert_int_equal(work->copies, before.copies);
    assert_int_equal(work->copied_bytes, before.copied_bytes);
    assert_int_equal(work->waits, before.waits);
    model_run_close(&run);
}

static void count_model(const char *path, int level)
{
    tssa_session_work work;
    run_model(path, level, &work);
    work_table_add(&tables[level], path, &work);
}

/* As they are loaded, sequences leave many values without a rank, and the CPU computes on the zeros
 * that it gets for them. */
static void one_model_as_it_is(void **state)
{
    count_model(*state, 0);
}

static void one_model_quickly(void **state)
{
    count_model(*state, 1);
}

static void one_model(void **state)
{
    count_model(*state, 2);
}

/* ---- A share --------------------------------------------------------------------------------- */

/* What one run writes and reads where NonZero finds this share. */
static uint64_t bytes_with_share(double share)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/solov2_small/model.onnx";
    struct model_run run = {0};
    tssa_session_work work;
    open_model(&run, path, 2, share);
    no_error(model_run_execute(&run));
    no_error(tssa_session_counts(run.session, &work));
    model_run_close(&run);
    return work.bytes;
}

static void test_share(void **state)
{
    (void)state;
    const uint64_t all = bytes_with_share(0), half = bytes_with_share(0.5);
    assert_int_equal(bytes_with_share(1), all);
    assert_true(half < all && bytes_with_share(0.25) < half);
}

/* However little is found, every size fits the others. */
static void one_model_of_little(void **state)
{
    for (int level = 0; level < LEVELS; level++) {
        struct model_run run = {0};
        open_model(&run, *state, level, 0.01);
        no_error(model_run_execute(&run));
        check_outputs(&run);
        model_run_close(&run);
    }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void expect(tssa_status *status, tssa_code code, const char *message)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), message));
    tssa_status_free(status);
}

static void test_refusals(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/get_started_small/model.onnx";
    struct model_run run = {0};
    tssa_session_options options = {.struct_size = sizeof options, .device = "abacus"};
    tssa_session_work work;
    (void)state;
    no_error(model_run_open(&run, path, 0));
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_UNSUPPORTED,
           "there is no device \"abacus\": this build has cpu, null, emulated");
    options.device = tssa_device_name(0);
    no_error(tssa_session_create(run.model, &options, &run.session));
    expect(tssa_session_counts(run.session, &work), TSSA_UNSUPPORTED, "cpu, does not count");
    tssa_session_free(run.session);
    run.session = NULL;
    options.data_share = 0.5;
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_INVALID_ARGUMENT,
           "device cpu computes");
    options.data_share = 1.5;
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_INVALID_ARGUMENT, "0 to 1");
    options.data_share = 0;
    no_error(tssa_session_create(run.model, &options, &run.session));
    expect(tssa_session_counts(run.session, NULL), TSSA_INVALID_ARGUMENT, "NULL");
    expect(tssa_session_counts(NULL, &work), TSSA_INVALID_ARGUMENT, "NULL");
    assert_null(tssa_device_name(99));
    model_run_close(&run);
}

/* ---------------------------------------------------------------------------------------------- */

int main(void)
{
    for (int i = 0; i < LEVELS; i++)
        work_table_open(&tables[i], files[i], "test_null");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_share)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model) +
                 committed_models_test(one_model_quickly) +
                 committed_models_test(one_model_as_it_is) +
                 committed_models_test(one_model_of_little);
    const bool good = !failed;
    for (int i = 0; i < LEVELS; i++)
        failed += work_table_close(&tables[i], good);
    return failed;
}
