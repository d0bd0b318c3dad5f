/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of which the device `cuda` computes when they end, and branches over which it decides, in
 * recorded runs: on a fake driver whose conditional nodes run what was captured for them. A run is
 * one replay that copies its inputs and its outputs and nothing else, however often a Loop goes
 * round, and gives what the CPU gives; what is not recorded says why; each call fails once.
 */
/* ctest-timeout: 900 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/session.h"
#include "base/text.h"
#include "codegen/clike/clike.h"
#include "common/fake_cuda.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/process.h"
#include "common/session_pair.h"
#include "common/test_card.h"
#include "device/cuda/conditions.h"
#include "device/cuda/nvrtc.h"
#include "ir/ir.h"
#include "runtime/control_recorded.h"
#include "runtime/plan.h"

enum { WIDTH = 4, SETTLED = 8 /* runs of the same shapes, after which there is a recording */ };

/* Goes on from %x while its largest element is below %limit, MOST times at most. */
#define MOST 9
#define LOOP(trips)                                                                                \
    "%trips = Constant() {value = i64[] " trips "} %one = Constant() {value = f32[] 1}\n"          \
    "%m = ReduceMax(%x) {keepdims = 0} %go = Less(%m, %limit)\n"
#define AGAIN(of) "%b = ReduceMax(" of ") {keepdims = 0} %again = Less(%b, %limit)\n"
#define INPUTS "%x: f32[N, 4], %limit: f32[]"

/* ---- Programs -------------------------------------------------------------------------------- */

/* Two values that change places, and a number that the device counts. */
static const char turns[] = SESSION_MODEL(
    INPUTS, "%y, %z, %n",
    LOOP("9") "%none = Constant() {value = i64[] 0}\n"
              "%y, %z, %n = Loop(%trips, %go, %x, %x, %none) {\n"
              "body(%i: i64[], %c: bool[], %v: f32[N, 4], %w: f32[N, 4], %k: i64[]) {\n"
              "%f = Cast(%i) {to = 1} %g = Add(%w, %f) %u = Add(%g, %one)\n" AGAIN(
                  "%u") "return(%again, %u, %v, %i) } }\n");

