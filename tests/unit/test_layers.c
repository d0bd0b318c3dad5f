/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers in a row, which are one op where a session has several threads (join_layers):
 * the bits of the layers one by one, on one thread, whatever the threads are and do meanwhile.
 */
/* ctest-labels: tsan random */
/* ctest-timeout: 600 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/session.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/same_value.h"
#include "ir/layers.h"

#define MOST_VALUES 64 /* inputs or outputs */
#define PASS "join_layers"

/* ---- Threads --------------------------------------------------------------------------------- */

#define MOST_THREADS 4

struct share {
    team_body body;
    void *context;
    int64_t begin, end;
};

static void *run_share(void *share)
{
    const struct share *s = share;
    s->body(s->context, s->begin, s->end);
    return NULL;
}

static int n_meetings;

/* Of threads that end with it, so that a sanitizer sees who waits for whom. */
static void meet(int threads, int64_t count, team_body body, void *context)
{
    pthread_t others[MOST_THREADS];
    struct share shares[MOST_THREADS];
    n_meetings++;
    for (int i = 0; i < threads; i++) {
        shares[i] = (struct share){body, context, count * i / threads, count * (i + 1) / threads};
        if (i)
            assert_int_equal(pthread_create(&others[i], NULL, run_share, &shares[i]), 0);
    }
    run_share(&shares[0]);
    for (int i = 1; i < threads; i++)
        assert_int_equal(pthread_join(others[i], NULL), 0);
}

/* One thread does all shares, the last one first. */
static void meet_alone(int threads, int64_t count, team_body body, void *context)
{
    for (int i = threads - 1; i >= 0; i--)
        body(context, count * i / threads, count * (i + 1) / threads);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

struct side {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    int joined, left;
};

static void count_remark(void *user, const tssa_remark *remark)
{
    struct side *side = user;
    if (strcmp(remark->pass, PASS) != 0)
        return;
    side->joined += remark->kind == TSSA_REMARK_APPLIED;
    side->left += remark->kind == TSSA_REMARK_MISSED;
}

struct way {
    int threads, level;
    bool alone, interpreted;
    const char *device;
};

static void open_side(struct side *side, const char *text, struct way way)
{
    const tssa_context_options context = {.struct_size = sizeof context, .threads = way.threads};
    const tssa_optimize_options passes = {.struct_size = sizeof passes,
                                          .level = way.level,
                                          .target = TSSA_TARGET_SESSION,
                                          .verify_after_passes = 1};
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .device = way.device,
                                          .compile = way.interpreted ? TSSA_COMPILE_OFF
                                                                     : TSSA_COMPILE_WAIT,
                                          .remark = count_remark,
                                          .remark_user = side};
    memset(side, 0, sizeof *side);
    no_error(tssa_context_create(&context, &side->context));
    side->context->team.threads = way.threads;
    side->context->team.parallel_for = way.threads == 1 ? NULL : way.alone ? meet_alone : meet;
    no_error(model_text_load(side->context, text, &side->model));
    no_error(tssa_model_optimize(side->model, &passes));
    no_error(tssa_session_create(side->model, &options, &side->session));
}

static void close_side(struct side *side)
{
    tssa_session_free(side->session);
    tssa_model_free(side->model);
    tssa_context_free(side->context);
}

/* ---- Programs -------------------------------------------------------------------------------- */

struct operand {
    bool given;
    int rank;
    int64_t dims[3];
    uint32_t seed;
};

struct program {
    struct random random;
    enum recurrent_kind kind;
    int layers, n_outputs;
    int64_t gates, steps, batch, input, hidden[LAYERS_MOST + 2];
    bool any_steps; /* told by a run */
    tssa_dtype dtype;
    struct operand x, operands[LAYERS_MOST + 2][RECURRENT_OPERANDS];
    bool wanted[LAYERS_MOST + 2][3];
    struct text text;
};

static const char *const kinds[] = {"RNN", "GRU", "LSTM"};
static const char *const letters = "xwrblhcp";

static int results_of(const struct program *p)
{
    return p->kind == RECURRENT_LSTM ? 3 : 2;
}

static struct operand operand(struct program *p, int rank, int64_t a, int64_t b, int64_t c)
{
    return (struct operand){true, rank, {a, b, c}, (uint32_t)random_bits(&p->random)};
}

