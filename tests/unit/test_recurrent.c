/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM against the equations of the ONNX operator pages, one sequence at a time. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/op_numbers.h"
#include "kernels/cpu/lib/convert.h"

enum { STEPS = 4, BATCH = 3, INPUT = 5, HIDDEN = 2, DIRECTIONS = 2, MAX_WIDTH = 4 * HIDDEN };

static const int32_t lengths[BATCH] = {4, 2, 0};

struct data {
    float x[STEPS * BATCH * INPUT], w[DIRECTIONS * MAX_WIDTH * INPUT];
    float r[DIRECTIONS * MAX_WIDTH * HIDDEN], b[DIRECTIONS * 2 * MAX_WIDTH];
    float h[DIRECTIONS * BATCH * HIDDEN], c[DIRECTIONS * BATCH * HIDDEN];
    float p[DIRECTIONS * 3 * HIDDEN];
};

struct expected {
    double y[STEPS][DIRECTIONS][BATCH][HIDDEN];
    double h[DIRECTIONS][BATCH][HIDDEN], c[DIRECTIONS][BATCH][HIDDEN];
};

struct variant {
    enum ir_op_id id;
    int gates;
    bool batch_first, peepholes, linear_before_reset, input_forget;
    double clip;
};

static void fill(struct data *d)
{
    random_floats(d->x, sizeof d->x / sizeof(float), 1);
    random_floats(d->w, sizeof d->w / sizeof(float), 2);
    random_floats(d->r, sizeof d->r / sizeof(float), 3);
    random_floats(d->b, sizeof d->b / sizeof(float), 4);
    random_floats(d->h, sizeof d->h / sizeof(float), 5);
    random_floats(d->c, sizeof d->c / sizeof(float), 6);
    random_floats(d->p, sizeof d->p / sizeof(float), 7);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double limit(const struct variant *v, double x)
{
    return fmax(-v->clip, fmin(v->clip, x));
}

/* What stands before gate g's activation, without peepholes; `state` is what R multiplies. */
static double gate(const struct variant *v, const struct data *d, int dir, int g, int i,
                   const float *x, const double *state, bool input_part, bool state_part)
{
    int width = v->gates * HIDDEN, row = g * HIDDEN + i;
    double sum = 0;
    for (int k = 0; input_part && k < INPUT; k++)
        sum += (double)d->w[(dir * width + row) * INPUT + k] * (double)x[k];
    for (int k = 0; state_part && k < HIDDEN; k++)
        sum += (double)d->r[(dir * width + row) * HIDDEN + k] * state[k];
    sum += input_part ? (double)d->b[dir * 2 * width + row] : 0;
    sum += state_part ? (double)d->b[dir * 2 * width + width + row] : 0;
    return sum;
}

static void gru(const struct variant *v, const struct data *d, int dir, const float *x, double *h)
{
    double z[HIDDEN], r[HIDDEN], rh[HIDDEN], next[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        z[i] = sigmoid(limit(v, gate(v, d, dir, 0, i, x, h, true, true)));
        r[i] = sigmoid(limit(v, gate(v, d, dir, 1, i, x, h, true, true)));
    }
    for (int i = 0; i < HIDDEN; i++)
        rh[i] = r[i] * h[i];
    for (int i = 0; i < HIDDEN; i++) {
        double in = gate(v, d, dir, 2, i, x, h, true, false);
        double past = v->linear_before_reset ? r[i] * gate(v, d, dir, 2, i, x, h, false, true)
                                             : gate(v, d, dir, 2, i, x, rh, false, true);
        next[i] = (1 - z[i]) * tanh(limit(v, in + past)) + z[i] * h[i];
    }
    memcpy(h, next, sizeof next);
}

static void lstm(const struct variant *v, const struct data *d, int dir, const float *x, double *h,
                 double *c)
{
    double next[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        const float *p = d->p + dir * 3 * HIDDEN;
        double weight[3] = {0};
        for (int k = 0; v->peepholes && k < 3; k++)
            weight[k] = (double)p[k * HIDDEN + i];
        double in = sigmoid(limit(v, gate(v, d, dir, 0, i, x, h, true, true) + weight[0] * c[i]));
        double forget =
            sigmoid(limit(v, gate(v, d, dir, 2, i, x, h, true, true) + weight[2] * c[i]));
        double candidate = tanh(limit(v, gate(v, d, dir, 3, i, x, h, true, true)));
        c[i] = (v->input_forget ? 1 - in : forget) * c[i] + in * candidate;
        double out = sigmoid(limit(v, gate(v, d, dir, 1, i, x, h, true, true) + weight[1] * c[i]));
        next[i] = out * tanh(c[i]);
    }
    memcpy(h, next, sizeof next);
}

static void rnn(const struct variant *v, const struct data *d, int dir, const float *x, double *h)
{
    double next[HIDDEN];
    for (int i = 0; i < HIDDEN; i++)
        next[i] = tanh(limit(v, gate(v, d, dir, 0, i, x, h, true, true)));
    memcpy(h, next, sizeof next);
}

static void expect(const struct variant *v, const struct data *d, struct expected *e)
{
    memset(e, 0, sizeof *e);
    for (int dir = 0; dir < DIRECTIONS; dir++)
        for (int n = 0; n < BATCH; n++) {
            int row = v->batch_first ? n * DIRECTIONS + dir : dir * BATCH + n;
            double *h = e->h[dir][n], *c = e->c[dir][n];
            for (int i = 0; i < HIDDEN; i++) {
                h[i] = (double)d->h[row * HIDDEN + i];
                c[i] = (double)d->c[row * HIDDEN + i];
            }
            for (int s = 0; s < lengths[n]; s++) {
                int t = dir ? lengths[n] - 1 - s : s;
                const float *x = d->x + (v->batch_first ? n * STEPS + t : t * BATCH + n) * INPUT;
                if (v->id == IR_OP_GRU)
                    gru(v, d, dir, x, h);
                else if (v->id == IR_OP_LSTM)
                    lstm(v, d, dir, x, h, c);
                else
                    rnn(v, d, dir, x, h);
                memcpy(e->y[t][dir][n], h, HIDDEN * sizeof *h);
            }
        }
}

static void compare(const struct variant *v, const struct expected *e, const struct op_run *t)
{
    const float *y = t->outputs[0].tensor.data, *last[2] = {t->outputs[1].tensor.data, NULL};
    if (v->id == IR_OP_LSTM)
        last[1] = t->outputs[2].tensor.data;
    for (int dir = 0; dir < DIRECTIONS; dir++)
        for (int n = 0; n < BATCH; n++)
            for (int i = 0; i < HIDDEN; i++) {
                int state = (v->batch_first ? n * DIRECTIONS + dir : dir * BATCH + n) * HIDDEN + i;
                for (int s = 0; s < STEPS; s++) {
                    int at = v->batch_first ? (n * STEPS + s) * DIRECTIONS + dir
                                            : (s * DIRECTIONS + dir) * BATCH + n;
                    expect_close((double)y[at * HIDDEN + i], e->y[s][dir][n][i], 1e-6, "Y",
                                 (size_t)at * HIDDEN + (size_t)i);
                }
                expect_close((double)last[0][state], e->h[dir][n][i], 1e-6, "Y_h", (size_t)state);
                if (last[1])
                    expect_close((double)last[1][state], e->c[dir][n][i], 1e-6, "Y_c",
                                 (size_t)state);
            }
}

static void check(const struct variant *v)
{
    struct data d;
    struct expected e;
    struct op_run t;
    int64_t width = v->gates * HIDDEN;
    fill(&d);
    expect(v, &d, &e);
    op_begin(&t, v->id, 0);
    op_int(&t, "hidden_size", HIDDEN);
    op_int(&t, "layout", v->batch_first);
    op_string(&t, "direction", "bidirectional");
    op_float(&t, "clip", (float)v->clip);
    if (v->id == IR_OP_GRU)
        op_int(&t, "linear_before_reset", v->linear_before_reset);
    if (v->id == IR_OP_LSTM)
        op_int(&t, "input_forget", v->input_forget);
    int64_t first = v->batch_first ? BATCH : STEPS, second = v->batch_first ? STEPS : BATCH;
    int64_t state[2] = {v->batch_first ? BATCH : DIRECTIONS, v->batch_first ? DIRECTIONS : BATCH};
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){first, second, INPUT}, d.x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){DIRECTIONS, width, INPUT}, d.w);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){DIRECTIONS, width, HIDDEN}, d.r);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){DIRECTIONS, 2 * width}, d.b);
    op_add(&t, TSSA_INT32, 1, (const int64_t[]){BATCH}, lengths);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){state[0], state[1], HIDDEN}, d.h);
    if (v->id == IR_OP_LSTM)
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){state[0], state[1], HIDDEN}, d.c);
    if (v->peepholes)
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){DIRECTIONS, 3 * HIDDEN}, d.p);
    op_outputs(&t, v->id == IR_OP_LSTM ? 3 : 2);
    op_go(&t);
    compare(v, &e, &t);
    op_close(&t);
}

