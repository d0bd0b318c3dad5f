/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on devices that launch grids, on random operands: they are as near to the CPU's as sums
 * of the same numbers in another order are, on `opencl`, where there is one, and on `cuda`, on a
 * fake driver, in whatever order threads run.
 */
/* ctest-timeout: 900 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/same_value.h"
#include "device/grids/multiply.h"
#include "gir/gir.h"

#define ROUNDS GRIDS_ROUNDS(60)

/* ---- Products -------------------------------------------------------------------------------- */

enum { FLOAT_TYPES = 4 };
static const char *const float_names[] = {"f32", "f64", "f16", "bf16"};
static const tssa_dtype float_types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
/* Of two-byte floats: sums that lie between two of them are rounded to either. */
static const double tolerances[] = {1e-4, 1e-12, 1e-3, 8e-3};

static void test_matmul(void **state)
{
    for (int t = 0; t < FLOAT_TYPES; t++) {
        struct grids_run run;
        struct operands o;
        grids_run_open_typed(
            &run, *state,
            "graph @g opset(\"\": 18) ir_version(8) (%a: @@@[B, M, K], %b: @@@[C, K, N]) -> "
            "(%c) {\n"
            "  %c = MatMul@13(%a, %b)\n"
            "  return(%c)\n"
            "}\n",
            float_names[t]);
        operands_open(&o, 5 + (uint64_t)t);
        for (int i = 0; i < ROUNDS; i++) {
            const int64_t m = operands_size(&o), n = operands_size(&o), k = operands_size(&o),
                          batch = random_int(&o.random, 1, 4);
            const bool one_a = random_chance(&o.random, 30), one_b = random_chance(&o.random, 30);
            operands_add_numbers(&o, float_types[t], 3, (const int64_t[]){one_a ? 1 : batch, m, k});
            operands_add_numbers(&o, float_types[t], 3, (const int64_t[]){one_b ? 1 : batch, k, n});
            assert_true(grids_run_go(&run, o.given));
            operands_expect_close(&run, 0, tolerances[t]);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* Leading axes of which now the one operand's, now the other's is broadcast; vectors. */
static void test_matmul_of_more_axes(void **state)
{
    static const char *const program =
        "graph @g opset(\"\": 18) ir_version(8) (%a: f32[A, D, 1, M, K], %b: f32[1, D, B, K, N], "
        "%v: f32[K]) -> (%c, %l, %r) {\n"
        "  %c = MatMul@13(%a, %b)\n"
        "  %l = MatMul@13(%v, %b)\n"
        "  %r = MatMul@13(%a, %v)\n"
        "  return(%c, %l, %r)\n"
        "}\n";
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state, program);
    operands_open(&o, 9);
    for (int i = 0; i < ROUNDS / 2; i++) {
        const int64_t m = operands_size(&o), n = operands_size(&o), k = operands_size(&o),
                      both = random_int(&o.random, 1, 2);
        operands_add_numbers(&o, TSSA_FLOAT, 5,
                             (const int64_t[]){random_int(&o.random, 1, 3), both, 1, m, k});
        operands_add_numbers(&o, TSSA_FLOAT, 5,
                             (const int64_t[]){1, both, random_int(&o.random, 1, 3), k, n});
        operands_add_numbers(&o, TSSA_FLOAT, 1, &k);
        assert_true(grids_run_go(&run, o.given));
        for (int r = 0; r < 3; r++)
            operands_expect_close(&run, r, tolerances[0]);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_matmul_of_unlike_sizes(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%a: f32[M, K], %b: f32[L, N]) -> "
                   "(%c) {\n"
                   "  %c = MatMul@13(%a, %b)\n"
                   "  return(%c)\n"
                   "}\n");
    operands_open(&o, 4);
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){2, 3});
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){4, 5});
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    grids_run_close(&run);
}

static int64_t odd(struct operands *o, int64_t most)
{
    return 2 * random_int(&o->random, 0, (most - 1) / 2) + 1;
}

struct sizes {
    int64_t m, n, k;
};

/* 1 to 9 rows, then columns, of odd sizes; a sum of no terms; then any. */
enum { FEW_SIZES = 19, SIZES = 26 };
static struct sizes sizes_at(struct operands *o, int i)
{
    if (i < 9)
        return (struct sizes){i + 1, odd(o, 400), odd(o, 300)};
    if (i < 18)
        return (struct sizes){odd(o, 400), i - 8, odd(o, 300)};
    return (struct sizes){operands_size(o), operands_size(o), i < FEW_SIZES ? 0 : operands_size(o)};
}