/* Without a condition before the first iteration, on whose number rows depend. */
static const char rows[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9") "%y = Loop(%trips, _, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
              "%r = Gather(%x, %i) %s = Add(%v, %r) %u = Add(%s, %one)\n" AGAIN(
                  "%u") "return(%again, %u) } }\n");

/* A Loop of known trips within. */
static const char nested[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9") "%three = Constant() {value = i64[] 3}\n"
              "%y = Loop(%trips, %go, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
              "%f = Cast(%i) {to = 1}\n"
              "%p = Loop(%three, _, %v) { body(%j: i64[], %d: bool[], %q: f32[N, 4]) {\n"
              "%h = Cast(%j) {to = 1} %s = Mul(%q, %h) %t = Add(%s, %f) %o = Sub(%t, %q)\n"
              "return(%d, %o) } }\n"
              "%a = Abs(%p) %u = Add(%a, %one)\n" AGAIN("%u") "return(%again, %u) } }\n");

/* One of which the device finds the end within another, within one of known trips. */
static const char twice[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9") "%two = Constant() {value = i64[] 2} %half = Constant() {value = f32[] 0.5}\n"
              "%y = Loop(%two, _, %x) { body(%i0: i64[], %c0: bool[], %v0: f32[N, 4]) {\n"
              "%y0 = Loop(%trips, %go, %v0) { body(%i1: i64[], %c1: bool[], %v1: f32[N, 4]) {\n"
              "%y1 = Loop(%trips, _, %v1) { body(%i2: i64[], %c2: bool[], %v2: f32[N, 4]) {\n"
              "%u2 = Add(%v2, %one)\n%b2 = ReduceMax(%u2) {keepdims = 0} %g2 = Less(%b2, %limit)\n"
              "return(%g2, %u2) } }\n"
              "%f = Cast(%i1) {to = 1} %s = Mul(%y1, %half) %u = Add(%s, %f)\n" AGAIN(
                  "%u") "return(%again, %u) } }\n"
                        "%e = Mul(%y0, %half) return(%c0, %e) } }\n");

/* More than one launch moves: ten values. */
static const char many[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9") "%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9 = Loop(%trips, %go, %x, %x, %x, "
              "%x, %x, %x, %x, %x, %x, %x) { body(%i: i64[], %c: bool[], %a0: f32[N, 4], "
              "%a1: f32[N, 4], %a2: f32[N, 4], %a3: f32[N, 4], %a4: f32[N, 4], %a5: f32[N, 4], "
              "%a6: f32[N, 4], %a7: f32[N, 4], %a8: f32[N, 4], %a9: f32[N, 4]) {\n"
              "%s = Sub(%a9, %a3) %t = Abs(%s) %q = Add(%t, %a9) %u = Add(%q, %one)\n" AGAIN(
                  "%u") "return(%again, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %u) } }\n"
                        "%s0 = Add(%r0, %r9) %s1 = Sub(%s0, %r5) %s2 = Add(%s1, %r7)\n"
                        "%y = Add(%s2, %r8)\n");

/* Branches that change what both read, in place where they may. */
static const char branches[] = SESSION_MODEL(
    INPUTS, "%y, %z",
    LOOP("9") "%e = Exp(%x) %at = Constant() {value = i64[1, 1] [1]}\n"
              "%axes = Constant() {value = i64[1] [0]}\n"
              "%y, %z = If(%go) { then_branch() {\n"
              "%r = Gather(%e, %at) %s = Squeeze(%r, %axes) %t = Neg(%s)\n"
              "%u = ScatterND(%e, %at, %t) return(%u, %x) }\n"
              "else_branch() {\n"
              "%r1 = Gather(%x, %at) %s1 = Squeeze(%r1, %axes) %t1 = Add(%s1, %one)\n"
              "%u1 = ScatterND(%e, %at, %t1) %v1 = Add(%x, %one) return(%u1, %v1) } }\n");

/* What the host gives one branch, and then another operator: copies within the device, but counted.
 */
enum { GIVEN_COPIES = 2 };
static const char given[] = SESSION_MODEL(
    INPUTS, "%y, %z, %u",
    LOOP("9") "%shape = Shape(%x) %e = Exp(%x)\n"
              "%first = Constant() {value = i64[1] [0]} %second = Constant() {value = i64[1] [1]}\n"
              "%y, %u = If(%go) { then_branch() {\n"
              "%a = Unsqueeze(%shape, %first) %f = Exp(%e) return(%a, %f) }\n"
              "else_branch() { %k = Constant() {value = i64[1, 2] [7, 8]} return(%k, %e) } }\n"
              "%z = Unsqueeze(%shape, %second)\n");

/* What is stacked: what the iteration is given, where another value goes behind it, what it makes,
 * a number, and what nobody wants. */
static const char stacks[] =
    SESSION_MODEL(INPUTS, "%y, %olds, %news, %numbers",
                  LOOP("9") "%y, %olds, %news, %numbers, _ = Loop(%trips, %go, %x) {\n"
                            "body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                            "%f = Cast(%i) {to = 1} %g = Add(%v, %f) %u = Add(%g, %one)\n" AGAIN(
                                "%u") "%e = Exp(%v) return(%again, %u, %v, %u, %b, %e) } }\n");

/* Scalars, one of which is computed of what the device counts, with what goes on behind the Loop.
 */
static const char stack[] = SESSION_MODEL(
    INPUTS, "%all, %sums, %z",
    LOOP("9") "%y, %all, %sums = Loop(%trips, _, %x) {\n"
              "body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
              "%u = Add(%v, %one)\n" AGAIN(
                  "%u") "%f = Cast(%i) {to = 1} %g = Add(%b, %f) return(%again, %u, %b, %g) } }\n"
                        "%s = Sub(%y, %x) %z = Exp(%s)\n");

/* One in a Loop. */
static const char chosen[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9") "%y = Loop(%trips, %go, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
              "%l = ReduceMin(%v) {keepdims = 0} %d = Less(%l, %one)\n"
              "%w = If(%d) { then_branch() { %p = Exp(%v) %q = Abs(%p) return(%q) }\n"
              "else_branch() { %o = Neg(%v) %s = Abs(%o) return(%s) } }\n"
              "%f = Cast(%i) {to = 1} %t = Add(%w, %f) %u = Add(%t, %one)\n" AGAIN(
                  "%u") "return(%again, %u) } }\n");

/* Without a bound. */
static const char endless[] = SESSION_MODEL(
    INPUTS, "%y",
    LOOP("9223372036854775807") "%y = Loop(_, %go, %x) { body(%i: i64[], %c: bool[], %v: f32[N, "
                                "4]) {\n"
                                "%w = Loop(%trips, %go, %v) { body(%j: i64[], %d: bool[], %p: "
                                "f32[N, 4]) {\n"
                                "%q = Add(%p, %one)\n%b1 = ReduceMax(%q) {keepdims = 0} %g1 = "
                                "Less(%b1, %limit)\n"
                                "return(%g1, %q) } }\n"
                                "%u = Add(%w, %one)\n" AGAIN("%u") "return(%again, %u) } }\n");

/* ---- Runs ------------------------------------------------------------------------------------ */

static void open_pair(struct session_pair *p, const char *text)
{
    const tssa_session_options options = {.struct_size = sizeof options, .device = "cuda"};
    *p = (struct session_pair){.context = NULL};
    session_pair_load(p, text, 1);
    no_error(tssa_session_create(p->model, &options, &p->kernels));
}

static void close_pair(struct session_pair *p)
{
    session_pair_close(p);
    assert_int_equal(fake_cuda_alive(), 0);
}

static const char *driven(const struct session_pair *p)
{
    return p->kernels->now->plan->driven;
}

/* Of an input [rows, WIDTH], whose largest element is 1, and the limit. */
static void make_inputs(const struct session_pair *p, int64_t n, float limit, tssa_value **inputs)
{
    const int64_t dims[] = {n, WIDTH};
    inputs[0] = session_pair_floats(p, 2, dims, false);
    ((float *)tssa_tensor_data(inputs[0]))[n * WIDTH - 1] = 1;
    no_error(tssa_tensor_create(p->context, TSSA_FLOAT, 0, NULL, &inputs[1]));
    *(float *)tssa_tensor_data(inputs[1]) = limit;
}

static const struct ir_op *end_of(const struct session_pair *p)
{
    return ir_block_return(p->kernels->now->plan->graph->body);
}

/* How long an output is that a Loop stacks is read by itself. */
static size_t count_copies(const struct session_pair *p)
{
    size_t copies = 0;
    for (uint32_t i = 0; i < end_of(p)->n_operands; i++)
        if (control_is_stacked(p->kernels->now->plan, ir_operand(end_of(p), i)))
            copies++;
    return copies;
}

static size_t outputs_of(const struct session_pair *p)
{
    return end_of(p)->n_operands;
}

/* Both sessions; is it a replay, with no copies but those of inputs and outputs? */
static bool go(const struct session_pair *p, int64_t n, float limit)
{
    tssa_value *inputs[2];
    make_inputs(p, n, limit, inputs);
    session_pair_run(p, 2, inputs, outputs_of(p));
    for (int i = 0; i < 2; i++)
        tssa_value_free(inputs[i]);
    const struct device_counts *counts = &p->kernels->counts;
    const size_t copies = 2 + outputs_of(p) + count_copies(p);
    if (counts->replays && counts->copies != copies)
        assert_int_equal(counts->copies, copies + GIVEN_COPIES);
    return counts->replays == 1;
}

/* Ends before the first iteration, behind it, early, and at the bound. */
static const float limits[] = {0.5F, 2, 2.5F, 6, 1e6F, -3, 3};
/* Rows: what one block moves beside deciding, what many move, and the first again. */
static const int64_t sizes[] = {MOST, 3000, MOST};

static void check(const char *text)
{
    struct session_pair p;
    open_pair(&p, text);
    go(&p, 1 + MOST, 4);
    if (driven(&p))
        fail_msg("%s: %s", driven(&p), text);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t n = sizes[k];
        for (int i = 0; i < SETTLED; i++)
            go(&p, n, 4);
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
            assert_true(go(&p, n, limits[i]));
    }
    close_pair(&p);
}

static void test_programs(void **state)
{
    static const char *const programs[] = {turns,    rows,  nested, twice, many,
                                           branches, given, chosen, stack, stacks};
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        check(programs[i]);
}

/* An index that is out of range in an iteration of a replay is told, and the next run is right. */
static void test_error_within(void **state)
{
    struct session_pair p;
    tssa_value *inputs[2], *output = NULL;
    (void)state;
    open_pair(&p, rows);
    for (int i = 0; i < SETTLED; i++)
        go(&p, 3, 2);
    for (int i = 0; i < 2; i++) {
        make_inputs(&p, 3, 1e6F, inputs);
        tssa_status *status = tssa_session_run(p.kernels, 2, inputs, 1, &output);
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
        assert_non_null(strstr(tssa_status_message(status), "out of range"));
        tssa_status_free(status);
        for (int k = 0; k < 2; k++)
            tssa_value_free(inputs[k]);
        assert_true(go(&p, 3, 2));
    }
    close_pair(&p);
}

/* A run in the caller's stream whose output lies there. */
static tssa_status *go_there(const struct session_pair *p, struct device_stream *stream,
                             tssa_value *output, float limit)
{
    const tssa_run_options options = {.struct_size = sizeof options,
                                      .stream = ((struct cuda_queue *)stream)->stream};
    tssa_value *inputs[2];
    make_inputs(p, 3, limit, inputs);
    tssa_status *status = tssa_session_run_with(p->kernels, &options, 2, inputs, 1, &output);
    for (int i = 0; i < 2; i++)
        tssa_value_free(inputs[i]);
    no_error(stream->context->device->stream_wait(stream));
    return status;
}

/* The same where the run has returned by then: a later one is told, and the next one is right. */
static void test_error_late(void **state)
{
    const int64_t dims[] = {3, WIDTH};
    const size_t size = 3 * WIDTH * sizeof(float);
    struct device_stream *stream;
    struct session_pair p;
    tssa_value *output;
    (void)state;
    open_pair(&p, rows);
    struct device_context *context = p.kernels->device;
    no_error(context->device->stream_open(context, &stream));
    void *memory = context->device->allocate(stream, size);
    no_error(tssa_tensor_borrow_on(p.context, "cuda", TSSA_FLOAT, 2, dims, memory, size, &output));
    for (int i = 0; i < SETTLED; i++)
        no_error(go_there(&p, stream, output, 2));
    for (int i = 0; i < 2; i++) {
        no_error(go_there(&p, stream, output, 1e6F));
        tssa_status *status = go_there(&p, stream, output, 2);
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
        assert_non_null(strstr(tssa_status_message(status), "out of range"));
        tssa_status_free(status);
        no_error(go_there(&p, stream, output, 2));
    }
    tssa_value_free(output);
    context->device->release(stream, memory, size);
    context->device->stream_close(stream);
    close_pair(&p);
}

/* What is stacked goes to memory of the caller's, which has to be as long as that comes to. */
static void test_stacked_there(void **state)
{
    static const char text[] =
        SESSION_MODEL(INPUTS, "%all",
                      LOOP("9") "%y, %all = Loop(%trips, %go, %x) {\n"
                                "body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                                "%u = Add(%v, %one)\n" AGAIN("%u") "return(%again, %u, %b) } }\n");
    const int64_t three = 3;
    float made[3] = {0};
    struct device_stream *stream;
    struct session_pair p;
    tssa_value *output;
    (void)state;
    open_pair(&p, text);
    struct device_context *context = p.kernels->device;
    no_error(context->device->stream_open(context, &stream));
    void *memory = context->device->allocate(stream, sizeof made);
    no_error(tssa_tensor_borrow_on(p.context, "cuda", TSSA_FLOAT, 1, &three, memory, sizeof made,
                                   &output));
    for (int i = 0; i < 2 * SETTLED; i++) {
        no_error(go_there(&p, stream, output, 4));
        no_error(context->device->copy(stream, DEVICE_COPY_OUT, (struct device_place){made, 0},
                                       (struct device_place){memory, 0}, sizeof made));
        assert_true(made[0] == 2 && made[1] == 3 && made[2] == 4);
    }
    assert_int_equal(p.kernels->counts.replays, 1);
    tssa_status *status = go_there(&p, stream, output, 5);
    assert_int_equal(tssa_status_code(status), TSSA_SHAPE_MISMATCH);
    tssa_status_free(status);
    no_error(go_there(&p, stream, output, 4));
    tssa_value_free(output);
    context->device->release(stream, memory, sizeof made);
    context->device->stream_close(stream);
    close_pair(&p);
}