static void test_rnn(void **state)
{
    (void)state;
    check(&(struct variant){.id = IR_OP_RNN, .gates = 1, .clip = 100});
    check(&(struct variant){.id = IR_OP_RNN, .gates = 1, .clip = 0.3f, .batch_first = true});
}

static void test_gru(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check(&(struct variant){.id = IR_OP_GRU,
                                .gates = 3,
                                .clip = i & 1 ? 0.25 : 100,
                                .batch_first = i & 1,
                                .linear_before_reset = i & 2});
}

static void test_lstm(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        check(&(struct variant){.id = IR_OP_LSTM,
                                .gates = 4,
                                .clip = i & 1 ? 0.25 : 100,
                                .batch_first = i & 1,
                                .peepholes = i & 2,
                                .input_forget = i & 4});
}

/* ---- Sizes of any kind, against the same in double ------------------------------------------- */

struct sizes {
    enum ir_op_id id;
    int64_t gates, steps, batch, input, hidden;
    bool linear_before_reset;
};

/* A bidirectional layer of values that each type has. */
static void open_layer(struct op_run *t, const struct sizes *s, tssa_dtype dtype)
{
    const int64_t width = s->gates * s->hidden;
    const int64_t shapes[4][3] = {{s->steps, s->batch, s->input},
                                  {DIRECTIONS, width, s->input},
                                  {DIRECTIONS, width, s->hidden},
                                  {DIRECTIONS, 2 * width, 0}};
    op_begin(t, s->id, 0);
    op_int(t, "hidden_size", s->hidden);
    if (s->linear_before_reset)
        op_int(t, "linear_before_reset", 1);
    op_string(t, "direction", "bidirectional");
    op_outputs(t, s->id == IR_OP_LSTM ? 3 : 2);
    for (uint32_t i = 0; i < 4; i++) {
        op_absent(t);
        struct tensor *x = op_input(t, i, dtype, i < 3 ? 3 : 2, shapes[i]);
        float *values = malloc(tensor_count(x) * sizeof *values);
        assert_non_null(values);
        random_floats(values, tensor_count(x), i + 1);
        for (size_t k = 0; k < tensor_count(x); k++)
            values[k] = rintf(values[k] * 256) / (i ? 2048 : 256); /* FLOAT16 has all of them */
        convert_elements((int64_t)tensor_count(x), TSSA_FLOAT, values, 1, dtype, x->data, 1,
                         &convert_default);
        t->present[i] = true;
        free(values);
    }
}

