/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded runs on the device `cuda` that read and write the caller's memory there, on a fake
 * driver or a card: at the same addresses nothing is copied; addresses that take turns have a
 * recording each; ones that are always new do not make each run record; what must not be read or
 * written in place is copied. Results are the CPU's, and inputs stay as they were. Each call fails
 * once.
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
#include "common/fake_cuda.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/session_pair.h"
#include "common/test_card.h"
#include "common/there.h"
#include "runtime/recording.h"

enum {
    ROWS = 16,
    WIDTH = 4,
    SETTLED = 6, /* runs of the same shapes, after which there is a recording */
    ARGUMENTS = 2,
    OUTPUTS = 2,
    NOBODYS = 0xee
};

#define ONE "%one = Constant() {value = f32[] 1} %two = Constant() {value = f32[] 2}\n"

/* One launch each. */
static const char relu[] = SESSION_MODEL(
    "%x: f32[N, 4], %w: f32[4]", "%y", ONE "%a = Mul(%x, %two) %b = Add(%a, %one) %y = Relu(%b)\n");
static const char line[] = SESSION_MODEL("%x: f32[N, 4], %w: f32[4]", "%y",
                                         ONE "%a = Mul(%x, %two) %b = Add(%a, %w) %y = Relu(%b)\n");

/* Two outputs, of which one is what the other is computed from, and was changed in place. */
static const char both[] =
    SESSION_MODEL("%x: f32[N, 4], %w: f32[4]", "%y, %z",
                  "%e = Add(%x, %w) %at = Constant() {value = i64[1, 1] [1]}\n"
                  "%axes = Constant() {value = i64[1] [0]} %u = Unsqueeze(%w, %axes)\n"
                  "%y = ScatterND(%e, %at, %u) %z = Softmax(%y) {axis = 1}\n");

/* The input is what is changed, and then the output. */
static const char update[] = SESSION_MODEL(
    "%x: f32[N, 4], %w: f32[4]", "%y",
    "%at = Constant() {value = i64[1, 1] [1]} %axes = Constant() {value = i64[1] [0]}\n"
    "%u = Unsqueeze(%w, %axes) %y = ScatterND(%x, %at, %u)\n");

/* A view of the input, and a loop of known trips. */
static const char view[] =
    SESSION_MODEL("%x: f32[N, 4], %w: f32[4]", "%y, %z",
                  "%shape = Constant() {value = i64[2] [4, -1]} %y = Reshape(%x, %shape)\n"
                  "%three = Constant() {value = i64[] 3}\n"
                  "%z = Loop(%three, _, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
                  "%a = Add(%v, %w) %r = Gather(%a, %i) %u = Sub(%a, %r) return(%c, %u) } }\n");

/* The card decides when it ends, and over what comes behind it. */
static const char decided[] = SESSION_MODEL(
    "%x: f32[N, 4], %w: f32[4]", "%y, %z",
    ONE "%nine = Constant() {value = i64[] 9} %limit = ReduceMax(%w) {keepdims = 0}\n"
        "%m = ReduceMax(%x) {keepdims = 0} %go = Less(%m, %limit)\n"
        "%z = Loop(%nine, %go, %x) { body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
        "%u = Add(%v, %one) %b = ReduceMax(%u) {keepdims = 0} %again = Less(%b, %limit)\n"
        "return(%again, %u) } }\n"
        "%k = ReduceMin(%z) {keepdims = 0} %d = Less(%k, %one)\n"
        "%y = If(%d) { then_branch() { %p = Neg(%z) %q = Add(%p, %one) return(%q) }\n"
        "else_branch() { return(%z) } }\n");

/* ---- Callers --------------------------------------------------------------------------------- */

struct caller {
    struct session_pair p;
    struct device_context *device;
    size_t n_outputs;
    tssa_value *inputs[ARGUMENTS], *wanted[OUTPUTS], *made[OUTPUTS]; /* of the host */
};

/* Memory of the caller's. */
struct set {
    struct there inputs, outputs;
};

