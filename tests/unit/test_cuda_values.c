/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and outputs in the caller's memory on the device `cuda`, on a fake driver or a card: all
 * committed models read the ones and write the others there, with and without a recording; memory
 * of another device and other shapes are refused. Runs in the caller's stream come after what was
 * asked of it, and return before they are done where they may.
 */
/* ctest-timeout: 900 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "api/session.h"
#include "common/committed_models.h"
#include "common/fake_cuda.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/test_card.h"
#include "common/there.h"
#include "common/xmalloc.h"
#include "device/cuda/cuda_api.h"

#define RUNS 6       /* the last ones are replays, where runs are recorded */
#define NOBODYS 0xee /* what memory holds that nobody should read, or has written */

/* The caller's memory for a model's inputs and outputs. */
struct set {
    struct there inputs, outputs;
};

static void set_open(struct set *s, const struct model_run *run)
{
    struct device_context *device = run->session->device;
    there_open(&s->inputs, run->context, device, run->inputs, run->input_count, 0);
    there_open(&s->outputs, run->context, device, run->outputs, run->output_count, 0);
    there_copy(&s->inputs, run->inputs, DEVICE_COPY_IN);
    there_fill(&s->outputs, NOBODYS);
}

static void set_close(struct set *s)
{
    there_close(&s->inputs);
    there_close(&s->outputs);
}

/* A run in a set, of which the inputs stay as they are, gives what is wanted. */
static void run_there(const struct set *s, struct model_run *made, const struct model_run *wanted,
                      const char *path)
{
    tssa_value **in = xcalloc(made->input_count + 1, sizeof *in),
               **out = xcalloc(made->output_count + 1, sizeof *out);
    for (size_t i = 0; i < made->input_count; i++)
        in[i] = s->inputs.values[i] ? s->inputs.values[i] : made->inputs[i];
    for (size_t i = 0; i < made->output_count; i++)
        out[i] = s->outputs.values[i];
    there_fill(&s->outputs, NOBODYS);
    no_error(tssa_session_run(made->session, made->input_count, in, made->output_count, out));
    there_copy(&s->outputs, made->outputs, DEVICE_COPY_OUT);
    model_on_device_compare(made, wanted, path);
    assert_true(there_is(&s->inputs, made->inputs));
    for (size_t i = 0; i < made->output_count; i++)
        if (!s->outputs.values[i])
            tssa_value_free(out[i]);
    free(in);
    free(out);
}

/* Two sets in turns: a run does not touch the other one, of which the inputs are no good either. */
static void take_turns(const struct set sets[2], struct model_run *made,
                       const struct model_run *wanted, const char *path)
{
    for (int turn = 0; turn < RUNS; turn++) {
        const struct set *own = &sets[turn % 2], *other = &sets[1 - turn % 2];
        there_copy(&own->inputs, made->inputs, DEVICE_COPY_IN);
        there_fill(&other->inputs, NOBODYS);
        there_fill(&other->outputs, NOBODYS);
        run_there(own, made, wanted, path);
        assert_true(there_is_filled(&other->outputs, NOBODYS));
    }
}

