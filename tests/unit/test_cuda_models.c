/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on the device `cuda`, on a fake driver (tests/cuda): all committed models give the CPU's
 * bits, in whatever order threads run, and nothing is left; and each call of the driver and of
 * NVRTC fails once, after which the session gives them, too.
 *
 * On a card (test_card.h): the models and the threads.
 */
/* ctest-timeout: 900 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/fake_cuda.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/test_card.h"
#include "common/xmalloc.h"

static void one_model(void **state)
{
    static const char *const orders[] = {"1", "0", "2"};
    for (int level = 0; level <= 2; level++) {
        setenv("FAKE_CUDA_ORDER", orders[level], 1);
        model_on_device_check(*state, level, "cuda", 2);
        assert_int_equal(fake_cuda_alive(), 0);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { THREADS = 3, RUNS_OF_A_THREAD = 10 };

struct thread {
    pthread_t id;
    struct model_run run; /* the session and the inputs are those of all */
    const struct model_run *wanted;
    bool same;
};

/* No assertions: they end a test in its own thread. */
static void *run_often(void *user)
{
    struct thread *thread = user;
    struct model_run *run = &thread->run;
    thread->same = true;
    for (int i = 0; i < RUNS_OF_A_THREAD && thread->same; i++) {
        tssa_status *status = model_on_device_run(run);
        thread->same = status == NULL;
        tssa_status_free(status);
        for (size_t k = 0; k < run->output_count && thread->same; k++)
            thread->same =
                same_value(model_run_output(run, k), model_run_output(thread->wanted, k));
    }
    for (size_t k = 0; k < run->output_count; k++)
        tssa_value_free(run->outputs[k]);
    free(run->outputs);
    return NULL;
}

/* Each of them has to make the card's context its own. Sums of products are the device's, whose
 * order is the same in each run. */
static void test_threads_share_a_session(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/lstm_small/model.onnx";
    (void)state;
    struct model_run wanted = {0}, made = {0};
    struct thread threads[THREADS];
    no_error(model_on_device_open(&wanted, path, 2, "cuda"));
    no_error(model_on_device_run(&wanted));
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.run = made, .wanted = &wanted};
        threads[i].run.outputs = xcalloc(made.output_count, sizeof *made.outputs);
        assert_int_equal(pthread_create(&threads[i].id, NULL, run_often, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i].id, NULL), 0);
        assert_true(threads[i].same);
    }
    model_run_close(&wanted);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void expect_told(tssa_status *status)
{
    if (!strstr(tssa_status_message(status), "999 (made up)") &&
        !strstr(tssa_status_message(status), "nvrtc"))
        assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
    tssa_status_free(status);
}

/* Call number `call` fails. Whether anybody was told. */
static bool fail_one(const char *path, const struct model_run *wanted, unsigned long call)
{
    struct model_run made = {0};
    fake_cuda_fail_at(fake_cuda_calls() + call, 999);
    tssa_status *status = model_on_device_open(&made, path, 2, "cuda");
    const bool opened = status == NULL;
    if (opened)
        status = model_on_device_run(&made);
    const bool told = status != NULL;
    if (told)
        expect_told(status);
    else
        model_on_device_compare(&made, wanted, path);
    fake_cuda_fail_at(-1ul, 0);
    if (opened) {
        no_error(model_on_device_run(&made));
        model_on_device_compare(&made, wanted, path);
    }
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
    return told;
}

/* Each call, or one of so many. */
static void sweep(const char *path, unsigned long step)
{
    struct model_run wanted = {0};
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_run_execute(&wanted));
    const unsigned long before = fake_cuda_calls();
    assert_false(fail_one(path, &wanted, -1ul));
    const unsigned long calls = fake_cuda_calls() - before;
    unsigned long told = 0;
    for (unsigned long i = 0; i < calls; i += step)
        told += fail_one(path, &wanted, i);
    assert_true(told > calls / step / 4); /* half of them are the second run's, or give back */
    model_run_close(&wanted);
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    sweep(TSSA_SOURCE_DIR "/models/if_partial_write_fixed/model.onnx", 1);
    sweep(TSSA_SOURCE_DIR "/models/t_branch_loop_small/model.onnx", 1);
    sweep(TSSA_SOURCE_DIR "/models/solov2_small/model.onnx", 5); /* has most texts */
}

/* After a kernel that fails, a session has no card any more, and another one has. */
static void test_kernels_fail_late(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/t_branch_loop_small/model.onnx";
    (void)state;
    struct model_run made = {0};
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    setenv("FAKE_CUDA_FAIL", "kernel:719", 1);
    tssa_status *status = model_on_device_run(&made);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_non_null(strstr(tssa_status_message(status), "error 719 (made up)"));
    tssa_status_free(status);
    unsetenv("FAKE_CUDA_FAIL");
    status = model_on_device_run(&made); /* it asks for memory first, and gets none */
    assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
    tssa_status_free(status);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
    model_on_device_check(path, 2, "cuda", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_share_a_session)},
                            fakes[] = {cmocka_unit_test(test_each_call_fails_once),
                                       cmocka_unit_test(test_kernels_fail_late)};
    int failed = 0;
    fake_cuda_use(true);
    if (!test_card())
        failed += cmocka_run_group_tests(fakes, NULL, NULL);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