static void caller_open(struct caller *c, const char *text)
{
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "cuda", .compile = TSSA_COMPILE_WAIT};
    static const int64_t dims[] = {ROWS, WIDTH};
    *c = (struct caller){.device = NULL};
    session_pair_load(&c->p, text, 1);
    no_error(tssa_session_create(c->p.model, &options, &c->p.kernels));
    if (c->p.kernels->now->plan->driven)
        fail_msg("%s", c->p.kernels->now->plan->driven);
    c->device = c->p.kernels->device;
    c->n_outputs = c->p.kernels->n_outputs;
    c->inputs[0] = session_pair_floats(&c->p, 2, dims, false);
    c->inputs[1] = session_pair_floats(&c->p, 1, dims + 1, false);
    ((float *)tssa_tensor_data(c->inputs[1]))[2] = 3;
    no_error(tssa_session_run(c->p.plain, ARGUMENTS, c->inputs, c->n_outputs, c->wanted));
    no_error(tssa_session_run(c->p.plain, ARGUMENTS, c->inputs, c->n_outputs, c->made));
}

static void caller_close(struct caller *c)
{
    for (size_t i = 0; i < ARGUMENTS; i++)
        tssa_value_free(c->inputs[i]);
    for (size_t i = 0; i < c->n_outputs; i++) {
        tssa_value_free(c->wanted[i]);
        tssa_value_free(c->made[i]);
    }
    session_pair_close(&c->p);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* Other elements. */
static void change(struct caller *c)
{
    float *x = tssa_tensor_data(c->inputs[0]);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = x[i] * 0.75F + 0.125F;
    for (size_t i = 0; i < c->n_outputs; i++)
        tssa_value_free(c->wanted[i]), c->wanted[i] = NULL;
    no_error(tssa_session_run(c->p.plain, ARGUMENTS, c->inputs, c->n_outputs, c->wanted));
}

static void set_open_at(struct set *s, const struct caller *c, size_t offset)
{
    there_open(&s->inputs, c->p.context, c->device, c->inputs, ARGUMENTS, offset);
    there_open(&s->outputs, c->p.context, c->device, c->wanted, c->n_outputs, offset);
    there_copy(&s->inputs, c->inputs, DEVICE_COPY_IN);
    there_fill(&s->outputs, NOBODYS);
}

static void set_open(struct set *s, const struct caller *c)
{
    set_open_at(s, c, 0);
}

static void set_close(struct set *s)
{
    there_close(&s->inputs);
    there_close(&s->outputs);
}

static tssa_status *call(const struct caller *c, tssa_value *const *inputs, tssa_value **outputs)
{
    return tssa_session_run(c->p.kernels, ARGUMENTS, inputs, c->n_outputs, outputs);
}

static void compare(const struct caller *c, const struct set *s)
{
    there_copy(&s->outputs, c->made, DEVICE_COPY_OUT);
    for (size_t i = 0; i < c->n_outputs; i++)
        assert_true(same_value(&c->made[i]->value, &c->wanted[i]->value));
    assert_true(there_is(&s->inputs, c->inputs));
}

/* With other elements each time; was it a replay? */
static bool go(struct caller *c, struct set *s)
{
    change(c);
    there_copy(&s->inputs, c->inputs, DEVICE_COPY_IN);
    there_fill(&s->outputs, NOBODYS);
    no_error(call(c, s->inputs.values, s->outputs.values));
    compare(c, s);
    return c->p.kernels->counts.replays == 1;
}

static const struct device_counts *counts(const struct caller *c)
{
    return &c->p.kernels->counts;
}

/* Recordings of the one run state that there is. */
static const struct recorded *recorded(const struct caller *c)
{
    assert_int_equal(c->p.kernels->now->idle.count, 1);
    return c->p.kernels->now->idle.data[0].run->recorded;
}

static int count_recordings(const struct caller *c)
{
    int n = 0;
    for (int i = 0; i < RECORDINGS; i++)
        n += recorded(c)->recordings[i].made != NULL;
    return n;
}

/* ---- The same addresses ---------------------------------------------------------------------- */

/* One launch, and nothing else. */
static void run_same(const char *text)
{
    struct caller c;
    struct set s;
    caller_open(&c, text);
    set_open(&s, &c);
    for (int i = 0; i < 3 * SETTLED; i++) {
        const bool replayed = go(&c, &s);
        if (i < SETTLED)
            continue;
        assert_true(replayed);
        assert_int_equal(counts(&c)->launches, 1);
        assert_int_equal(counts(&c)->copies, 0);
        assert_int_equal(counts(&c)->allocations, 0);
    }
    assert_int_equal(count_recordings(&c), 1);
    for (int i = 0; i < ARGUMENTS; i++)
        assert_null(recorded(&c)->inputs[i].tensor.data);
    set_close(&s);
    caller_close(&c);
}

static void test_same(void **state)
{
    (void)state;
    run_same(relu);
    run_same(line);
}

/* Some of the host's, `kind` says which are not, and an output that the library makes. */
static void run_partly(int kind)
{
    struct caller c;
    struct set s;
    caller_open(&c, line);
    set_open(&s, &c);
    for (int i = 0; i < 2 * SETTLED; i++) {
        tssa_value *in[] = {kind & 1 ? s.inputs.values[0] : c.inputs[0],
                            kind & 2 ? s.inputs.values[1] : c.inputs[1]},
                   *out = kind & 4 ? s.outputs.values[0] : NULL;
        const bool made = !out;
        there_fill(&s.outputs, NOBODYS);
        no_error(call(&c, in, &out));
        if (!made) {
            compare(&c, &s);
        } else {
            assert_true(same_value(&out->value, &c.wanted[0]->value));
            assert_true(there_is_filled(&s.outputs, NOBODYS));
            tssa_value_free(out);
        }
        if (i < SETTLED)
            continue;
        assert_int_equal(counts(&c)->replays, 1);
        assert_int_equal(counts(&c)->launches, 1);
        assert_int_equal(counts(&c)->copies, 3 - (kind & 1) - !!(kind & 2) - !!(kind & 4));
    }
    set_close(&s);
    caller_close(&c);
}

static void test_partly(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++)
        run_partly(kind);
}

