/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of devices that launch grids, written as text (kernels/grids), on random operands: where
 * there is such a device, they give what the CPU gives, the same errors included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/grids_run.h"
#include "common/op_run.h"

#define ROUNDS 60

/* ---- Operands -------------------------------------------------------------------------------- */

struct operands {
    struct arena arena;
    struct random random;
    uint32_t n;
    struct value values[4];
    const struct value *given[4];
};

static void operands_open(struct operands *o, uint64_t seed)
{
    *o = (struct operands){.random = {seed}};
    arena_init(&o->arena, &allocator_default);
}

/* The next operand, not filled. */
static struct tensor *add(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims)
{
    struct value *value = &o->values[o->n];
    size_t count, bytes;
    assert_null(tensor_layout(dtype, rank, dims, &count, &bytes));
    value->kind = TSSA_KIND_TENSOR;
    value->tensor = (struct tensor){.dtype = dtype, .rank = rank};
    memcpy(value->tensor.dims, dims, (size_t)rank * sizeof *dims);
    value->tensor.data = arena_alloc_aligned(&o->arena, bytes + 1, TENSOR_ALIGNMENT);
    assert_non_null(value->tensor.data);
    o->given[o->n++] = value;
    return &value->tensor;
}

/* Numbers between -1 and 1. */
static struct tensor *add_numbers(struct operands *o, tssa_dtype dtype, int rank,
                                  const int64_t *dims)
{
    struct tensor *x = add(o, dtype, rank, dims);
    for (size_t i = 0; i < tensor_count(x); i++)
        dtype_store_double(dtype, (char *)x->data + i * tssa_dtype_size(dtype),
                           (double)random_int(&o->random, -1000, 1000) / 1000);
    return x;
}

static void operands_clear(struct operands *o)
{
    o->n = 0;
    arena_clear(&o->arena);
}

/* Mostly small, at times none or more than a tile of the kernels has. */
static int64_t some_size(struct operands *o)
{
    static const int64_t large[] = {31, 32, 33, 63, 64, 65, 130, 257};
    if (random_chance(&o->random, 40))
        return large[random_int(&o->random, 0, 7)];
    return random_int(&o->random, random_chance(&o->random, 5) ? 0 : 1, 9);
}

/* ---- Products -------------------------------------------------------------------------------- */

static void expect_products(const struct grids_run *run, int output, double tolerance)
{
    const struct tensor *made = &run->made[output].tensor, *wanted = &run->wanted[output].tensor;
    const size_t size = tssa_dtype_size(wanted->dtype);
    assert_int_equal(made->dtype, wanted->dtype);
    assert_int_equal(made->rank, wanted->rank);
    assert_memory_equal(made->dims, wanted->dims, (size_t)wanted->rank * sizeof *wanted->dims);
    for (size_t i = 0; i < tensor_count(wanted); i++)
        expect_close(dtype_load_double(made->dtype, (const char *)made->data + i * size),
                     dtype_load_double(made->dtype, (const char *)wanted->data + i * size),
                     tolerance, "result", i);
}

/* In texts of programs the type is @@@. */
static void open_text(struct grids_run *run, const char *program, const char *type)
{
    char text[600];
    assert_true(strlen(program) < sizeof text);
    strcpy(text, program);
    for (char *at = text; (at = strstr(at, "@@@"));)
        memcpy(at, type, 3);
    grids_run_open(run, text);
}

static const char *const float_names[] = {"f32", "f64"};
static const tssa_dtype float_types[] = {TSSA_FLOAT, TSSA_DOUBLE};
static const double tolerances[] = {1e-4, 1e-12};

static void test_matmul(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct grids_run run;
        struct operands o;
        open_text(&run,
                  "graph @g opset(\"\": 18) ir_version(8) (%a: @@@[B, M, K], %b: @@@[C, K, N]) -> "
                  "(%c) {\n"
                  "  %c = MatMul@13(%a, %b)\n"
                  "  return(%c)\n"
                  "}\n",
                  float_names[t]);
        operands_open(&o, 5 + (uint64_t)t);
        for (int i = 0; i < ROUNDS; i++) {
            const int64_t m = some_size(&o), n = some_size(&o), k = some_size(&o),
                          batch = random_int(&o.random, 1, 4);
            const bool one_a = random_chance(&o.random, 30), one_b = random_chance(&o.random, 30);
            add_numbers(&o, float_types[t], 3, (const int64_t[]){one_a ? 1 : batch, m, k});
            add_numbers(&o, float_types[t], 3, (const int64_t[]){one_b ? 1 : batch, k, n});
            assert_true(grids_run_go(&run, o.given));
            expect_products(&run, 0, tolerances[t]);
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
    (void)state;
    grids_run_open(&run, program);
    operands_open(&o, 9);
    for (int i = 0; i < ROUNDS / 2; i++) {
        const int64_t m = some_size(&o), n = some_size(&o), k = some_size(&o),
                      both = random_int(&o.random, 1, 2);
        add_numbers(&o, TSSA_FLOAT, 5,
                    (const int64_t[]){random_int(&o.random, 1, 3), both, 1, m, k});
        add_numbers(&o, TSSA_FLOAT, 5,
                    (const int64_t[]){1, both, random_int(&o.random, 1, 3), k, n});
        add_numbers(&o, TSSA_FLOAT, 1, &k);
        assert_true(grids_run_go(&run, o.given));
        for (int r = 0; r < 3; r++)
            expect_products(&run, r, tolerances[0]);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_matmul_of_unlike_sizes(void **state)
{
    struct grids_run run;
    struct operands o;
    (void)state;
    grids_run_open(&run, "graph @g opset(\"\": 18) ir_version(8) (%a: f32[M, K], %b: f32[L, N]) -> "
                         "(%c) {\n"
                         "  %c = MatMul@13(%a, %b)\n"
                         "  return(%c)\n"
                         "}\n");
    operands_open(&o, 4);
    add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){2, 3});
    add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){4, 5});
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    grids_run_close(&run);
}

/* Turned or not, with a C of each shape that broadcasts. */
static void gemm(struct operands *o, int t, bool turn_a, bool turn_b, bool scaled)
{
    struct grids_run run;
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
    open_text(&run, program, float_names[t]);
    for (int i = 0; i < 8; i++) {
        const int64_t m = some_size(o), n = some_size(o), k = some_size(o);
        add_numbers(o, float_types[t], 2, (const int64_t[]){turn_a ? k : m, turn_a ? m : k});
        add_numbers(o, float_types[t], 2, (const int64_t[]){turn_b ? n : k, turn_b ? k : n});
        add_numbers(o, float_types[t], 2, (const int64_t[]){i & 1 ? 1 : m, i & 2 ? 1 : n});
        assert_true(grids_run_go(&run, o->given));
        expect_products(&run, 0, tolerances[t]);
        expect_products(&run, 1, tolerances[t]);
        operands_clear(o);
    }
    grids_run_close(&run);
}

static void test_gemm(void **state)
{
    struct operands o;
    (void)state;
    operands_open(&o, 7);
    for (int i = 0; i < 8; i++) /* doubles in each other one */
        gemm(&o, (i ^ i >> 1 ^ i >> 2) & 1, i & 1, i >> 1 & 1, i >> 2 & 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul), cmocka_unit_test(test_matmul_of_more_axes),
        cmocka_unit_test(test_matmul_of_unlike_sizes), cmocka_unit_test(test_gemm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
