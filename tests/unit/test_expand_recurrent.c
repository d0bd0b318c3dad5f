/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU and LSTM of random attributes and operands on devices that have no kernel of them, as
 * loops and products (expand_recurrent), against the interpreter on the CPU. Sums of products are
 * exact, or rounded once: X, W and the biases are multiples of 1/8, and of each row of R one
 * element is not 0. So all of it must have the same bits.
 */
/* ctest-timeout: 600 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/expand_check.h"
#include "common/fake_cuda.h"
#include "common/op_run.h"
#include "common/same_value.h"
#include "ir/recurrent.h"

/* At most: steps, sequences, inputs and states. */
struct sizes {
    int64_t steps, batch, input, hidden;
};
static const struct sizes small = {5, 4, 6, 9}, large = {7, 20, 70, 80};
#define MAX_COUNT (2 * 4 * 80 * 80)
#define RESULTS 3

#define PASS "expand_recurrent"

/* ---- Programs -------------------------------------------------------------------------------- */

struct operand {
    bool given, constant;
    int rank;
    int64_t dims[3];
    char shape[3][8]; /* as the text has it */
    double values[MAX_COUNT];
    char elements[MAX_COUNT * sizeof(double)]; /* the same in its type */
};

struct program {
    struct random random;
    enum recurrent_kind kind;
    const char *direction;
    int64_t gates, steps, batch, input, hidden, directions;
    bool exact, batch_first, any_steps, any_batch, wanted[RESULTS]; /* any: told by a run */
    tssa_dtype dtype;
    struct operand operands[RECURRENT_OPERANDS];
    struct text text;
};

static const char *const kinds[] = {"RNN", "GRU", "LSTM"};
static const char *const operand_names[] = {"x", "w", "r", "b", "lens", "h0", "c0", "p"};

static int64_t count_of(const struct operand *o)
{
    int64_t n = 1;
    for (int i = 0; i < o->rank; i++)
        n *= o->dims[i];
    return n;
}

/* `sizes` as they are, but for T and N, which may be symbols. */
static struct operand *add(struct program *p, enum recurrent_operand which, int rank,
                           const int64_t *dims)
{
    struct operand *o = &p->operands[which];
    o->given = true;
    o->rank = rank;
    for (int i = 0; i < rank; i++) {
        o->dims[i] = dims[i];
        snprintf(o->shape[i], sizeof o->shape[i], "%d", (int)dims[i]);
    }
    return o;
}

static void name_dim(bool any, struct operand *o, int axis, const char *name)
{
    if (any)
        snprintf(o->shape[axis], sizeof o->shape[axis], "%s", name);
}

static void fill(struct program *p, struct operand *o)
{
    for (int64_t i = 0; i < count_of(o); i++)
        o->values[i] = p->exact ? (double)random_int(&p->random, -8, 8) / 8
                                : (double)random_int(&p->random, -9999, 9999) / 40000;
}

/* One element of each row. */
static void fill_recurrence(struct program *p, struct operand *o)
{
    static const double values[] = {1, -1, 0.5, -0.5};
    if (!p->exact) {
        fill(p, o);
        return;
    }
    for (int64_t row = 0; row < o->dims[0] * o->dims[1]; row++)
        o->values[row * p->hidden + random_int(&p->random, 0, p->hidden - 1)] =
            values[random_int(&p->random, 0, 3)];
}

static void add_states(struct program *p, enum recurrent_operand which)
{
    const int64_t n = p->batch, d = p->directions;
    const int64_t dims[] = {p->batch_first ? n : d, p->batch_first ? d : n, p->hidden};
    struct operand *o = add(p, which, 3, dims);
    name_dim(p->any_batch, o, p->batch_first ? 0 : 1, "N");
    o->constant = p->exact && !p->any_batch && random_chance(&p->random, 30);
    fill(p, o);
}