/* So many launches, with nothing copied within the device but what has no place of its own. */
static void test_launches(void **state)
{
    static const struct {
        const char *text;
        uint64_t copies; /* of outputs, within the device */
    } wanted[] = {{line, 0}, {both, 0}, {update, 0}, {view, 2}, {decided, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct caller c;
        struct set s;
        caller_open(&c, wanted[i].text);
        set_open(&s, &c);
        for (int k = 0; k < SETTLED; k++) {
            tssa_value *made[OUTPUTS] = {NULL};
            no_error(call(&c, c.inputs, made));
            for (size_t n = 0; n < c.n_outputs; n++)
                tssa_value_free(made[n]);
        }
        const uint64_t launches = counts(&c)->launches; /* none of them a copy of the caller's */
        for (int k = 0; k < SETTLED; k++)
            go(&c, &s);
        assert_int_equal(counts(&c)->replays, 1);
        assert_int_equal(counts(&c)->launches, launches + wanted[i].copies);
        set_close(&s);
        caller_close(&c);
    }
}

/* ---- Other addresses ------------------------------------------------------------------------- */

static const char *const programs[] = {line, both, update, view, decided};

/* So many sets in turns: each is recorded, and none is looked at or written to but its own. */
static void take_turns(const char *text, int n)
{
    struct caller c;
    struct set sets[BOUND_SEEN];
    caller_open(&c, text);
    for (int i = 0; i < n; i++)
        set_open(&sets[i], &c);
    for (int i = 0; i < 6 * n + SETTLED; i++) {
        for (int k = 0; k < n; k++) {
            there_fill(&sets[k].inputs, NOBODYS);
            there_fill(&sets[k].outputs, NOBODYS);
        }
        const bool replayed = go(&c, &sets[i % n]);
        for (int k = 1; k < n; k++) {
            assert_true(there_is_filled(&sets[(i + k) % n].inputs, NOBODYS));
            assert_true(there_is_filled(&sets[(i + k) % n].outputs, NOBODYS));
        }
        assert_true(i < SETTLED + 2 * n || (replayed && counts(&c)->copies == 0));
        if (i >= SETTLED + 2 * n && text == line)
            assert_int_equal(counts(&c)->launches, 1);
    }
    assert_true(count_recordings(&c) >= n);
    for (int i = 0; i < n; i++)
        set_close(&sets[i]);
    caller_close(&c);
}

static void test_turns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int n = 2; n <= BOUND_SEEN; n++)
            take_turns(programs[i], n);
}