static double element_of(const struct tensor *tensor, size_t i)
{
    double value;
    convert_elements(1, tensor->dtype,
                     (const char *)tensor->data + i * tssa_dtype_size(tensor->dtype), 1,
                     TSSA_DOUBLE, &value, 1, &convert_default);
    return value;
}

/* Constant weights, and weights of which nothing is known, give the same bits, and so does a number
 * of threads that each have no direction of their own. */
static void check_constants(struct op_run *t)
{
    struct team team;
    no_error(op_try(t));
    size_t bytes = tensor_bytes(&t->outputs[0].tensor);
    void *y = malloc(bytes);
    assert_non_null(y);
    memcpy(y, t->outputs[0].tensor.data, bytes);
    op_threads(t, &team, 3);
    op_go(t);
    assert_memory_equal(t->outputs[0].tensor.data, y, bytes);
    t->env.team = NULL;
    free(y);
}

static void check_sizes(const struct sizes *s, tssa_dtype dtype, double tolerance)
{
    struct op_run narrow, wide;
    open_layer(&narrow, s, dtype);
    open_layer(&wide, s, TSSA_DOUBLE);
    check_constants(&narrow);
    check_constants(&wide);
    for (uint32_t i = 0; i < narrow.n_outputs; i++) {
        const struct tensor *x = &narrow.outputs[i].tensor, *y = &wide.outputs[i].tensor;
        assert_int_equal(tensor_count(x), tensor_count(y));
        for (size_t k = 0; k < tensor_count(x); k++)
            expect_close(element_of(x, k), element_of(y, k), tolerance, "output", k);
    }
    op_close(&narrow);
    op_close(&wide);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct sizes cases[] = {
        {IR_OP_RNN, 1, 5, 1, 3, 7, false},   {IR_OP_RNN, 1, 3, 2, 1, 1100, false},
        {IR_OP_GRU, 3, 4, 5, 9, 17, false},  {IR_OP_GRU, 3, 1, 1, 4, 350, false},
        {IR_OP_LSTM, 4, 6, 3, 2, 33, false}, {IR_OP_LSTM, 4, 2, 4, 31, 300, false},
        {IR_OP_LSTM, 4, 0, 2, 3, 4, false},  {IR_OP_GRU, 3, 2, 0, 3, 4, false},
        {IR_OP_GRU, 3, 2, 7, 9, 310, false}, {IR_OP_GRU, 3, 2, 7, 9, 310, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_sizes(&cases[i], TSSA_FLOAT, 4e-6);
        check_sizes(&cases[i], TSSA_FLOAT16, 1e-3);
    }
}

/* ---- The order of sums ----------------------------------------------------------------------- */

/* Columns and terms that fill no panels abreast and no block, in two steps, of which the second one
 * goes from the last panel to the first; and weights so large that threads share products. */
enum { ORDER_STEPS = 2, ORDER_INPUT = 1070, ORDER_HIDDEN = 523, ORDER_BATCH = 35 };

struct order {
    float x[ORDER_STEPS * ORDER_BATCH * ORDER_INPUT], w[ORDER_HIDDEN * ORDER_INPUT];
    float r[ORDER_HIDDEN * ORDER_HIDDEN], b[2 * ORDER_HIDDEN];
    double h[ORDER_HIDDEN], next[ORDER_HIDDEN];
};

/* Floats are fused, doubles are not. */
static double add_product(tssa_dtype dtype, double sum, double weight, double x)
{
    return dtype == TSSA_FLOAT ? (double)fmaf((float)weight, (float)x, (float)sum)
                               : sum + weight * x;
}

/* The next state of a sequence: biases, then inputs, then states. */
static void order_step(struct order *o, tssa_dtype dtype, const float *x)
{
    for (int i = 0; i < ORDER_HIDDEN; i++) {
        double sum = dtype == TSSA_FLOAT ? (double)(o->b[i] + o->b[ORDER_HIDDEN + i])
                                         : (double)o->b[i] + (double)o->b[ORDER_HIDDEN + i];
        for (int k = 0; k < ORDER_INPUT; k++)
            sum = add_product(dtype, sum, (double)o->w[i * ORDER_INPUT + k], (double)x[k]);
        for (int k = 0; k < ORDER_HIDDEN; k++)
            sum = add_product(dtype, sum, (double)o->r[i * ORDER_HIDDEN + k], o->h[k]);
        o->next[i] = sum > 0 ? sum : 0;
    }
    memcpy(o->h, o->next, sizeof o->h);
}

static void add_values(struct op_run *t, uint32_t i, tssa_dtype dtype, int rank,
                       const int64_t *dims, const float *values)
{
    op_absent(t);
    struct tensor *x = op_input(t, i, dtype, rank, dims);
    convert_elements((int64_t)tensor_count(x), TSSA_FLOAT, values, 1, dtype, x->data, 1,
                     &convert_default);
    t->present[i] = true;
}

static void check_order(struct order *o, tssa_dtype dtype, int64_t batch, int threads)
{
    static const tssa_string relu[] = {{"Relu", 4}};
    struct team team;
    struct op_run t;
    op_begin(&t, IR_OP_RNN, 0);
    op_attr(&t, (struct ir_attr){.name = "activations",
                                 .kind = IR_ATTR_STRINGS,
                                 .count = 1,
                                 .strings = (tssa_string *)relu});
    op_outputs(&t, 2);
    add_values(&t, 0, dtype, 3, (const int64_t[]){ORDER_STEPS, batch, ORDER_INPUT}, o->x);
    add_values(&t, 1, dtype, 3, (const int64_t[]){1, ORDER_HIDDEN, ORDER_INPUT}, o->w);
    add_values(&t, 2, dtype, 3, (const int64_t[]){1, ORDER_HIDDEN, ORDER_HIDDEN}, o->r);
    add_values(&t, 3, dtype, 2, (const int64_t[]){1, 2 * ORDER_HIDDEN}, o->b);
    op_threads(&t, &team, threads);
    op_go(&t);
    for (int64_t n = 0; n < batch; n++) {
        memset(o->h, 0, sizeof o->h);
        for (int64_t step = 0; step < ORDER_STEPS; step++)
            order_step(o, dtype, o->x + (step * batch + n) * ORDER_INPUT);
        for (int64_t i = 0; i < ORDER_HIDDEN; i++)
            assert_true(element_of(&t.outputs[1].tensor, (size_t)(n * ORDER_HIDDEN + i)) ==
                        o->h[i]);
    }
    op_close(&t);
}

static void test_order(void **state)
{
    (void)state;
    static struct order o;
    random_floats(o.x, sizeof o.x / sizeof(float), 1);
    random_floats(o.w, sizeof o.w / sizeof(float), 2);
    random_floats(o.r, sizeof o.r / sizeof(float), 3);
    random_floats(o.b, sizeof o.b / sizeof(float), 4);
    for (int batch = 1; batch <= 7; batch++) {
        check_order(&o, TSSA_FLOAT, batch, batch % 3 + 1);
        check_order(&o, TSSA_DOUBLE, batch, batch % 2 + 1);
    }
    check_order(&o, TSSA_FLOAT, ORDER_BATCH, 3);
    check_order(&o, TSSA_FLOAT, ORDER_BATCH, 1);
    check_order(&o, TSSA_DOUBLE, ORDER_BATCH, 2);
}

/* A one-step RNN with one unit, weight 1 and no state: its activation, seen alone. */
static float activated(const char *name, float x)
{
    static const float one = 1, zero = 0;
    struct op_run t;
    op_begin(&t, IR_OP_RNN, 0);
    op_int(&t, "hidden_size", 1);
    tssa_string names[1] = {{name, strlen(name)}};
    const float alpha = 0.5f, beta = 0.25f;
    const struct ir_attr attrs[] = {
        {.name = "activations", .kind = IR_ATTR_STRINGS, .count = 1, .strings = names},
        {.name = "activation_alpha", .kind = IR_ATTR_FLOATS, .count = 1, .floats = &alpha},
        {.name = "activation_beta", .kind = IR_ATTR_FLOATS, .count = 1, .floats = &beta}};
    for (int i = 0; i < 3; i++)
        op_attr(&t, attrs[i]);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 1}, &x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 1}, &one);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 1}, &zero);
    op_outputs(&t, 2);
    op_go(&t);
    float y = *(const float *)t.outputs[1].tensor.data;
    op_close(&t);
    return y;
}