/* Inputs and outputs at the same addresses, in turns at two, and ever at others. */
static void one_model(void **state)
{
    struct model_run wanted = {0}, made = {0};
    struct set sets[2];
    const char *path = *state;
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    no_error(model_on_device_run(&wanted));
    no_error(model_on_device_run(&made)); /* for the shapes of what comes out */
    for (int i = 0; i < 2; i++)
        set_open(&sets[i], &made);
    for (int turn = 0; turn < RUNS; turn++)
        run_there(&sets[0], &made, &wanted, path);
    take_turns(sets, &made, &wanted, path);
    for (int turn = 0; turn < 2; turn++) {
        struct set other;
        set_open(&other, &made);
        run_there(&other, &made, &wanted, path);
        set_close(&other);
    }
    for (int i = 0; i < 2; i++)
        set_close(&sets[i]);
    model_run_close(&wanted);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- Streams of the caller's ----------------------------------------------------------------- */

struct callers {
    struct cuda_api api;
    cuda_stream stream;
};

static void callers_open(struct callers *c)
{
    no_error(cuda_api_open(&c->api));
    no_error(CUDA(&c->api, cuStreamCreate, &c->stream, CUDA_STREAM_NON_BLOCKING));
}

/* The run comes after what writes its inputs, and what waits for the stream after the run. */
static void run_in(const struct callers *c, const struct model_run *made, const struct set *s)
{
    const tssa_run_options options = {.struct_size = sizeof options, .stream = c->stream};
    there_fill(&s->inputs, 0);
    for (size_t i = 0; i < s->inputs.n; i++)
        no_error(CUDA(&c->api, cuMemcpyHtoDAsync_v2,
                      (cuda_address)(uintptr_t)there_memory(&s->inputs, i),
                      made->inputs[i]->value.tensor.data, s->inputs.sizes[i], c->stream));
    there_fill(&s->outputs, NOBODYS);
    no_error(tssa_session_run_with(made->session, &options, s->inputs.n, s->inputs.values,
                                   s->outputs.n, s->outputs.values));
}

static void compare_there(const struct set *s, struct model_run *made,
                          const struct model_run *wanted, const char *path)
{
    there_copy(&s->outputs, made->outputs, DEVICE_COPY_OUT);
    model_on_device_compare(made, wanted, path);
}

/* Of one output alone a run is no replay, and done when it returns, be it behind one. */
static void run_some(const struct callers *c, struct model_run *made, const struct set *s)
{
    static const size_t first[] = {0};
    const tssa_run_options options = {
        .struct_size = sizeof options, .stream = c->stream, .wanted = first};
    there_fill(&s->outputs, NOBODYS);
    no_error(tssa_session_run_with(made->session, &options, s->inputs.n, s->inputs.values, 1,
                                   s->outputs.values));
    assert_int_equal(made->session->counts.replays, 0);
    assert_false(there_is_filled(&s->outputs, NOBODYS));
}

/* Replays return before they are done, also where the set of the run before is another one. */
static void test_stream(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/seq2seq_small/model.onnx";
    struct model_run wanted = {0}, made = {0};
    struct set sets[2];
    struct callers callers;
    (void)state;
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    no_error(model_on_device_run(&wanted));
    no_error(model_on_device_run(&made));
    callers_open(&callers);
    for (int i = 0; i < 2; i++)
        set_open(&sets[i], &made);
    for (int turn = 0; turn < 4 * RUNS; turn++) {
        const struct set *own = &sets[turn < 2 * RUNS ? 0 : turn % 2];
        run_in(&callers, &made, own);
        /* The second set is recorded the second time that it is there. */
        if ((turn >= RUNS && turn < 2 * RUNS) || turn >= 2 * RUNS + 4) {
            assert_int_equal(made.session->counts.replays, 1);
            assert_int_equal(made.session->counts.copies, 0);
            /* which shows that nobody has waited */
            assert_true(test_card() || there_is_filled(&own->outputs, NOBODYS));
        }
        no_error(CUDA(&callers.api, cuStreamSynchronize, callers.stream));
        compare_there(own, &made, &wanted, path);
    }
    for (int turn = 0; turn < 2; turn++) /* both under way */
        run_in(&callers, &made, &sets[turn]);
    no_error(CUDA(&callers.api, cuStreamSynchronize, callers.stream));
    for (int turn = 0; turn < 2; turn++)
        compare_there(&sets[turn], &made, &wanted, path);
    run_some(&callers, &made, &sets[0]);
    run_in(&callers, &made, &sets[0]); /* which is under way when all of it is freed */
    for (int i = 0; i < 2; i++)
        set_close(&sets[i]);
    no_error(CUDA(&callers.api, cuStreamDestroy_v2, callers.stream));
    model_run_close(&wanted);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

static void test_stream_of_others(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/lstm_small/model.onnx";
    struct model_run run = {0};
    (void)state;
    no_error(model_on_device_open(&run, path, 2, NULL));
    const tssa_run_options options = {.struct_size = sizeof options, .stream = &run};
    tssa_status *status = tssa_session_run_with(run.session, &options, run.input_count, run.inputs,
                                                run.output_count, run.outputs);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    assert_non_null(strstr(tssa_status_message(status), "a session on cpu takes no stream"));
    tssa_status_free(status);
    model_run_close(&run);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void expect_error(tssa_status *status, const char *part)
{
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    if (!strstr(tssa_status_message(status), part))
        fail_msg("%s", tssa_status_message(status));
    tssa_status_free(status);
}

static void test_refused(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/offset2bbox/model.onnx";
    const int64_t dims[] = {1};
    char memory[8] = {0};
    struct model_run made = {0};
    tssa_value *value = NULL, *sequence = NULL;
    (void)state;
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    expect_error(tssa_tensor_borrow_on(made.context, "cpu", TSSA_FLOAT, 1, dims, memory, 8, &value),
                 "there is no device \"cpu\" with memory of its own");
    expect_error(tssa_tensor_borrow_on(made.context, NULL, TSSA_FLOAT, 1, dims, memory, 8, &value),
                 "memory of its own");
    expect_error(
        tssa_tensor_borrow_on(made.context, "cuda", TSSA_FLOAT, 1, dims, memory, 3, &value),
        "needs 4 bytes");
    no_error(
        tssa_tensor_borrow_on(made.context, "emulated", TSSA_FLOAT, 1, dims, memory, 8, &value));
    expect_error(tssa_sequence_create(made.context, TSSA_FLOAT, 1, &value, &sequence),
                 "only a run takes it");
    tssa_value *old = made.inputs[0];
    made.inputs[0] = value;
    expect_error(model_run_execute(&made),
                 "a tensor lies in memory of emulated, and the session is on cuda");
    made.inputs[0] = old;
    no_error(model_run_execute(&made));
    tssa_value_free(value);
    model_run_close(&made);
}

/* ---- Two cards ------------------------------------------------------------------------------- */

/* That memory of one card is not given to the other: the fakes refuse it, too. */
static void expect_apart(const struct model_run *first, const struct model_run *second)
{
    struct device_context *one = first->session->device, *two = second->session->device;
    struct device_stream *here, *there;
    const int64_t dims[] = {1};
    tssa_value *value = NULL, *old = first->inputs[0];
    no_error(one->device->stream_open(one, &here));
    no_error(two->device->stream_open(two, &there));
    void *memory = one->device->allocate(here, 4);
    tssa_status *status = two->device->fill(there, (struct device_place){memory, 0}, 0, 4);
    assert_non_null(status);
    tssa_status_free(status);
    no_error(
        tssa_tensor_borrow_on(first->context, "cuda:1", TSSA_FLOAT, 1, dims, memory, 4, &value));
    assert_string_equal(tssa_value_device(value), "cuda:1");
    first->inputs[0] = value;
    expect_error(model_on_device_run((struct model_run *)first),
                 "a tensor lies in memory of cuda:1, and the session is on cuda");
    first->inputs[0] = old;
    tssa_value_free(value);
    no_error(one->device->fill(here, (struct device_place){memory, 0}, 0, 4));
    one->device->release(here, memory, 4);
    one->device->stream_close(here);
    two->device->stream_close(there);
}

/* Sessions in one process, in turns, recorded ones, too; each in its card's context. */
static void test_two_cards(void **state)
{
    static const char *const paths[] = {TSSA_SOURCE_DIR "/models/nasrnn_small/model.onnx",
                                        TSSA_SOURCE_DIR "/models/yolov3_loop_small/model.onnx"};
    (void)state;
    if (test_card())
        skip(); /* how many there are, nobody knows */
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    for (int i = 0; i < 2; i++) {
        struct model_run wanted = {0}, first = {0}, second = {0};
        no_error(model_on_device_open(&wanted, paths[i], 2, NULL));
        no_error(model_on_device_run(&wanted));
        no_error(model_on_device_open(&first, paths[i], 2, "cuda:0"));
        no_error(model_on_device_open(&second, paths[i], 2, "cuda:1"));
        for (int turn = 0; turn < RUNS; turn++) {
            no_error(model_on_device_run(&first));
            no_error(model_on_device_run(&second));
            model_on_device_compare(&first, &wanted, paths[i]);
            model_on_device_compare(&second, &wanted, paths[i]);
        }
        expect_apart(&first, &second);
        no_error(model_on_device_run(&second));
        model_run_close(&wanted);
        model_run_close(&first);
        model_run_close(&second);
    }
    unsetenv("FAKE_CUDA_DEVICES");
    assert_int_equal(fake_cuda_alive(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_two_cards),
        cmocka_unit_test(test_stream), cmocka_unit_test(test_stream_of_others)};
    fake_cuda_use(true);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