/* More sets than there may be recordings, and one argument at new addresses beside others that
 * stay: what is there is used, and runs do not record again and again. */
static void test_many(void **state)
{
    enum { SETS = RECORDINGS + 3, TURNS = 20 };
    struct caller c;
    struct set sets[SETS];
    unsigned long most = 0;
    (void)state;
    if (test_card()) /* which does not count its driver's calls */
        skip();
    caller_open(&c, line);
    for (int i = 0; i < SETS; i++)
        set_open(&sets[i], &c);
    for (int i = 0; i < TURNS * SETS; i++) {
        tssa_value *in[] = {sets[i % SETS].inputs.values[0], sets[0].inputs.values[1]},
                   *out = sets[0].outputs.values[0];
        const unsigned long before = fake_cuda_calls();
        no_error(call(&c, in, &out));
        const unsigned long calls = fake_cuda_calls() - before;
        compare(&c, &sets[0]);
        if (i < 2 * SETTLED)
            continue;
        assert_int_equal(counts(&c)->replays, 1);
        assert_int_equal(counts(&c)->launches, 2); /* x is copied, the others are not */
        assert_int_equal(counts(&c)->allocations, 0);
        assert_true(calls == most || i == 2 * SETTLED);
        most = calls;
    }
    for (int i = 0; i < SETS; i++)
        set_close(&sets[i]);
    caller_close(&c);
}

/* Memory is freed and taken again by whoever: here mostly at the addresses that it was at. */
static void test_new(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct caller c;
        caller_open(&c, programs[i]);
        for (int k = 0; k < 4 * SETTLED; k++) {
            struct set s, first;
            if (k % 3 == 2)
                set_open(&first, &c);
            set_open(&s, &c);
            assert_true(go(&c, &s) || k < 2 * SETTLED);
            set_close(&s);
            if (k % 3 == 2)
                set_close(&first);
        }
        caller_close(&c);
    }
}

/* Addresses that come again, each time in another combination, are paid for: a recording is not
 * made in most runs. */
static void test_paid_for(void **state)
{
    enum { RUNS = 400, SETS = 3 };
    struct caller c;
    struct set sets[SETS];
    int made = 0;
    uint32_t number = 1;
    (void)state;
    caller_open(&c, line);
    for (int i = 0; i < SETS; i++)
        set_open(&sets[i], &c);
    for (int i = 0; i < RUNS; i++) {
        struct device_recording *before[RECORDINGS] = {NULL};
        number = number * 1664525 + 1013904223;
        tssa_value *in[] = {sets[number >> 24 & 1].inputs.values[0],
                            sets[(number >> 26) % SETS].inputs.values[1]},
                   *out = sets[(number >> 28) % SETS].outputs.values[0];
        for (int k = 0; i && k < RECORDINGS; k++)
            before[k] = recorded(&c)->recordings[k].made;
        no_error(call(&c, in, &out));
        compare(&c, &sets[(number >> 28) % SETS]);
        for (int k = 0; k < RECORDINGS; k++)
            made += recorded(&c)->recordings[k].made != before[k];
        assert_true(i < SETTLED || counts(&c)->replays == 1);
    }
    assert_true(made >= RECORDINGS);
    assert_true(made <= 2 * RECORDINGS + RUNS / 64);
    for (int i = 0; i < SETS; i++)
        set_close(&sets[i]);
    caller_close(&c);
}

/* ---- What is copied -------------------------------------------------------------------------- */