/* Y = A B C as Gemm has it, and Z without C. */
static void open_gemm(struct grids_run *run, const char *device, int t, bool turn_a, bool turn_b,
                      bool scaled)
{
    char program[600];
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 18) ir_version(8) (%%a: @@@[P, Q], %%b: @@@[R, S], %%c: @@@[T, "
             "U]) -> (%%y, %%z) {\n"
             "  %%y = Gemm@13(%%a, %%b, %%c) {transA = %d, transB = %d, alpha = %s, beta = %s}\n"
             "  %%z = Gemm@13(%%a, %%b) {transA = %d, transB = %d, alpha = %s}\n"
             "  return(%%y, %%z)\n"
             "}\n",
             turn_a, turn_b, scaled ? "1.5" : "1.0", scaled ? "-0.3" : "1.0", turn_a, turn_b,
             scaled ? "1.5" : "1.0");
    grids_run_open_typed(run, device, program, float_names[t]);
}

static void expect_gemm(struct grids_run *run, struct operands *o, int t)
{
    assert_true(grids_run_go(run, o->given));
    operands_expect_close(run, 0, tolerances[t]);
    operands_expect_close(run, 1, tolerances[t]);
    operands_clear(o);
}

/* Turned or not, with a C of each shape that broadcasts. */
static void gemm(const char *device, struct operands *o, int t, bool turn_a, bool turn_b,
                 bool scaled)
{
    struct grids_run run;
    open_gemm(&run, device, t, turn_a, turn_b, scaled);
    for (int i = 0; i < SIZES; i++) {
        const struct sizes s = sizes_at(o, i);
        operands_add_numbers(o, float_types[t], 2,
                             (const int64_t[]){turn_a ? s.k : s.m, turn_a ? s.m : s.k});
        operands_add_numbers(o, float_types[t], 2,
                             (const int64_t[]){turn_b ? s.n : s.k, turn_b ? s.k : s.n});
        operands_add_numbers(o, float_types[t], 2,
                             (const int64_t[]){i & 1 ? 1 : s.m, i & 2 ? 1 : s.n});
        expect_gemm(&run, o, t);
    }
    grids_run_close(&run);
}

static void test_gemm(void **state)
{
    struct operands o;
    operands_open(&o, 7);
    for (int i = 0; i < 16; i++) /* doubles, or bf16, in each other one */
        gemm(*state, &o, ((i ^ i >> 1 ^ i >> 2) & 1) + (i >> 3) * 2, i & 1, i >> 1 & 1, i >> 2 & 1);
}

/* 2049 is no f16, but the sum is not rounded before something is added to it. */
static void test_sums_of_halves_are_rounded_once(void **state)
{
    struct grids_run run;
    struct operands o;
    open_gemm(&run, *state, 2, false, false, false);
    operands_open(&o, 12);
    static const int64_t dims[][2] = {{1, 2049}, {2049, 1}, {1, 1}};
    for (int i = 0; i < 3; i++) {
        struct tensor *operand = operands_add(&o, TSSA_FLOAT16, 2, dims[i]);
        for (size_t k = 0; k < tensor_count(operand); k++)
            dtype_store_double(TSSA_FLOAT16, (uint16_t *)operand->data + k, i == 2 ? -2048 : 1);
    }
    grids_run_same(&run, o.given);
    assert_true(dtype_load_double(TSSA_FLOAT16, run.made[0].tensor.data) == 1);
    assert_true(dtype_load_double(TSSA_FLOAT16, run.made[1].tensor.data) == 2048);
    operands_clear(&o);
    grids_run_close(&run);
}

/* Does the device have a library for it that is no text? */
static bool takes(const struct grids_run *run, const struct matmul_problem *matmul, int t)
{
    const struct device_library *library = run->device.device->library;
    const struct library_problem problem = {
        .kind = LIBRARY_MATMUL, .dtype = float_types[t], .matmul = *matmul};
    return library && library->is_worth_it && library->is_worth_it(&problem);
}