static void add_operands(struct program *p)
{
    const int64_t d = p->directions, width = p->gates * p->hidden;
    const int batch_axis = p->batch_first ? 0 : 1;
    const bool constants = p->exact && random_chance(&p->random, 60),
               is_lstm = p->kind == RECURRENT_LSTM;
    struct operand *o = add(p, RECURRENT_X, 3,
                            (const int64_t[]){p->batch_first ? p->batch : p->steps,
                                              p->batch_first ? p->steps : p->batch, p->input});
    name_dim(p->any_batch, o, batch_axis, "N");
    name_dim(p->any_steps, o, 1 - batch_axis, "T");
    fill(p, o);
    o = add(p, RECURRENT_W, 3, (const int64_t[]){d, width, p->input});
    o->constant = constants;
    fill(p, o);
    o = add(p, RECURRENT_R, 3, (const int64_t[]){d, width, p->hidden});
    o->constant = constants;
    fill_recurrence(p, o);
    if (random_chance(&p->random, 70)) {
        o = add(p, RECURRENT_B, 2, (const int64_t[]){d, 2 * width});
        o->constant = constants;
        fill(p, o);
    }
    if (random_chance(&p->random, 50)) {
        o = add(p, RECURRENT_LENGTHS, 1, &p->batch);
        o->constant = p->exact && !p->any_batch && random_chance(&p->random, 30);
        name_dim(p->any_batch, o, 0, "N");
        for (int64_t i = 0; i < p->batch; i++)
            o->values[i] = (double)random_int(&p->random, 0, p->steps);
    }
    if (random_chance(&p->random, 60))
        add_states(p, RECURRENT_H0);
    if (is_lstm && random_chance(&p->random, 60))
        add_states(p, RECURRENT_C0);
    if (is_lstm && random_chance(&p->random, 50)) {
        o = add(p, RECURRENT_P, 2, (const int64_t[]){d, 3 * p->hidden});
        o->constant = constants;
        fill(p, o);
    }
}

static const char *dtype_name(const struct program *p, int operand)
{
    return operand == RECURRENT_LENGTHS ? "i32"
           : p->dtype == TSSA_DOUBLE    ? "f64"
           : p->dtype == TSSA_FLOAT16   ? "f16"
           : p->dtype == TSSA_BFLOAT16  ? "bf16"
                                        : "f32";
}

static void print_type(struct program *p, int operand)
{
    const struct operand *o = &p->operands[operand];
    text_printf(&p->text, "%s[", dtype_name(p, operand));
    for (int i = 0; i < o->rank; i++)
        text_printf(&p->text, "%s%s", i ? ", " : "", o->shape[i]);
    text_printf(&p->text, "]");
}

static void print_constant(struct program *p, int operand)
{
    const struct operand *o = &p->operands[operand];
    text_printf(&p->text, "%%%s = Constant() {value = ", operand_names[operand]);
    print_type(p, operand);
    text_printf(&p->text, " [");
    for (int64_t i = 0; i < count_of(o); i++)
        text_printf(&p->text, "%s%g", i ? ", " : "", o->values[i]);
    text_printf(&p->text, "]}\n");
}

/* All that there are, each in its turn; with parameters that are exact. */
static void print_activations(struct program *p)
{
    static const char *const names[] = {"Affine", "Elu",      "HardSigmoid",    "LeakyRelu",
                                        "relu",   "Sigmoid",  "ScaledTanh",     "Softplus",
                                        "Tanh",   "Softsign", "ThresholdedRelu"};
    const int n = (int)p->directions * (int[]){1, 2, 3}[p->kind];
    text_printf(&p->text, ", activations = [");
    for (int i = 0; i < n; i++)
        text_printf(&p->text, "%s\"%s\"", i ? ", " : "", names[random_int(&p->random, 0, 10)]);
    text_printf(&p->text, "]");
    if (random_chance(&p->random, 70))
        text_printf(&p->text, ", activation_alpha = [0.25, 0.5, 0.75]");
    if (random_chance(&p->random, 70))
        text_printf(&p->text, ", activation_beta = [0.5, 0.25]");
}

static void print_attributes(struct program *p)
{
    text_printf(&p->text, "{hidden_size = %d, direction = \"%s\", layout = %d", (int)p->hidden,
                p->direction, p->batch_first);
    if (random_chance(&p->random, 30))
        text_printf(&p->text, ", clip = 0.625");
    if (random_chance(&p->random, 50))
        print_activations(p);
    if (p->kind == RECURRENT_GRU)
        text_printf(&p->text, ", linear_before_reset = %d", random_chance(&p->random, 50));
    if (p->kind == RECURRENT_LSTM)
        text_printf(&p->text, ", input_forget = %d", random_chance(&p->random, 30));
    text_printf(&p->text, "}\n");
}

static int results_of(const struct program *p)
{
    return p->kind == RECURRENT_LSTM ? 3 : 2;
}

static void print_results(struct program *p, bool all)
{
    const char *separator = "";
    for (int i = 0; i < results_of(p); i++) {
        if (!all && !p->wanted[i])
            continue;
        text_printf(&p->text, p->wanted[i] ? "%s%%y%d" : "%s_", separator, i);
        separator = ", ";
    }
}