static void test_activations(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float x;
        double y;
    } cases[] = {
        {"Affine", 2, 1.25},
        {"Elu", -1, 0.5 * (1 / 2.718281828459045 - 1)},
        {"HardSigmoid", 1, 0.75},
        {"HardSigmoid", 9, 1},
        {"LeakyRelu", -3, -1.5},
        {"Relu", -3, 0},
        {"relu", 3, 3},
        {"Softsign", -3, -0.75},
        {"Sigmoid", 0, 0.5},
        {"Softplus", 0, 0.6931471805599453},
        {"Tanh", 0.5f, 0.46211715726000973},
        {"ThresholdedRelu", 0.4f, 0},
        {"ThresholdedRelu", 0.6f, (double)0.6f},
        {"ScaledTanh", 2, 0.5 * 0.46211715726000973},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_close((double)activated(cases[i].name, cases[i].x), cases[i].y, 1e-7, cases[i].name,
                     i);
}

static void refused(const char *direction, int64_t rows, int32_t length)
{
    float x[64] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_GRU, 0);
    op_string(&t, "direction", direction);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 2}, x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, rows, 2}, x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, rows, 2}, x);
    op_absent(&t);
    op_add(&t, TSSA_INT32, 1, (const int64_t[]){1}, &length);
    op_outputs(&t, 2);
    op_fails(&t, "");
    op_close(&t);
}

static void test_refuses(void **state)
{
    (void)state;
    refused("sideways", 6, 1);
    refused("bidirectional", 6, 1); /* W has one direction */
    refused("forward", 5, 1);
    refused("forward", 6, 2);
    refused("forward", 6, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rnn),     cmocka_unit_test(test_gru),
        cmocka_unit_test(test_lstm),    cmocka_unit_test(test_activations),
        cmocka_unit_test(test_refuses), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
