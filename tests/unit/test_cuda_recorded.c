/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded runs on the device `cuda`, on a fake driver whose graphs run in a random order that
 * their edges allow: with inputs that change from run to run all committed models give what the CPU
 * gives, and those in which the host decides nothing are replayed; other shapes are another
 * recording; what a recording cannot be made of runs without one; each call fails once.
 */
/* ctest-timeout: 900 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "api/session.h"
#include "common/committed_models.h"
#include "common/fake_cuda.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/session_pair.h"
#include "common/test_card.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define RUNS 8            /* a recording is made after three with the same sizes */
#define LONG 50           /* more than three times what the slab's layout is compared after */
#define LEAST_REPLAYED 20 /* of the committed models */

/* ---- Models ---------------------------------------------------------------------------------- */

/* Another input of the same shape; integers, which may be sizes and numbers, stay. */
static void change(const struct model_run *run, int turn)
{
    static const float factors[] = {1, 0.5F, 1.25F};
    for (size_t i = 0; i < run->input_count; i++) {
        if (!run->inputs[i] || run->inputs[i]->value.kind != TSSA_KIND_TENSOR ||
            run->inputs[i]->value.tensor.dtype != TSSA_FLOAT)
            continue;
        const struct tensor *tensor = &run->inputs[i]->value.tensor;
        for (size_t k = 0; k < tensor_count(tensor); k++)
            ((float *)tensor->data)[k] *= factors[turn % 3];
    }
}

static int replayed; /* models */

static void one_model(void **state)
{
    struct model_run wanted = {0}, made = {0};
    const char *path = *state;
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    for (int i = 0; i < RUNS; i++) {
        change(&wanted, i);
        change(&made, i);
        no_error(model_on_device_run(&wanted));
        no_error(model_on_device_run(&made));
        model_on_device_compare(&made, &wanted, path);
    }
    if (made.session->now->plan->driven)
        assert_int_equal(made.session->counts.replays, 0);
    replayed += made.session->counts.replays != 0;
    model_run_close(&wanted);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- Programs -------------------------------------------------------------------------------- */

struct program {
    struct device_context device;
    struct ir_graph *graph;
    struct plan *on_device, *on_host;
    struct run *run, *wanted;
};

static void program_open(struct program *p, const char *text)
{
    *p = (struct program){.graph = NULL};
    device_context_open(&p->device, device_find("cuda"), &allocator_default, NULL);
    p->device.host = test_device();
    no_error(device_context_connect(&p->device));
    no_error(ir_parse(&allocator_default, text, strlen(text), &p->graph));
    no_error(ir_infer_graph(p->graph));
    no_error(plan_create(p->graph, &p->device, &p->on_device));
    no_error(plan_create(p->graph, test_device(), &p->on_host));
    no_error(run_create(p->on_device, &allocator_default, NULL, false, &p->run));
    no_error(run_create(p->on_host, &allocator_default, NULL, false, &p->wanted));
}

static void program_close(struct program *p)
{
    run_free(p->run);
    run_free(p->wanted);
    plan_free(p->on_device);
    plan_free(p->on_host);
    ir_graph_free(p->graph);
    device_context_close(&p->device);
    assert_int_equal(fake_cuda_alive(), 0);
}

enum { WIDTH = 4, MOST_ROWS = 5, OUTPUTS = 2 };

/* A run of [rows, WIDTH] elements that are `first`, `first` + 1, ...: if it succeeds it gives what
 * the CPU gives. */
static tssa_status *go(struct program *p, int64_t rows, float first)
{
    float elements[MOST_ROWS * WIDTH];
    struct value x = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .rank = 2, .data = elements}};
    struct value made[OUTPUTS] = {{.kind = TSSA_KIND_NONE}},
                 wanted[OUTPUTS] = {{.kind = TSSA_KIND_NONE}};
    const struct value *const inputs[] = {&x};
    x.tensor.dims[0] = rows;
    x.tensor.dims[1] = WIDTH;
    for (int64_t i = 0; i < rows * WIDTH; i++)
        elements[i] = first + (float)i;
    tssa_status *status = run_execute(p->run, inputs, made);
    no_error(run_execute(p->wanted, inputs, wanted));
    for (int i = 0; i < OUTPUTS; i++) {
        assert_true(status || same_value(&made[i], &wanted[i]));
        if (made[i].kind == TSSA_KIND_TENSOR) /* which is the caller's */
            memset(made[i].tensor.data, 0x5a, tensor_bytes(&made[i].tensor));
        value_release(&made[i]);
        value_release(&wanted[i]);
    }
    return status;
}