static void print_program(struct program *p)
{
    const char *separator = "";
    text_printf(&p->text, "graph @g opset(\"\": 22) ir_version(10) (");
    for (int i = 0; i < RECURRENT_OPERANDS; i++) {
        if (!p->operands[i].given || p->operands[i].constant)
            continue;
        text_printf(&p->text, "%s%%%s: ", separator, operand_names[i]);
        print_type(p, i);
        separator = ", ";
    }
    text_printf(&p->text, ") -> (");
    print_results(p, false);
    text_printf(&p->text, ") {\n");
    for (int i = 0; i < RECURRENT_OPERANDS; i++)
        if (p->operands[i].given && p->operands[i].constant)
            print_constant(p, i);
    print_results(p, true);
    text_printf(&p->text, " = %s(", kinds[p->kind]);
    for (int i = 0; i < (p->kind == RECURRENT_LSTM ? RECURRENT_OPERANDS : RECURRENT_C0); i++)
        text_printf(&p->text, p->operands[i].given ? "%s%%%s" : "%s_", i ? ", " : "",
                    operand_names[i]);
    text_printf(&p->text, ") ");
    print_attributes(p);
    text_printf(&p->text, "return(");
    print_results(p, false);
    text_printf(&p->text, ")\n}\n");
}

static struct program *program_make(uint64_t seed, bool exact)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT16, TSSA_DOUBLE,
                                        TSSA_BFLOAT16};
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->random = (struct random){seed};
    p->exact = exact;
    const struct sizes *most = exact ? &small : &large;
    p->kind = (enum recurrent_kind)random_int(&p->random, 0, 2);
    p->gates = (int[]){1, 3, 4}[p->kind];
    p->direction = directions[random_int(&p->random, 0, 2)];
    p->directions = strcmp(p->direction, "bidirectional") == 0 ? 2 : 1;
    p->steps = random_int(&p->random, 1, most->steps);
    p->batch = random_int(&p->random, 1, most->batch);
    p->input = random_int(&p->random, 1, most->input);
    p->hidden = random_int(&p->random, 1, most->hidden);
    p->batch_first = random_chance(&p->random, 40);
    p->any_steps = random_chance(&p->random, 40);
    p->any_batch = random_chance(&p->random, 30);
    p->dtype = dtypes[random_int(&p->random, 0, 4)];
    for (int i = 0; i < RESULTS; i++)
        p->wanted[i] = i < results_of(p) && random_chance(&p->random, 60);
    if (!p->wanted[1] && !p->wanted[2])
        p->wanted[0] = true;
    add_operands(p);
    text_init(&p->text, &allocator_default);
    print_program(p);
    return p;
}