/* Sizes for which each text of products is chosen. */
static void test_each_text_of_products(void **state)
{
    static const struct {
        enum grids_text text;
        struct sizes sizes;
    } cases[] = {
        {GRIDS_TEXT_PRODUCT_ROW, {1, 5000, 37}},    {GRIDS_TEXT_PRODUCT_ROW, {700, 1, 3}},
        {GRIDS_TEXT_PRODUCT_ROW, {1, 1, 1000}},     {GRIDS_TEXT_PRODUCT_ROWS, {7, 3000, 61}},
        {GRIDS_TEXT_PRODUCT_ROWS, {90, 80, 200}},   {GRIDS_TEXT_PRODUCT_SMALL, {2000, 9, 70}},
        {GRIDS_TEXT_PRODUCT_SMALL, {9, 2000, 130}}, {GRIDS_TEXT_PRODUCT, {350, 400, 35}}};
    for (int t = 0; t < FLOAT_TYPES; t++) {
        struct grids_run run;
        struct operands o;
        open_gemm(&run, *state, t, false, t != 0, true);
        operands_open(&o, 8);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct sizes s = cases[i].sizes;
            const struct matmul_problem problem = {.batch = 1, .m = s.m, .n = s.n, .k = s.k};
            assert_int_equal(multiply_text(&run.device, &problem), cases[i].text);
            operands_add_numbers(&o, float_types[t], 2, (const int64_t[]){s.m, s.k});
            operands_add_numbers(&o, float_types[t], 2,
                                 (const int64_t[]){t ? s.n : s.k, t ? s.k : s.n});
            operands_add_numbers(&o, float_types[t], 2, (const int64_t[]){s.m, s.n});
            expect_gemm(&run, &o, t);
            /* one each, two where a library computes sums; opencl clears notes with one */
            const uint64_t cleared = strcmp(*state, "opencl") == 0;
            assert_int_equal(run.counts.launches + run.counts.library_calls,
                             (takes(&run, &problem, t) ? 4 : 2) + cleared);
            assert_int_equal(run.counts.library_calls, takes(&run, &problem, t) ? 2 : 0);
        }
        grids_run_close(&run);
    }
}

/* The order of a sum follows from the sizes. */
static void test_products_have_the_same_bits(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%a: f32[B, M, K], %b: f32[K, N]) -> "
                   "(%c) {\n"
                   "  %c = MatMul@13(%a, %b)\n"
                   "  return(%c)\n"
                   "}\n");
    operands_open(&o, 10);
    for (int i = 0; i < 10; i++) {
        const struct sizes s = sizes_at(&o, i);
        operands_add_numbers(&o, TSSA_FLOAT, 3, (const int64_t[]){1, s.m, s.k});
        operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){s.k, s.n});
        assert_true(grids_run_go(&run, o.given));
        struct value first = run.made[0];
        run.made[0] = (struct value){0};
        assert_null(grids_run_try(&run, o.given));
        assert_true(same_value(&run.made[0], &first));
        value_release(&first);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

/* ---- With what is computed of them ----------------------------------------------------------- */

/* A program of one fuse op, of products of m rows, n columns and k terms, or l. */
struct program {
    struct text ops;
    struct random *random;
    struct sizes sizes;
    int64_t l, batch; /* 0: matrices without one */
    bool turned;      /* the second operand of Gemm */
    int t, made;      /* values: %v0, %v1, ... */
};

static int random_value(const struct program *p)
{
    return (int)random_int(p->random, 0, p->made - 1);
}

/* Elements of one shape, that of the products; but no more than what is near stays near. */
static void add_ops(struct program *p, int n)
{
    static const char *const unary[] = {"Tanh", "Sigmoid", "Neg", "Abs", "Relu", "Softsign"},
                             *const binary[] = {"Add", "Sub", "Max", "Min"};
    static const char *const others[] = {"%r", "%s", "%e", "%f"};
    for (int i = 0; i < n; i++, p->made++) {
        const int from = random_value(p);
        if (random_chance(p->random, 50))
            text_printf(&p->ops, "%%v%d = %s(%%v%d)\n", p->made, unary[random_int(p->random, 0, 5)],
                        from);
        else if (random_chance(p->random, 60))
            text_printf(&p->ops, "%%v%d = %s(%%v%d, %s)\n", p->made,
                        binary[random_int(p->random, 0, 3)], from,
                        others[random_int(p->random, 0, 3)]);
        else
            text_printf(&p->ops, "%%v%d = %s(%%v%d, %%v%d)\n", p->made,
                        binary[random_int(p->random, 0, 3)], from, random_value(p));
    }
}