static void add_layer(struct program *p, int i)
{
    struct operand *o = p->operands[i];
    const bool is_lstm = p->kind == RECURRENT_LSTM;
    const int64_t h = p->hidden[i], width = p->gates * h;
    o[RECURRENT_W] = operand(p, 3, 1, width, i ? p->hidden[i - 1] : p->input);
    o[RECURRENT_R] = operand(p, 3, 1, width, h);
    if (random_chance(&p->random, 70))
        o[RECURRENT_B] = operand(p, 2, 1, 2 * width, 0);
    if (random_chance(&p->random, 60))
        o[RECURRENT_H0] = operand(p, 3, 1, p->batch, h);
    if (is_lstm && random_chance(&p->random, 60))
        o[RECURRENT_C0] = operand(p, 3, 1, p->batch, h);
    if (is_lstm && random_chance(&p->random, 40))
        o[RECURRENT_P] = operand(p, 2, 1, 3 * h, 0);
    for (int k = 0; k < results_of(p); k++)
        p->wanted[i][k] = k == 0 ? i + 1 == p->layers : random_chance(&p->random, 40);
}

static void print_operand(struct program *p, const char *name, int layer, const struct operand *o)
{
    text_printf(&p->text, "%s%%%s%d: %s[", strcmp(name, "x") == 0 ? "" : ", ", name, layer,
                p->dtype == TSSA_DOUBLE ? "f64" : "f32");
    for (int i = 0; i < o->rank; i++)
        if (i == 0 && p->any_steps && strcmp(name, "x") == 0)
            text_printf(&p->text, "T");
        else
            text_printf(&p->text, "%s%d", i ? ", " : "", (int)o->dims[i]);
    text_printf(&p->text, "]");
}

static void print_attributes(struct program *p, int layer)
{
    static const char *const names[] = {"Affine", "Relu", "Sigmoid", "Softsign", "Tanh"};
    text_printf(&p->text, "{hidden_size = %d", (int)p->hidden[layer]);
    if (random_chance(&p->random, 30))
        text_printf(&p->text, ", clip = 0.625");
    if (random_chance(&p->random, 40)) {
        text_printf(&p->text, ", activations = [");
        for (int i = 0; i < (int[]){1, 2, 3}[p->kind]; i++)
            text_printf(&p->text, "%s\"%s\"", i ? ", " : "", names[random_int(&p->random, 0, 4)]);
        text_printf(&p->text, "]");
    }
    if (p->kind == RECURRENT_GRU)
        text_printf(&p->text, ", linear_before_reset = %d", random_chance(&p->random, 50));
    if (p->kind == RECURRENT_LSTM)
        text_printf(&p->text, ", input_forget = %d", random_chance(&p->random, 30));
    text_printf(&p->text, "}\n");
}

static void print_layer(struct program *p, int i)
{
    const bool squeezes = random_chance(&p->random, 50);
    for (int k = 0; k < results_of(p); k++)
        text_printf(&p->text, k == 0 || p->wanted[i][k] ? "%s%%y%d_%d" : "%s_", k ? ", " : "", i,
                    k);
    text_printf(&p->text, i ? " = %s(%%s%d" : " = %s(%%x%d", kinds[p->kind], i ? i - 1 : 0);
    for (int k = 1; k < (p->kind == RECURRENT_LSTM ? RECURRENT_OPERANDS : RECURRENT_C0); k++)
        if (p->operands[i][k].given)
            text_printf(&p->text, ", %%%c%d", letters[k], i);
        else
            text_printf(&p->text, ", _");
    text_printf(&p->text, ") ");
    print_attributes(p, i);
    if (i + 1 == p->layers)
        return;
    if (squeezes)
        text_printf(&p->text, "%%s%d = Squeeze(%%y%d_0, %%one)\n", i, i);
    else
        text_printf(&p->text, "%%s%d = Reshape(%%y%d_0, %%shape%d)\n", i, i, i);
}