static void program_free(struct program *p)
{
    text_free(&p->text);
    free(p);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The inputs, in memory of the program's own. */
static void write_inputs(struct program *p, struct expand_program *made)
{
    for (int i = 0; i < RECURRENT_OPERANDS; i++) {
        struct operand *o = &p->operands[i];
        const tssa_dtype dtype = i == RECURRENT_LENGTHS ? TSSA_INT32 : p->dtype;
        if (!o->given || o->constant)
            continue;
        struct expand_input *input = &made->inputs[made->n_inputs++];
        *input = (struct expand_input){.dtype = dtype, .rank = o->rank, .data = o->elements};
        memcpy(input->dims, o->dims, sizeof o->dims);
        for (int64_t k = 0; k < count_of(o); k++)
            dtype_store_double(dtype, o->elements + (size_t)k * tssa_dtype_size(dtype),
                               o->values[k]);
    }
}

static double tolerance_of(tssa_dtype dtype)
{
    return dtype == TSSA_DOUBLE    ? 1e-13
           : dtype == TSSA_FLOAT   ? 1e-5
           : dtype == TSSA_FLOAT16 ? 2e-3
                                   : 2e-2;
}

static void compare(void *user, const struct value *wanted, const struct value *made, size_t output)
{
    struct program *p = user;
    const struct tensor *a = &wanted->tensor, *b = &made->tensor;
    const size_t size = tssa_dtype_size(p->dtype);
    if (p->exact && !same_value(wanted, made))
        fail_msg("output %zu is not the CPU's, of\n%s", output, text_string(&p->text));
    assert_int_equal(tensor_count(a), tensor_count(b));
    for (size_t i = 0; i < tensor_count(a); i++)
        expect_close(dtype_load_double(p->dtype, (char *)b->data + i * size),
                     dtype_load_double(p->dtype, (char *)a->data + i * size),
                     tolerance_of(p->dtype), "output", output);
}

/* false: there is no such device. */
static bool check(const char *device, uint64_t seed, bool exact)
{
    struct program *p = program_make(seed, exact);
    struct expand_program made = {.text = text_string(&p->text), .compare = compare, .user = p};
    write_inputs(p, &made);
    for (int i = 0; i < RESULTS; i++)
        made.n_outputs += p->wanted[i];
    const bool there = expand_check(PASS, device, &made);
    program_free(p);
    return there;
}

/* One in eight is large. */
static void check_all(const char *device, uint64_t programs)
{
    for (uint64_t seed = 1; seed <= programs; seed++)
        if (!check(device, seed, seed % 8 != 0))
            skip();
}

static void test_emulated(void **state)
{
    (void)state;
    check_all("emulated", 400);
}

static void test_cuda(void **state)
{
    (void)state;
    fake_cuda_use(true);
    check_all("cuda", 40);
    assert_int_equal(fake_cuda_alive(), 0);
    fake_cuda_use(false);
}

static void test_opencl(void **state)
{
    (void)state;
    check_all("opencl", 20);
}

/* ---- What is left, and what fails ------------------------------------------------------------ */

#define MODEL(inputs, op)                                                                          \
    "graph @g opset(\"\": 22) ir_version(10) (" inputs ") -> (%y) {\n%y, _ = " op                  \
    "\nreturn(%y)\n}\n"

static void expect_told(const char *text, int level, const char *device, int expanded, int left)
{
    expand_expect(PASS, text, level, device, expanded, left);
}

#define GRU_INPUTS(t, n) "%x: f32[" t ", " n ", 2], %w: f32[1, 6, 2], %r: f32[1, 6, 2]"

static void test_what_is_left(void **state)
{
    static const char plain[] = MODEL(GRU_INPUTS("3", "1"), "GRU(%x, %w, %r) {hidden_size = 2}");
    (void)state;
    expect_told(plain, 2, "emulated", 1, 0);
    /* The CPU has a kernel; lower levels leave the model as it is. */
    expect_told(plain, 2, NULL, 0, 0);
    expect_told(plain, 1, "emulated", 0, 0);
    expect_told(plain, 0, "emulated", 0, 0);
    expect_told(MODEL("%x: f32[3, 1, 2], %w: f32[1, 6, 2], %r: f32[1, 6, H]", "GRU(%x, %w, %r)"), 2,
                "emulated", 0, 1);
    expect_told(MODEL("%x: f32[3, N, 2], %w: f32[1, 6, 2], %r: f32[1, 6, 2], %h: f32[1, M, 2]",
                      "GRU(%x, %w, %r, _, _, %h)"),
                2, "emulated", 0, 1);
    expect_told(MODEL(GRU_INPUTS("0", "1"), "GRU(%x, %w, %r)"), 2, "emulated", 0, 1);
    expect_told(MODEL(GRU_INPUTS("3", "1"), "GRU(%x, %w, %r) {clip = -1.0}"), 2, "emulated", 0, 1);
    expect_told(MODEL(GRU_INPUTS("10000000", "9"), "GRU(%x, %w, %r)"), 2, "emulated", 0, 1);
}

/* No length of a sequence: the run fails, as on the host. */
static void fails_of_length(const char *device, int32_t length)
{
    static const char text[] = MODEL(GRU_INPUTS("3", "2") ", %l: i32[2]", "GRU(%x, %w, %r, _, %l)");
    const int32_t lengths[] = {0, length};
    const struct expand_input inputs[] = {{TSSA_FLOAT, 3, {3, 2, 2}, NULL},
                                          {TSSA_FLOAT, 3, {1, 6, 2}, NULL},
                                          {TSSA_FLOAT, 3, {1, 6, 2}, NULL},
                                          {TSSA_INT32, 1, {2}, lengths}};
    expand_expect_run(text, device, 4, inputs, length >= 0 && length <= 3);
}

static void test_lengths(void **state)
{
    (void)state;
    fake_cuda_use(true);
    for (int32_t length = -2; length <= 5; length++) {
        fails_of_length(NULL, length);
        fails_of_length("emulated", length);
        fails_of_length("cuda", length);
    }
    fake_cuda_use(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulated), cmocka_unit_test(test_cuda),
        cmocka_unit_test(test_opencl),   cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
