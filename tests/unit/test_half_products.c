/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of two-byte floats against sums in double: matrices turned or not, one or several,
 * weights that are constants, which a step widens once, or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/op_run.h"

#define ROUNDS 40
#define MOST 20000

static struct random numbers = {11};

struct matrix {
    int rank;
    int64_t dims[3], count;
    uint16_t bits[MOST];
    double values[MOST];
};

/* Small multiples of 1/8, which both types hold. */
static void fill(struct matrix *matrix, tssa_dtype dtype, int rank, const int64_t *dims)
{
    matrix->rank = rank;
    matrix->count = 1;
    for (int i = 0; i < rank; i++)
        matrix->count *= matrix->dims[i] = dims[i];
    assert_true(matrix->count <= MOST);
    for (int64_t i = 0; i < matrix->count; i++) {
        matrix->values[i] = (double)random_int(&numbers, -16, 16) / 8;
        dtype_store_double(dtype, &matrix->bits[i], matrix->values[i]);
    }
}

/* b[batch, k, n], or of one batch for all; each is as it stands, or turned. */
struct product {
    int64_t batch, m, n, k, b_batch;
    bool turn_a, turn_b;
    struct matrix a, b;
};

static struct product p;

static double expected(int64_t i)
{
    const int64_t column = i % p.n, row = i / p.n % p.m, batch = i / p.n / p.m,
                  from = p.b_batch ? batch * p.k * p.n : 0;
    double sum = 0;
    for (int64_t k = 0; k < p.k; k++)
        sum += p.a.values[batch * p.m * p.k + (p.turn_a ? k * p.m + row : row * p.k + k)] *
               p.b.values[from + (p.turn_b ? column * p.k + k : k * p.n + column)];
    return sum;
}

static void pick_sizes(void)
{
    const bool large = random_chance(&numbers, 60);
    p.m = random_int(&numbers, 1, large ? 40 : 4);
    p.n = random_int(&numbers, 1, large ? 70 : 4);
    p.k = random_int(&numbers, 1, large ? 80 : 4);
}

static void go(struct op_run *run, tssa_dtype dtype, bool known, int rank, const int64_t *dims)
{
    const double unit = dtype == TSSA_FLOAT16 ? 1.0 / 2048 : 1.0 / 256;
    if (known)
        op_go_known(run);
    else
        op_go(run);
    const uint16_t *y = op_output(run, 0, dtype, rank, dims)->data;
    for (int64_t i = 0; i < p.batch * p.m * p.n; i++)
        expect_close(dtype_load_double(dtype, &y[i]), expected(i), unit, "y", (size_t)i);
}

static void one_matmul(tssa_dtype dtype, bool known)
{
    struct op_run run;
    pick_sizes();
    p.batch = random_int(&numbers, 1, 3);
    p.b_batch = random_chance(&numbers, 50) ? 0 : p.batch;
    p.turn_a = p.turn_b = false;
    const int64_t a[] = {p.batch, p.m, p.k}, b[] = {p.b_batch, p.k, p.n}, y[] = {p.batch, p.m, p.n};
    fill(&p.a, dtype, 3, a);
    fill(&p.b, dtype, p.b_batch ? 3 : 2, p.b_batch ? b : b + 1);
    op_begin(&run, IR_OP_MatMul, 0);
    op_add(&run, dtype, p.a.rank, p.a.dims, p.a.bits);
    op_add(&run, dtype, p.b.rank, p.b.dims, p.b.bits);
    go(&run, dtype, known, 3, y);
    op_close(&run);
}

static void one_gemm(tssa_dtype dtype, bool known)
{
    struct op_run run;
    pick_sizes();
    p.batch = 1;
    p.b_batch = 0;
    p.turn_a = random_chance(&numbers, 50);
    p.turn_b = random_chance(&numbers, 50);
    const int64_t a[] = {p.turn_a ? p.k : p.m, p.turn_a ? p.m : p.k},
                  b[] = {p.turn_b ? p.n : p.k, p.turn_b ? p.k : p.n}, y[] = {p.m, p.n};
    fill(&p.a, dtype, 2, a);
    fill(&p.b, dtype, 2, b);
    op_begin(&run, IR_OP_Gemm, 0);
    op_int(&run, "transA", p.turn_a);
    op_int(&run, "transB", p.turn_b);
    op_add(&run, dtype, 2, a, p.a.bits);
    op_add(&run, dtype, 2, b, p.b.bits);
    go(&run, dtype, known, 2, y);
    op_close(&run);
}

static void test_products(void **state)
{
    static const tssa_dtype types[] = {TSSA_FLOAT16, TSSA_BFLOAT16};
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        for (int t = 0; t < 2; t++) {
            one_matmul(types[t], i & 1);
            one_gemm(types[t], i & 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