/* Where operands of libraries may not lie: each is copied, before and behind the one launch. */
static void run_misaligned(const char *text, uint64_t launches)
{
    struct caller c;
    struct set s;
    caller_open(&c, text);
    set_open_at(&s, &c, sizeof(float));
    for (int i = 0; i < 2 * SETTLED; i++)
        assert_true(go(&c, &s) || i < SETTLED);
    assert_int_equal(counts(&c)->launches, launches);
    assert_int_equal(count_recordings(&c), 1);
    set_close(&s);
    caller_close(&c);
}

static void test_misaligned(void **state)
{
    (void)state;
    run_misaligned(relu, 3);
    run_misaligned(line, 4);
}

/* An output where an input lies, or a part of it: that is read before it is written. */
static void test_overlap(void **state)
{
    static const int64_t dims[] = {ROWS, WIDTH};
    const size_t size = ROWS * WIDTH * sizeof(float);
    (void)state;
    for (size_t at = 0; at <= size; at += size / 2) {
        struct caller c;
        struct set s;
        tssa_value *x, *y;
        caller_open(&c, line);
        set_open(&s, &c);
        void *memory = c.device->device->allocate(s.inputs.stream, 2 * size);
        no_error(tssa_tensor_borrow_on(c.p.context, "cuda", TSSA_FLOAT, 2, dims, memory, size, &x));
        no_error(tssa_tensor_borrow_on(c.p.context, "cuda", TSSA_FLOAT, 2, dims,
                                       (char *)memory + at, size, &y));
        for (int i = 0; i < 2 * SETTLED; i++) {
            const struct device_place from = {s.inputs.memory[0], 0}, to = {memory, 0},
                                      made = {memory, at}, out = {s.outputs.memory[0], 0};
            tssa_value *in[] = {x, s.inputs.values[1]};
            no_error(c.device->device->copy(s.inputs.stream, DEVICE_COPY_WITHIN, to, from, size));
            no_error(c.device->device->stream_wait(s.inputs.stream));
            no_error(call(&c, in, &y));
            no_error(c.device->device->copy(s.inputs.stream, DEVICE_COPY_WITHIN, out, made, size));
            no_error(c.device->device->stream_wait(s.inputs.stream));
            compare(&c, &s);
            assert_true(i < SETTLED || counts(&c)->replays == 1);
        }
        assert_int_equal(counts(&c)->launches, at < size ? 2 : 1);
        tssa_value_free(x);
        tssa_value_free(y);
        c.device->device->release(s.inputs.stream, memory, 2 * size);
        set_close(&s);
        caller_close(&c);
    }
}

/* What is bound to a tensor's memory does not write behind the end of a shorter one at the same
 * address, which is refused. */
static void test_wrong_size(void **state)
{
    static const int64_t dims[] = {ROWS / 2, WIDTH};
    struct caller c;
    struct set s;
    tssa_value *half;
    (void)state;
    caller_open(&c, line);
    set_open(&s, &c);
    for (int i = 0; i < SETTLED; i++)
        go(&c, &s);
    no_error(tssa_tensor_borrow_on(c.p.context, "cuda", TSSA_FLOAT, 2, dims,
                                   there_memory(&s.outputs, 0), s.outputs.sizes[0] / 2, &half));
    there_fill(&s.outputs, NOBODYS);
    for (int i = 0; i < SETTLED; i++) {
        tssa_status *status = call(&c, s.inputs.values, &half);
        assert_int_equal(tssa_status_code(status), TSSA_SHAPE_MISMATCH);
        tssa_status_free(status);
        assert_true(there_is_filled(&s.outputs, NOBODYS));
    }
    assert_true(go(&c, &s));
    assert_int_equal(counts(&c)->launches, 1);
    tssa_value_free(half);
    set_close(&s);
    caller_close(&c);
}