/* Whether it was a replay. */
static bool same(struct program *p, int64_t rows, float first)
{
    no_error(go(p, rows, first));
    return p->run->counts.replays != 0;
}

static const char loop[] = "graph @g opset(\"\": 26) ir_version(13) (%x: f32[N, 4]) -> (%y, %n) {\n"
                           "  %trips = Constant() {value = i64[] 3}\n"
                           "  %shape = Shape(%x)\n"
                           "  %y, %all = Loop(%trips, _, %x) {\n"
                           "    body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                           "      %u = fuse(%v, %i) {\n"
                           "        body(%p: f32[N, 4], %q: i64[]) {\n"
                           "          %j = Cast(%q) {to = 1}\n"
                           "          %w = Add(%p, %j)\n"
                           "          %r = Relu(%w)\n"
                           "          return(%r)\n"
                           "        }\n"
                           "      }\n"
                           "      return(%c, %u, %u)\n"
                           "    }\n"
                           "  }\n"
                           "  %n = Add(%shape, %shape)\n"
                           "  return(%y, %n)\n"
                           "}\n";

/* Numbers of iterations are given to launches; the host returns what shapes tell. */
static void test_shapes(void **state)
{
    struct program p;
    int replays = 0;
    (void)state;
    program_open(&p, loop);
    if (p.on_device->driven)
        fail_msg("%s", p.on_device->driven);
    for (int64_t rows = 3; rows <= MOST_ROWS; rows += 2)
        for (int i = 0; i < RUNS; i++)
            replays += same(&p, rows, (float)(i - 4));
    for (int i = 0; i < RUNS; i++)
        replays += same(&p, 3, (float)(4 - i));
    assert_true(replays >= RUNS); /* of 3 * RUNS, some to settle before each */
    program_close(&p);
}

/* Which is told, or made up for by a run without a recording. */
static void test_each_call_fails_once(void **state)
{
    struct program p;
    bool more = true;
    unsigned long told = 0, call;
    (void)state;
    for (call = 0; more; call++) {
        program_open(&p, loop);
        const unsigned long before = fake_cuda_calls();
        fake_cuda_fail_at(before + call, 999);
        for (int i = 0; i < RUNS; i++) {
            tssa_status *status = go(&p, 3, (float)i);
            told += status != NULL;
            tssa_status_free(status);
        }
        more = fake_cuda_calls() > before + call;
        fake_cuda_fail_at(-1ul, 0);
        assert_true(same(&p, 3, 1) || same(&p, 3, 2) || same(&p, 3, 3) || same(&p, 3, 4));
        program_close(&p);
    }
    assert_true(told > 0 && told < call);
}

/* What is recorded stays, however often memory is looked at again. */
static void test_stays(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/attention_nd_small/model.onnx";
    struct model_run made = {0};
    (void)state;
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    for (int i = 0; i < LONG; i++) {
        no_error(model_on_device_run(&made));
        assert_true(i < RUNS || made.session->counts.replays == 1);
    }
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

static void open_on_card(struct session_pair *p, const char *text, int threads)
{
    const tssa_session_options options = {.struct_size = sizeof options, .device = "cuda"};
    *p = (struct session_pair){0};
    session_pair_load(p, text, threads);
    no_error(tssa_session_create(p->model, &options, &p->kernels));
}

/* The last run was none of those that replay what was recorded. */
static void close_unrecorded(struct session_pair *p, int n, tssa_value *const *inputs)
{
    assert_int_equal(p->kernels->counts.replays, 0);
    for (int i = 0; i < n; i++)
        tssa_value_free(inputs[i]);
    session_pair_close(p);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* Of which the host must know the number of iterations: a launch's, and rows of what it stacks. */
static void test_trips_are_an_input(void **state)
{
    static const char text[] = SESSION_MODEL(
        "%x: f32[T, N], %h: f32[N], %n: i64[]", "%last, %all",
        "%last, %all = Loop(%n, _, %h) { body(%i: i64[], %go: bool[], %c: f32[N]) {\n"
        "%r = Gather(%x, %i) %q = Add(%c, %r) %s = Relu(%q) return(%go, %s, %q) } }\n");
    static const int64_t dims[] = {MOST_ROWS, WIDTH};
    struct session_pair p;
    tssa_value *inputs[3];
    (void)state;
    open_on_card(&p, text, 1);
    inputs[0] = session_pair_floats(&p, 2, dims, false);
    inputs[1] = session_pair_floats(&p, 1, dims + 1, false);
    no_error(tssa_tensor_create(p.context, TSSA_INT64, 0, NULL, &inputs[2]));
    for (int i = 0; i < 2 * RUNS; i++) {
        *(int64_t *)tssa_tensor_data(inputs[2]) = i < RUNS ? 3 : MOST_ROWS;
        session_pair_run(&p, 3, inputs, 2);
    }
    close_unrecorded(&p, 3, inputs);
}

/* What the host is asked for is a shape, which an input's number tells. */
static void test_lengths_are_an_input(void **state)
{
    static const char text[] =
        SESSION_MODEL("%n: i64[], %x: f32[K]", "%s, %y",
                      "%zero = Constant() {value = i64[] 0} %one = Constant() {value = i64[] 1}\n"
                      "%r = Range(%zero, %n, %one) %s = Shape(%r) %y = Relu(%x)\n");
    const int64_t width = WIDTH;
    struct session_pair p;
    tssa_value *inputs[2];
    (void)state;
    open_on_card(&p, text, 1);
    no_error(tssa_tensor_create(p.context, TSSA_INT64, 0, NULL, &inputs[0]));
    inputs[1] = session_pair_floats(&p, 1, &width, false);
    for (int i = 0; i < 2 * RUNS; i++) {
        *(int64_t *)tssa_tensor_data(inputs[0]) = i / 2;
        session_pair_run(&p, 2, inputs, 2);
    }
    close_unrecorded(&p, 2, inputs);
}

/* Of which the host waits for the number of iterations. */
static void test_trips_are_computed(void **state)
{
    static const char text[] =
        SESSION_MODEL("%x: f32[N], %h: f32[N]", "%last",
                      "%m = ReduceMax(%x) {keepdims = 0} %n = Cast(%m) {to = 7}\n"
                      "%last = Loop(%n, _, %h) { body(%i: i64[], %go: bool[], %c: f32[N]) {\n"
                      "%q = Add(%c, %c) %s = Relu(%q) return(%go, %s) } }\n");
    const int64_t width = WIDTH;
    struct session_pair p;
    tssa_value *inputs[2];
    (void)state;
    open_on_card(&p, text, 1);
    for (int i = 0; i < 2; i++)
        inputs[i] = session_pair_floats(&p, 1, &width, false);
    for (int i = 0; i < 2 * RUNS; i++) {
        ((float *)tssa_tensor_data(inputs[0]))[3] = (float)(3 + i % 4);
        session_pair_run(&p, 2, inputs, 1);
    }
    close_unrecorded(&p, 2, inputs);
}

/* ---- Shapes that take turns ------------------------------------------------------------------ */

/* One run of a session whose inputs have so many rows; whether it was a replay. */
static bool turn(struct session_pair *p, int64_t rows)
{
    const int64_t dims[] = {rows, WIDTH};
    tssa_value *input = session_pair_floats(p, 2, dims, false);
    session_pair_run(p, 1, &input, 1);
    tssa_value_free(input);
    return p->kernels->counts.replays != 0;
}

static void test_shapes_take_turns(void **state)
{
    static const char text[] = SESSION_MODEL("%x: f32[N, M]", "%y",
                                             "%a = Add(%x, %x) %s = Softmax(%a) {axis = 1}\n"
                                             "%m = Mul(%s, %x) %y = Relu(%m)\n");
    struct session_pair p;
    int replays = 0;
    (void)state;
    open_on_card(&p, text, 1);
    for (int64_t rows = 1; rows <= 2 * GENERATION_SEEN; rows++)
        assert_false(turn(&p, rows));
    assert_int_equal(p.kernels->now->idle.count, 1); /* none came again */
    for (int i = 0; i < RUNS; i++)
        for (int64_t rows = 1; rows <= GENERATION_STATES; rows++)
            replays += turn(&p, rows);
    assert_true(replays >= 3 * GENERATION_STATES);
    for (int64_t rows = 1; rows <= GENERATION_STATES; rows++)
        assert_true(turn(&p, rows)); /* each of them is there */
    assert_int_equal(p.kernels->now->idle.count, GENERATION_STATES);
    for (int i = 0; i < RUNS; i++) /* takes the one of 1 row */
        replays = turn(&p, GENERATION_STATES + 1);
    assert_int_equal(replays, 1);
    for (int64_t rows = 2; rows <= GENERATION_STATES; rows++)
        assert_true(turn(&p, rows));
    assert_false(turn(&p, 1));
    assert_int_equal(p.kernels->now->idle.count, GENERATION_STATES);
    session_pair_close(&p);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* Inputs and outputs that are so large that they are staged, in recorded runs as well. */
static void test_large_inputs(void **state)
{
    static const char text[] =
        SESSION_MODEL("%x: f32[N, M]", "%y", "%a = Add(%x, %x) %y = Relu(%a)\n");
    static const int64_t dims[] = {1024, 1200};
    struct session_pair p;
    (void)state;
    open_on_card(&p, text, 2);
    for (int i = 0; i < RUNS; i++) {
        tssa_value *input = session_pair_floats(&p, 2, dims, false);
        session_pair_run(&p, 1, &input, 1);
        tssa_value_free(input);
    }
    assert_int_equal(p.kernels->counts.replays, 1);
    session_pair_close(&p);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* A Loop that never runs returns what it was given, and not what its body returns. */
static void test_no_trips(void **state)
{
    static const char text[] =
        "graph @g opset(\"\": 26) ir_version(13) (%x: f32[1, 4], %k: i64[1]) -> (%y) {\n"
        "  %none = Constant() {value = i64[] 0}\n"
        "  %two = Constant() {value = i64[1] [2]}\n"
        "  %four = Constant() {value = i64[1] [4]}\n"
        "  %n = Loop(%none, _, %k) { body(%i: i64[], %c: bool[], %v: i64[1]) { return(%c, %two) } "
        "}\n"
        "  %shape = Concat(%n, %four) {axis = 0}\n"
        "  %y = Expand(%x, %shape)\n"
        "  return(%y)\n"
        "}\n";
    float elements[WIDTH] = {1, 2, 3, 4};
    int64_t rows;
    const struct value x = {.kind = TSSA_KIND_TENSOR,
                            .tensor = {.dtype = TSSA_FLOAT,
                                       .rank = 2,
                                       .dims = {1, WIDTH},
                                       .data = elements}},
                       k = {.kind = TSSA_KIND_TENSOR,
                            .tensor = {.dtype = TSSA_INT64, .rank = 1, .dims = {1}, .data = &rows}};
    const struct value *const inputs[] = {&x, &k};
    struct program p;
    (void)state;
    program_open(&p, text);
    for (int i = 0; i < 2 * RUNS; i++) {
        struct value made = {.kind = TSSA_KIND_NONE}, wanted = {.kind = TSSA_KIND_NONE};
        rows = i < RUNS ? 3 : MOST_ROWS;
        no_error(run_execute(p.run, inputs, &made));
        no_error(run_execute(p.wanted, inputs, &wanted));
        assert_int_equal(wanted.tensor.dims[0], rows);
        assert_true(same_value(&made, &wanted));
        value_release(&made);
        value_release(&wanted);
    }
    program_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_stays),
                                       cmocka_unit_test(test_trips_are_an_input),
                                       cmocka_unit_test(test_lengths_are_an_input),
                                       cmocka_unit_test(test_trips_are_computed),
                                       cmocka_unit_test(test_shapes_take_turns),
                                       cmocka_unit_test(test_large_inputs),
                                       cmocka_unit_test(test_no_trips)},
                            fakes[] = {cmocka_unit_test(test_each_call_fails_once)};
    fake_cuda_use(true);
    int failed = test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    failed += committed_models_test(one_model);
    if (replayed >= LEAST_REPLAYED)
        return failed;
    fprintf(stderr, "no more than %d models are replayed\n", replayed);
    return failed + 1;
}