/* %v0: a sum of one product, or of two that have other terms. */
static void add_products(struct program *p, int kind)
{
    switch (kind) {
    case 0:
        text_puts(&p->ops, "%v0 = MatMul(%a, %b)\n");
        break;
    case 1:
        text_printf(&p->ops, "%%v0 = Gemm(%%a, %%b, %%r) {transB = %d, alpha = 0.5, beta = -1.5}\n",
                    p->turned);
        break;
    case 2:
        text_puts(&p->ops, "%p = MatMul(%a, %b)\n%q = MatMul(%c, %d)\n%v0 = Add(%p, %q)\n");
        break;
    case 3: /* of rows that are computed for it */
        text_puts(&p->ops, "%o = Neg(%a)\n%p = Softmax(%o)\n%v0 = MatMul(%p, %b)\n");
        break;
    case 4:
        text_puts(&p->ops, "%o = Abs(%a)\n%p = Tanh(%b)\n%v0 = MatMul(%o, %p)\n");
        break;
    default: /* its rows are read the other way round */
        text_printf(&p->ops,
                    "%%p = MatMul(%%a, %%b)\n"
                    "%%v0 = access(%%p) {rule = [slice(%d, -1, -%" PRId64 ", -1)]}\n",
                    p->batch ? 1 : 0, p->sizes.m + 1);
    }
    p->made = 1;
}