/* Other shapes at the same addresses, and outputs of which some are wanted, in between. */
static void run_in_between(const char *text)
{
    static const int64_t dims[] = {ROWS / 2, WIDTH};
    static const size_t second[] = {1};
    const tssa_run_options options = {.struct_size = sizeof options, .wanted = second};
    struct caller c;
    struct set s;
    tssa_value *half[3] = {NULL};
    caller_open(&c, text);
    set_open(&s, &c);
    no_error(tssa_tensor_borrow_on(c.p.context, "cuda", TSSA_FLOAT, 2, dims,
                                   there_memory(&s.inputs, 0), s.inputs.sizes[0] / 2, &half[0]));
    for (int i = 0; i < 2; i++)
        no_error(tssa_tensor_borrow_on(c.p.context, "cuda", TSSA_FLOAT, 2, dims,
                                       there_memory(&s.outputs, (size_t)i), s.outputs.sizes[i] / 2,
                                       &half[1 + i]));
    for (int i = 0; i < 3 * SETTLED; i++) {
        tssa_value *in[] = {half[0], s.inputs.values[1]};
        assert_true(go(&c, &s) || i < SETTLED);
        no_error(call(&c, in, half + 1));
        there_fill(&s.outputs, NOBODYS);
        no_error(tssa_session_run_with(c.p.kernels, &options, ARGUMENTS, s.inputs.values, 1,
                                       &s.outputs.values[1]));
        assert_int_equal(counts(&c)->replays, 0);
        there_copy(&s.outputs, c.made, DEVICE_COPY_OUT);
        assert_true(same_value(&c.made[1]->value, &c.wanted[1]->value));
    }
    for (int i = 0; i < 3; i++)
        tssa_value_free(half[i]);
    set_close(&s);
    caller_close(&c);
}

/* The second takes other memory of the pool where it is recorded. */
static void test_in_between(void **state)
{
    (void)state;
    run_in_between(both);
    run_in_between(decided);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Compares without failing. The number of the call that shall fail, which is later by the calls of
 * that, if it has not failed yet. */
static unsigned long compare_apart(const struct caller *c, const struct set *s, unsigned long fails)
{
    const unsigned long before = fake_cuda_calls();
    fake_cuda_fail_at(-1ul, 0);
    compare(c, s);
    if (before > fails)
        return fails;
    fails += fake_cuda_calls() - before;
    fake_cuda_fail_at(fails, 999);
    return fails;
}

/* Which is told, or made up for by a run without a recording; the next ones are right. */
static void each_call_fails_once(const char *text)
{
    bool more = true;
    unsigned long told = 0, call_number;
    for (call_number = 0; more; call_number++) {
        struct caller c;
        struct set sets[2];
        caller_open(&c, text);
        for (int i = 0; i < 2; i++)
            set_open(&sets[i], &c);
        unsigned long fails = fake_cuda_calls() + call_number;
        fake_cuda_fail_at(fails, 999);
        for (int i = 0; i < 3 * SETTLED; i++) {
            struct set *s = &sets[i < SETTLED ? 0 : i % 2];
            tssa_status *status = call(&c, s->inputs.values, s->outputs.values);
            told += status != NULL;
            if (!status)
                fails = compare_apart(&c, s, fails);
            tssa_status_free(status);
        }
        more = fake_cuda_calls() > fails;
        fake_cuda_fail_at(-1ul, 0);
        bool again = true;
        for (int i = 0; i < 2 * SETTLED; i++)
            again = go(&c, &sets[i % 2]);
        assert_true(again && counts(&c)->copies == 0);
        for (int i = 0; i < 2; i++)
            set_close(&sets[i]);
        caller_close(&c);
    }
    assert_true(told > 0 && told < call_number);
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    each_call_fails_once(line);
    each_call_fails_once(decided);
}

int main(void)
{
    const struct CMUnitTest fakes[] = {cmocka_unit_test(test_each_call_fails_once)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),      cmocka_unit_test(test_partly),
        cmocka_unit_test(test_launches),  cmocka_unit_test(test_turns),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_new),
        cmocka_unit_test(test_paid_for),  cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_overlap),   cmocka_unit_test(test_wrong_size),
        cmocka_unit_test(test_in_between)};
    fake_cuda_use(true);
    int failed = test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) + failed;
}