static void request(void *cancel)
{
    tssa_cancel_request(cancel);
}

/* One that would go on for ever ends when somebody wants that, while it is replayed. */
static void test_cancelled(void **state)
{
    struct session_pair p;
    tssa_cancel *cancel;
    tssa_value *inputs[2], *made = NULL;
    (void)state;
    open_pair(&p, endless);
    no_error(tssa_cancel_create(p.context, &cancel));
    const tssa_run_options options = {.struct_size = sizeof options, .cancel = cancel};
    for (int i = 0; i < SETTLED; i++)
        go(&p, MOST, 4);
    for (int i = 0; i < 2; i++) {
        assert_true(go(&p, MOST, 300));
        make_inputs(&p, MOST, INFINITY, inputs);
        fake_cuda_when_asked(request, cancel);
        tssa_status *status = tssa_session_run_with(p.kernels, &options, 2, inputs, 1, &made);
        fake_cuda_when_asked(NULL, NULL);
        assert_int_equal(tssa_status_code(status), TSSA_LIMIT);
        assert_non_null(strstr(tssa_status_message(status), "cancelled"));
        tssa_status_free(status);
        tssa_cancel_reset(cancel);
        for (int k = 0; k < 2; k++)
            tssa_value_free(inputs[k]);
    }
    tssa_cancel_free(cancel);
    close_pair(&p);
}