/* Parameters of the fuse op are called as the graph's inputs are. */
static void print_params(const struct program *p, const char *between, struct text *text)
{
    const char *type = float_names[p->t];
    const struct sizes s = p->sizes;
    char batch[32] = "";
    if (p->batch)
        snprintf(batch, sizeof batch, "%" PRId64 ", ", p->batch);
    const struct {
        const char *name, *batch;
        int64_t rows, columns;
    } all[] = {{"a", batch, s.m, s.k},  {"b", "", p->turned ? s.n : s.k, p->turned ? s.k : s.n},
               {"c", batch, s.m, p->l}, {"d", "", p->l, s.n},
               {"r", "", 1, s.n},       {"s", "", s.m, 1},
               {"e", batch, s.m, s.n}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        text_printf(text, "%%%s%s: %s[%s%" PRId64 ", %" PRId64 "], ", all[i].name, between, type,
                    all[i].batch, all[i].rows, all[i].columns);
    text_printf(text, "%%f%s: %s[]", between, type);
}

static void print_program(struct program *p, struct text *text)
{
    static const char *const inner = "abcdrsef";
    text_puts(text, "graph @g opset(\"\": 18) ir_version(8) (");
    print_params(p, "0", text);
    text_puts(text, ") -> (%x0, %y0) {\n%x0, %y0 = fuse(");
    for (int i = 0; inner[i]; i++)
        text_printf(text, "%s%%%c0", i ? ", " : "", inner[i]);
    text_puts(text, ") { body(");
    print_params(p, "", text);
    text_printf(text,
                ") {\n%s%%t = access(%%v%d) {rule = [permute(%s)]}\nreturn(%%v%d, %%t)\n} }\n",
                text_string(&p->ops), random_value(p), p->batch ? "0, 2, 1" : "1, 0", p->made - 1);
    text_puts(text, "return(%x0, %y0)\n}\n");
}

static void add_operands(const struct program *p, struct operands *o)
{
    const struct sizes s = p->sizes;
    const tssa_dtype type = float_types[p->t];
    const int rank = p->batch ? 3 : 2;
    const int64_t a[] = {p->batch, s.m, s.k}, c[] = {p->batch, s.m, p->l},
                  e[] = {p->batch, s.m, s.n};
    operands_add_numbers(o, type, rank, a + 3 - rank);
    operands_add_numbers(o, type, 2,
                         (const int64_t[]){p->turned ? s.n : s.k, p->turned ? s.k : s.n});
    operands_add_numbers(o, type, rank, c + 3 - rank);
    operands_add_numbers(o, type, 2, (const int64_t[]){p->l, s.n});
    operands_add_numbers(o, type, 2, (const int64_t[]){1, s.n});
    operands_add_numbers(o, type, 2, (const int64_t[]){s.m, 1});
    operands_add_numbers(o, type, rank, e + 3 - rank);
    operands_add_numbers(o, type, 0, NULL);
}

#define MOST_TEXT 4000

static void make_program(struct program *p, int kind, char *program)
{
    struct text text;
    text_init(&p->ops, &allocator_default);
    text_init(&text, &allocator_default);
    add_products(p, kind);
    add_ops(p, (int)random_int(p->random, 1, 8));
    print_program(p, &text);
    assert_true(text.size < MOST_TEXT);
    memcpy(program, text_string(&text), text.size + 1);
    text_free(&text);
    text_free(&p->ops);
}

/* Nothing is allocated before it is known that there is a device. */
static void run_program(const char *device, struct program *p, int kind, struct operands *o)
{
    struct grids_run run;
    char program[MOST_TEXT];
    make_program(p, kind, program);
    grids_run_open(&run, device, program);
    for (int i = 0; i < 2; i++) {
        add_operands(p, o);
        assert_true(grids_run_go(&run, o->given));
        operands_expect_close(&run, 0, tolerances[p->t]);
        operands_expect_close(&run, 1, tolerances[p->t]);
        /* one; opencl clears notes with one */
        assert_true(run.counts.launches <= 1 + (strcmp(device, "opencl") == 0));
        operands_clear(o);
    }
    grids_run_close(&run);
}

static void test_products_in_kernels(void **state)
{
    struct operands o;
    operands_open(&o, 12);
    for (int i = 0; i < ROUNDS; i++) {
        const int kind = i % 6;
        struct program p = {.random = &o.random,
                            .sizes = sizes_at(&o, (int)random_int(&o.random, 0, SIZES - 1)),
                            .l = operands_size(&o),
                            .batch = kind != 1 && random_chance(&o.random, 40) ? 2 : 0,
                            .turned = kind == 1 && random_chance(&o.random, 50),
                            .t = random_chance(&o.random, 30)};
        const int64_t elements = p.sizes.m * p.sizes.n * (p.batch ? p.batch : 1);
        const bool computes = kind == 3 || kind == 4;
        if (elements > 16384 || (computes && elements * p.sizes.k > 1 << 18))
            continue; /* such products are no kernel's */
        run_program(*state, &p, kind, &o);
    }
}

/* Each element needs several of the product: what a cell of an LSTM computes. */
static void test_gates(void **state)
{
    static const struct sizes sizes[] = {
        {1, 1, 1}, {1, 7, 3}, {1, 33, 70}, {1, 256, 64}, {3, 40, 9}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct sizes s = sizes[i];
        struct grids_run run;
        struct operands o;
        char text[2000];
        snprintf(text, sizeof text,
                 "graph @g opset(\"\": 18) ir_version(8) (%%x: f32[%d, %d], %%w: f32[%d, %d], %%c: "
                 "f32[%d, %d]) -> (%%y, %%z) {\n"
                 "%%y, %%z = fuse(%%x, %%w, %%c) { body(%%p: f32[%d, %d], %%q: f32[%d, %d], %%r: "
                 "f32[%d, %d]) {\n"
                 "%%m = MatMul(%%p, %%q)\n"
                 "%%g = access(%%m) {rule = [reshape(%d, 4, %d), permute(1, 0, 2)]}\n"
                 "%%a = access(%%g) {rule = [select(0, 0)]}\n%%b = access(%%g) {rule = [select(0, "
                 "1)]}\n"
                 "%%d = access(%%g) {rule = [select(0, 2)]}\n%%e = access(%%g) {rule = [select(0, "
                 "3)]}\n"
                 "%%f = Sigmoid(%%a)\n%%h = Sigmoid(%%b)\n%%i = Tanh(%%d)\n%%j = Sigmoid(%%e)\n"
                 "%%k = Mul(%%h, %%r)\n%%l = Mul(%%f, %%i)\n%%n = Add(%%k, %%l)\n"
                 "%%o = Tanh(%%n)\n%%s = Mul(%%j, %%o)\nreturn(%%n, %%s)\n} }\n"
                 "return(%%y, %%z)\n}\n",
                 (int)s.m, (int)s.k, (int)s.k, (int)s.n * 4, (int)s.m, (int)s.n, (int)s.m, (int)s.k,
                 (int)s.k, (int)s.n * 4, (int)s.m, (int)s.n, (int)s.m, (int)s.n);
        grids_run_open(&run, *state, text);
        operands_open(&o, 13 + i);
        operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){s.m, s.k});
        operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){s.k, 4 * s.n});
        operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){s.m, s.n});
        expect_gemm(&run, &o, 0);
        grids_run_close(&run);
    }
}

/* ---- In stages ------------------------------------------------------------------------------- */

/* A step of attention by heads, with its products, one launch; the scores and -q, too. */
#define STEP                                                                                       \
    "%%a = MatMul(%%p, %%q)\n%%n = Neg(%%a)\n"                                                     \
    "%%t = access(%%a) {rule = [permute(0, 2, 1)]}\n%%s = MatMul(%%r, %%t)\n"                      \
    "%%u = access(%%s) {rule = [permute(0, 2, 1)]}\n%%m = Softmax(%%u)\n"                          \
    "%%d = MatMul(%%m, %%v)\n%%o = MatMul(%%d, %%q)\nreturn(%%o, %%n, %%s)\n"