static void print_results(struct program *p)
{
    const char *separator = "";
    p->n_outputs = 0;
    for (int i = 0; i < p->layers; i++)
        for (int k = 0; k < results_of(p); k++)
            if (p->wanted[i][k]) {
                text_printf(&p->text, "%s%%y%d_%d", separator, i, k);
                separator = ", ";
                p->n_outputs++;
            }
}

static void print_program(struct program *p)
{
    text_printf(&p->text, "graph @g opset(\"\": 22) ir_version(10) (");
    print_operand(p, "x", 0, &p->x);
    for (int i = 0; i < p->layers; i++)
        for (int k = 1; k < RECURRENT_OPERANDS; k++)
            if (p->operands[i][k].given)
                print_operand(p, (char[]){letters[k], 0}, i, &p->operands[i][k]);
    text_printf(&p->text, ") -> (");
    print_results(p);
    text_printf(&p->text, ") {\n%%one = Constant() {value = i64[1] [1]}\n");
    for (int i = 0; i < p->layers; i++)
        text_printf(&p->text, "%%shape%d = Constant() {value = i64[3] [0, %d, %d]}\n", i,
                    (int)p->batch, (int)p->hidden[i]);
    for (int i = 0; i < p->layers; i++)
        print_layer(p, i);
    text_printf(&p->text, "return(");
    print_results(p);
    text_printf(&p->text, ")\n}\n");
}

static void make_program(struct program *p, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->random = (struct random){seed};
    p->kind = (enum recurrent_kind)random_int(&p->random, 0, 2);
    p->gates = (int[]){1, 3, 4}[p->kind];
    p->layers = (int)random_int(&p->random, 2, seed % 16 ? 5 : LAYERS_MOST + 2);
    p->steps = random_int(&p->random, 1, seed % 8 ? 60 : 300);
    p->batch = random_int(&p->random, 1, seed % 4 ? 5 : 20);
    p->input = random_int(&p->random, 1, 30);
    for (int i = 0; i < p->layers; i++)
        p->hidden[i] =
            i && random_chance(&p->random, 70) ? p->hidden[0] : random_int(&p->random, 1, 70);
    p->any_steps = random_chance(&p->random, 40);
    p->dtype = random_chance(&p->random, 80) ? TSSA_FLOAT : TSSA_DOUBLE;
    p->x = operand(p, 3, p->steps, p->batch, p->input);
    for (int i = 0; i < p->layers; i++)
        add_layer(p, i);
    text_init(&p->text, &allocator_default);
    print_program(p);
}

/* ---- Running --------------------------------------------------------------------------------- */

static tssa_value *make_input(const struct side *side, const struct program *p,
                              const struct operand *o)
{
    tssa_value *value;
    no_error(tssa_tensor_create(side->context, p->dtype, o->rank, o->dims, &value));
    const size_t count = tensor_count(&value->value.tensor);
    float *numbers = malloc((count + 1) * sizeof *numbers);
    assert_non_null(numbers);
    random_floats(numbers, count, o->seed);
    for (size_t i = 0; i < count; i++)
        dtype_store_double(p->dtype,
                           (char *)tssa_tensor_data(value) + i * tssa_dtype_size(p->dtype),
                           (double)(numbers[i] / 4));
    free(numbers);
    return value;
}

static void run_side(const struct side *side, const struct program *p, tssa_value **outputs)
{
    tssa_value *inputs[MOST_VALUES * 2];
    size_t n = 0;
    inputs[n++] = make_input(side, p, &p->x);
    for (int i = 0; i < p->layers; i++)
        for (int k = 1; k < RECURRENT_OPERANDS; k++)
            if (p->operands[i][k].given)
                inputs[n++] = make_input(side, p, &p->operands[i][k]);
    memset(outputs, 0, (size_t)p->n_outputs * sizeof(tssa_value *));
    no_error(tssa_session_run(side->session, n, inputs, (size_t)p->n_outputs, outputs));
    for (size_t i = 0; i < n; i++)
        tssa_value_free(inputs[i]);
}

static void expect_outputs(struct program *p, tssa_value *const *wanted, tssa_value **made)
{
    for (int i = 0; i < p->n_outputs; i++) {
        if (!same_value(&wanted[i]->value, &made[i]->value))
            fail_msg("output %d is not that of one thread, of\n%s", i, text_string(&p->text));
        tssa_value_free(made[i]);
    }
}