/* The whole model: 50 iterations at most, a replay. */
static void test_seq2seq(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/seq2seq_small/model.onnx";
    struct model_run wanted = {0}, made = {0};
    (void)state;
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_on_device_open(&made, path, 2, "cuda"));
    for (int i = 0; i < 50; i++) {
        no_error(model_on_device_run(&wanted));
        no_error(model_on_device_run(&made));
        model_on_device_compare(&made, &wanted, path);
        if (i < SETTLED)
            continue;
        assert_int_equal(made.session->counts.replays, 1);
        assert_true(made.session->counts.copies <= made.input_count + made.output_count);
        assert_true(made.session->counts.launches < 10);
    }
    model_run_close(&wanted);
    model_run_close(&made);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- What is not recorded -------------------------------------------------------------------- */

static void expect_driven(const char *text, const char *why, float limit)
{
    struct session_pair p;
    open_pair(&p, text);
    go(&p, MOST, limit);
    if (!driven(&p) || !strstr(driven(&p), why))
        fail_msg("%s", driven(&p) ? driven(&p) : "it is recorded");
    for (int i = 0; i < SETTLED + 2; i++)
        assert_false(go(&p, MOST, limit));
    close_pair(&p);
}

#define STACKS(trips)                                                                              \
    "%y, %all = Loop(" trips ", %go, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"         \
    "%u = Add(%v, %one)\n" AGAIN("%u") "return(%again, %u, %v) } }\n"

