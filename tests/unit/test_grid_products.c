/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on devices that launch grids, on random operands: they are as near to the CPU's as sums
 * of the same numbers in another order are, on `opencl`, where there is one, and on `cuda`, on a
 * fake driver, in whatever order threads run.
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

#include "common/fake_cuda.h"
#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/same_value.h"
#include "common/test_card.h"
#include "device/grids/multiply.h"

/* Sanitizers make the fake's threads ten times slower: there one order has to do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 12
#define FIRST_ORDER 2
#else
#define ROUNDS 60
#define FIRST_ORDER 0
#endif

/* ---- Products -------------------------------------------------------------------------------- */

static const char *const float_names[] = {"f32", "f64"};
static const tssa_dtype float_types[] = {TSSA_FLOAT, TSSA_DOUBLE};
static const double tolerances[] = {1e-4, 1e-12};

static void test_matmul(void **state)
{
    for (int t = 0; t < 2; t++) {
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
    for (int i = 0; i < 8; i++) /* doubles in each other one */
        gemm(*state, &o, (i ^ i >> 1 ^ i >> 2) & 1, i & 1, i >> 1 & 1, i >> 2 & 1);
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
    for (int t = 0; t < 2; t++) {
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

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(test_matmul),
                                       OF_DEVICE(test_matmul_of_more_axes),
                                       OF_DEVICE(test_matmul_of_unlike_sizes),
                                       OF_DEVICE(test_gemm),
                                       OF_DEVICE(test_each_text_of_products),
                                       OF_DEVICE(test_products_have_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    static const char *const orders[] = {"0", "1", "2"};
    int failed = run_on("opencl");
    fake_cuda_use(true);
    for (int i = FIRST_ORDER; i < (test_card() ? FIRST_ORDER + 1 : 3); i++) {
        setenv("FAKE_CUDA_ORDER", orders[i], 1);
        failed += run_on("cuda");
    }
    return failed;
}