static void check_way(struct program *p, tssa_value *const *wanted, struct way way)
{
    tssa_value *made[MOST_VALUES];
    struct side side;
    open_side(&side, text_string(&p->text), way);
    if (side.joined != (p->layers > LAYERS_MOST + 1 ? 2 : 1) || side.left)
        fail_msg("it is not one op:\n%s", text_string(&p->text));
    for (int turn = 0; turn < 2; turn++) {
        run_side(&side, p, made);
        expect_outputs(p, wanted, made);
    }
    close_side(&side);
}

static void check(uint64_t seed)
{
    tssa_value *wanted[MOST_VALUES];
    struct program p;
    struct side side;
    make_program(&p, seed);
    open_side(&side, text_string(&p.text), (struct way){.threads = 1, .level = 2});
    assert_int_equal(side.joined + side.left, 0);
    run_side(&side, &p, wanted);
    for (int threads = 2; threads <= MOST_THREADS; threads++)
        check_way(&p, wanted,
                  (struct way){.threads = threads, .level = 2, .interpreted = seed % 2});
    check_way(&p, wanted, (struct way){.threads = 2, .level = 2, .alone = true});
    for (int i = 0; i < p.n_outputs; i++)
        tssa_value_free(wanted[i]);
    close_side(&side);
    text_free(&p.text);
}

static void test_random(void **state)
{
    const unsigned long programs = programs_count(100);
    uint64_t seed;
    (void)state;
    if (programs_seed(&seed)) {
        check(seed);
        return;
    }
    for (seed = 1; seed <= programs; seed++)
        check(seed);
}

/* ---- Meetings -------------------------------------------------------------------------------- */

#define LSTM_INPUTS(n, h)                                                                          \
    "%x: f32[" n ", 1, " h "], %w: f32[1, 4*" h ", " h "], %r: f32[1, 4*" h ", " h "]"
#define AXIS "%one = Constant() {value = i64[1] [1]}\n"
#define TWO_LAYERS                                                                                 \
    AXIS "%a, _ = LSTM(%x, %w, %r)\n%b = Squeeze(%a, %one)\n%y, _ = LSTM(%b, %w, "                 \
         "%r)\nreturn(%y)\n}\n"
#define MODEL(inputs, outputs, ops)                                                                \
    "graph @g opset(\"\": 22) ir_version(10) (" inputs ") -> (" outputs ") {\n" ops

static void run_lstm(const struct side *side, int64_t steps, int64_t hidden)
{
    struct program p = {.dtype = TSSA_FLOAT, .layers = 1, .n_outputs = 1};
    tssa_value *output;
    p.x = (struct operand){true, 3, {steps, 1, hidden}, 1};
    p.operands[0][RECURRENT_W] = (struct operand){true, 3, {1, 4 * hidden, hidden}, 2};
    p.operands[0][RECURRENT_R] = (struct operand){true, 3, {1, 4 * hidden, hidden}, 3};
    run_side(side, &p, &output);
    tssa_value_free(output);
}

/* Threads meet once for all of it, where one after the other they would meet in each layer; and not
 * at all where there is little to do. */
static void test_meetings(void **state)
{
    struct side side;
    (void)state;
    open_side(&side, MODEL(LSTM_INPUTS("T", "64"), "%y", TWO_LAYERS),
              (struct way){.threads = 2, .level = 2});
    assert_int_equal(side.joined, 1);
    n_meetings = 0;
    run_lstm(&side, 100, 64);
    assert_int_equal(n_meetings, 1);
    run_lstm(&side, 1, 64);
    assert_int_equal(n_meetings, 1);
    close_side(&side);
    open_side(&side, MODEL(LSTM_INPUTS("T", "4"), "%y", TWO_LAYERS),
              (struct way){.threads = 2, .level = 2});
    n_meetings = 0;
    run_lstm(&side, 10, 4);
    assert_int_equal(n_meetings, 0);
    close_side(&side);
}

/* ---- What is left, and what fails ------------------------------------------------------------ */

static void expect_told(const char *text, struct way way, int joined, int left)
{
    struct side side;
    open_side(&side, text, way);
    if (side.joined != joined || side.left != left)
        fail_msg("%d are one op and %d are not, of\n%s", side.joined, side.left, text);
    close_side(&side);
}