static void test_refused(void **state)
{
    static const char counted[] = SESSION_MODEL(
        INPUTS, "%y",
        LOOP("9") "%t = Cast(%m) {to = 7}\n"
                  "%y = Loop(%t, _, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                  "%b = ReduceMax(%v) {keepdims = 0} %u = Sub(%v, %b) return(%c, %u) } }\n");
    static const char read[] =
        SESSION_MODEL(INPUTS, "%y, %z", LOOP("9") STACKS("%trips") "%z = Exp(%all)\n");
    static const char numbers[] =
        SESSION_MODEL(INPUTS, "%y, %all",
                      LOOP("9") "%y, %all = Loop(%trips, %go, %x) {\n"
                                "body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                                "%u = Add(%v, %one)\n" AGAIN("%u") "return(%again, %u, %i) } }\n");
    static const char unbounded[] = SESSION_MODEL(INPUTS, "%y, %all", LOOP("9") STACKS("_"));
    (void)state;
    expect_driven(counted, "computes how often", 4);
    expect_driven(read, "is read before the run ends", 4);
    expect_driven(unbounded, "has no trip count", 4);
    expect_driven(numbers, "the host stacks results", 4);
}

/* There is no room for all that may be stacked, which shows when it is recorded. */
static void test_too_many_trips(void **state)
{
    static const char text[] =
        SESSION_MODEL(INPUTS, "%y, %all", LOOP("1000000000000") STACKS("%trips"));
    struct session_pair p;
    (void)state;
    open_pair(&p, text);
    for (int i = 0; i < SETTLED + 2; i++)
        assert_false(go(&p, MOST, 4));
    assert_null(driven(&p));
    close_pair(&p);
}