struct heads {
    int heads, rows, depth;
};

static void open_step(struct grids_run *run, const char *device, const struct heads *h, int t)
{
    char text[2000];
    snprintf(text, sizeof text,
             "graph @g opset(\"\": 18) ir_version(8) (%%x: @@@[%d, 1, %d], %%w: @@@[%d, %d, %d], "
             "%%k: @@@[%d, %d, %d], %%l: @@@[%d, %d, %d]) -> (%%y, %%z, %%c) {\n"
             "%%y, %%z, %%c = fuse(%%x, %%w, %%k, %%l) { body(%%p: @@@[%d, 1, %d], %%q: @@@[%d, "
             "%d, %d], %%r: @@@[%d, %d, %d], %%v: @@@[%d, %d, %d]) {\n" STEP "} }\n"
             "return(%%y, %%z, %%c)\n}\n",
             h->heads, h->depth, h->heads, h->depth, h->depth, h->heads, h->rows, h->depth,
             h->heads, h->rows, h->depth, h->heads, h->depth, h->heads, h->depth, h->depth,
             h->heads, h->rows, h->depth, h->heads, h->rows, h->depth);
    grids_run_open_typed(run, device, text, float_names[t]);
}

static void test_steps_of_attention(void **state)
{
    static const struct heads all[] = {
        {4, 1, 1}, {5, 7, 3}, {12, 50, 33}, {9, 33, 40}, {40, 3, 17}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct heads *h = &all[i];
        const int t = i % 2;
        struct grids_run run;
        struct operands o;
        open_step(&run, *state, h, t);
        operands_open(&o, 17 + i);
        operands_add_numbers(&o, float_types[t], 3, (const int64_t[]){h->heads, 1, h->depth});
        operands_add_numbers(&o, float_types[t], 3,
                             (const int64_t[]){h->heads, h->depth, h->depth});
        operands_add_numbers(&o, float_types[t], 3, (const int64_t[]){h->heads, h->rows, h->depth});
        operands_add_numbers(&o, float_types[t], 3, (const int64_t[]){h->heads, h->rows, h->depth});
        assert_true(grids_run_go(&run, o.given));
        for (int r = 0; r < 3; r++)
            operands_expect_close(&run, r, tolerances[t]);
        assert_true(run.counts.launches <= 1u + (strcmp(*state, "opencl") == 0));
        operands_clear(&o);
        grids_run_close(&run);
    }
}

/* As many stages as there may be. */
static void test_chain(void **state)
{
    char text[2000];
    struct grids_run run;
    struct operands o;
    int n = snprintf(text, sizeof text,
                     "graph @g opset(\"\": 18) ir_version(8) (%%x: f32[3, 8], %%w: f32[8, 8]) -> "
                     "(%%y) {\n%%y = fuse(%%x, %%w) { body(%%v0: f32[3, 8], %%q: f32[8, 8]) {\n");
    for (int i = 0; i < GIR_MAX_STAGES; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "%%m%d = MatMul(%%v%d, %%q)\n%%v%d = Tanh(%%m%d)\n", i, i, i + 1, i);
    snprintf(text + n, sizeof text - (size_t)n, "return(%%v%d) } }\nreturn(%%y)\n}\n",
             GIR_MAX_STAGES);
    grids_run_open(&run, *state, text);
    operands_open(&o, 31);
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){3, 8});
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){8, 8});
    assert_true(grids_run_go(&run, o.given));
    operands_expect_close(&run, 0, 1e-4);
    assert_true(run.counts.launches <= 1u + (strcmp(*state, "opencl") == 0));
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(test_matmul),
                                       OF_DEVICE(test_matmul_of_more_axes),
                                       OF_DEVICE(test_matmul_of_unlike_sizes),
                                       OF_DEVICE(test_gemm),
                                       OF_DEVICE(test_sums_of_halves_are_rounded_once),
                                       OF_DEVICE(test_each_text_of_products),
                                       OF_DEVICE(test_products_have_the_same_bits),
                                       OF_DEVICE(test_products_in_kernels),
                                       OF_DEVICE(test_gates),
                                       OF_DEVICE(test_steps_of_attention),
                                       OF_DEVICE(test_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return grids_run_on_each(run_on);
}