static void expect_left(const char *text)
{
    expect_told(text, (struct way){.threads = 2, .level = 2}, 0, 1);
}

#define GRU_INPUTS(type) "%x: " type "[3, 1, 2], %w: " type "[1, 6, 2], %r: " type "[1, 6, 2]"
#define TWO(type, attributes)                                                                      \
    MODEL(GRU_INPUTS(type), "%y",                                                                  \
          AXIS "%a, _ = GRU(%x, %w, %r) " attributes                                               \
               "\n%b = Squeeze(%a, %one)\n%y, _ = GRU(%b, %w, %r)\nreturn(%y)\n}\n")

static void test_what_is_left(void **state)
{
    static const char plain[] = TWO("f32", "");
    (void)state;
    expect_told(plain, (struct way){.threads = 2, .level = 2}, 1, 0);
    expect_told(plain, (struct way){.threads = 2, .level = 2, .interpreted = true}, 1, 0);
    expect_told(plain, (struct way){.threads = 1, .level = 2}, 0, 0);
    expect_told(plain, (struct way){.threads = 2, .level = 0}, 0, 0);
    expect_told(plain, (struct way){.threads = 2, .level = 2, .device = "emulated"}, 0, 0);
    expect_told(TWO("f64", ""), (struct way){.threads = 2, .level = 2}, 1, 0);
    /* Where the first layer is none that could be, nobody looks. */
    expect_told(TWO("f16", ""), (struct way){.threads = 2, .level = 2}, 0, 0);
    expect_told(TWO("f32", "{direction = \"reverse\"}"), (struct way){.threads = 2, .level = 2}, 0,
                0);
    /* Others read what lies between. */
    expect_left(MODEL(GRU_INPUTS("f32"), "%y, %b",
                      AXIS "%a, _ = GRU(%x, %w, %r)\n%b = Squeeze(%a, %one)\n"
                           "%y, _ = GRU(%b, %w, %r)\nreturn(%y, %b)\n}\n"));
    /* The second layer begins where the first one ends. */
    expect_left(MODEL(GRU_INPUTS("f32"), "%y",
                      AXIS "%a, %h = GRU(%x, %w, %r)\n%b = Squeeze(%a, %one)\n"
                           "%y, _ = GRU(%b, %w, %r, _, _, %h)\nreturn(%y)\n}\n"));
    /* The same through another op. */
    expect_left(MODEL(GRU_INPUTS("f32"), "%y",
                      AXIS "%a, %h = GRU(%x, %w, %r)\n%b = Squeeze(%a, %one)\n%g = Neg(%h)\n"
                           "%y, _ = GRU(%b, %w, %r, _, _, %g)\nreturn(%y)\n}\n"));
}

/* What a run alone tells of a layer, the run refuses, and says of which. */
static void test_refuses(void **state)
{
    static const char text[] =
        MODEL("%x: f32[3, 1, 2], %w: f32[1, 6, 2], %r: f32[1, 6, 2], %v: f32[1, N, 2]", "%y",
              AXIS "%a, _ = GRU(%x, %w, %r)\n%b = Squeeze(%a, %one)\n"
                   "%y, _ = GRU(%b, %v, %r) @\"second\"\nreturn(%y)\n}\n");
    const int64_t dims[4][3] = {{3, 1, 2}, {1, 6, 2}, {1, 6, 2}, {1, 7, 2}};
    tssa_value *inputs[4], *output = NULL;
    struct side side;
    (void)state;
    open_side(&side, text, (struct way){.threads = 2, .level = 2});
    assert_int_equal(side.joined, 1);
    for (int i = 0; i < 4; i++) {
        no_error(tssa_tensor_create(side.context, TSSA_FLOAT, 3, dims[i], &inputs[i]));
        memset(tssa_tensor_data(inputs[i]), 0, tensor_bytes(&inputs[i]->value.tensor));
    }
    tssa_status *status = tssa_session_run(side.session, 4, inputs, 1, &output);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_non_null(strstr(tssa_status_message(status), "second"));
    tssa_status_free(status);
    for (int i = 0; i < 4; i++)
        tssa_value_free(inputs[i]);
    close_side(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