/* A driver without conditional nodes, or without those that have an else. */
static void test_old_drivers(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_VERSION", "12030", 1);
    expect_driven(turns, "the host reads when a Loop ends", 4);
    expect_driven(branches, "the host reads the condition of an If", 4);
    setenv("FAKE_CUDA_VERSION", "12040", 1);
    check(turns);
    expect_driven(branches, "the host reads the condition of an If", 4);
    unsetenv("FAKE_CUDA_VERSION");
}

/* The functions are missing, too. */
static void test_old_library(void **state)
{
    static const struct process_limits limits_of_run = {.seconds = 120};
    static const char tool[] = TSSA_BUILD_DIR "/tssa-run", model[] = "/models/seq2seq_small";
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s%s/model.onnx", TSSA_SOURCE_DIR, model);
    setenv("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old", 1);
    struct process_result result = process_run(
        (const char *const[]){tool, path, "--device=cuda", "--remarks", "-r", "8", NULL}, NULL,
        NULL, &limits_of_run);
    fake_cuda_use(true);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "the host reads when a Loop ends"));
    process_result_free(&result);
}

/* The kernel, where the real compiler is installed. */
static void test_compiles(void **state)
{
    static const int architectures[] = {75, 80, 90, 100, 120};
    struct text text;
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* what NVRTC keeps is not given back */
    skip();
#endif
    text_init(&text, &allocator_default);
    assert_true(cuda_conditions_print(&text));
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        const struct nvrtc_source source = {
            text_string(&text), "decide.cu", {CLIKE_CUDA_OPTIONS}, false};
        struct image image;
        tssa_status *status =
            nvrtc_compile(&allocator_default, &source, architectures[i], IMAGE_CUBIN, &image);
        if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
            tssa_status_free(status);
            break;
        }
        no_error(status);
        allocator_free(&allocator_default, image.data);
    }
    text_free(&text);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* As `go`, where it succeeds. */
static tssa_status *try_once(const struct session_pair *p, float limit)
{
    tssa_value *inputs[2], *made[4] = {NULL};
    make_inputs(p, MOST, limit, inputs);
    tssa_status *status = tssa_session_run(p->kernels, 2, inputs, outputs_of(p), made);
    for (int i = 0; i < 2; i++)
        tssa_value_free(inputs[i]);
    for (int i = 0; i < 4; i++)
        tssa_value_free(made[i]);
    return status;
}

/* Which is told, or made up for by a run without a recording; the next ones are right. */
static void fail_each_call_once(const char *text)
{
    bool more = true;
    unsigned long told = 0, call;
    for (call = 0; more; call++) {
        struct session_pair p;
        open_pair(&p, text);
        const unsigned long before = fake_cuda_calls();
        fake_cuda_fail_at(before + call, 999);
        for (int i = 0; i < SETTLED; i++) {
            tssa_status *status = try_once(&p, (float)i);
            told += status != NULL;
            tssa_status_free(status);
        }
        more = fake_cuda_calls() > before + call;
        fake_cuda_fail_at(-1ul, 0);
        bool again = false;
        for (int i = 0; i < SETTLED; i++)
            again |= go(&p, MOST, limits[i % 5]);
        assert_true(again);
        close_pair(&p);
    }
    assert_true(told > 0 && told < call);
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    fail_each_call_once(chosen);
    fail_each_call_once(stack);
}

int main(void)
{
    /* before the stand-ins: behind their compiler the real one ends in a crash */
    const struct CMUnitTest compiled[] = {cmocka_unit_test(test_compiles)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs),
                                       cmocka_unit_test(test_error_within),
                                       cmocka_unit_test(test_error_late),
                                       cmocka_unit_test(test_stacked_there),
                                       cmocka_unit_test(test_seq2seq),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_too_many_trips)},
                            fakes[] = {cmocka_unit_test(test_old_drivers),
                                       cmocka_unit_test(test_cancelled),
                                       cmocka_unit_test(test_old_library),
                                       cmocka_unit_test(test_each_call_fails_once)};
    int failed = cmocka_run_group_tests(compiled, NULL, NULL);
    fake_cuda_use(true);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    failed += test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    return failed;
}
