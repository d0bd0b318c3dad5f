/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that sum products give the bits of their order, written out here: products rounded each, summed as an axis
 * that is not the innermost one. For any float type and number of threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_numbers.h"

enum { TERMS = 9000 };

static double terms[TERMS];

static double product(tssa_dtype dtype, double a, double b)
{
    return op_rounded(dtype, a * b);
}

static tssa_dtype some_dtype(struct random *random)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT16, TSSA_BFLOAT16, TSSA_DOUBLE};
    return dtypes[random_int(random, 0, 2)];
}

/* ---- Matrices ------------------------------------------------------------------------------------- */

/* float32 only where no library is asked: products of few elements. */
static void test_matrices(void **state)
{
    static const int64_t shapes[][3] = {{3, 5, 7},    {1, 130, 9},  {2, 3, 300}, {9, 4, 50},
                                        {17, 1, 100}, {1, 1, 2000}, {3, 2, 64},  {20, 200, 150},
                                        {3, 9, 4200}, {9, 2, 8200}, {1, 3, 65}};
    struct random random = {31};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int round = 0; round < 4; round++) {
            const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            const tssa_dtype dtype =
                m * n * k < 2048 && round % 2 ? TSSA_FLOAT : some_dtype(&random);
            struct team team;
            struct op_run t;
            const bool turned = round / 2;
            op_begin(&t, turned ? IR_OP_Gemm : IR_OP_MatMul, 0);
            op_int(&t, "transB", turned);
            const struct tensor *a = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){m, k});
            const struct tensor *b = op_add_numbers(
                &t, &random, dtype, 2, turned ? (const int64_t[]){n, k} : (const int64_t[]){k, n});
            op_threads(&t, &team, round % 3 + 1);
            op_go(&t);
            for (int64_t at = 0; at < m * n; at++) {
                for (int64_t x = 0; x < k; x++)
                    terms[x] = product(dtype, op_number(a, at / n * k + x),
                                       op_number(b, turned ? at % n * k + x : x * n + at % n));
                op_expect_number(&t.outputs[0].tensor, at, op_sum(dtype, terms, k));
            }
            op_close(&t);
        }
}

/* ---- Einsum --------------------------------------------------------------------------------------- */

/* Three operands are summed as written: over j, then k, then l. */
static void test_einsum(void **state)
{
    struct random random = {37};
    (void)state;
    for (int round = 0; round < 40; round++) {
        const tssa_dtype dtype = round % 2 ? TSSA_FLOAT : some_dtype(&random);
        const int64_t n = random_int(&random, 1, 5), j = random_int(&random, 1, 20);
        const int64_t k = random_int(&random, 1, 20), l = random_int(&random, 1, 20);
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_Einsum, 0);
        op_string(&t, "equation", "ij,jkl,lk->i");
        const struct tensor *a = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){n, j});
        const struct tensor *b = op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){j, k, l});
        const struct tensor *c = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){l, k});
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t x = 0; x < j * k * l; x++) {
                double first = product(dtype, op_number(a, i * j + x / (k * l)), op_number(b, x));
                terms[x] = product(dtype, first, op_number(c, x % l * k + x / l % k));
            }
            op_expect_number(&t.outputs[0].tensor, i, op_sum(dtype, terms, j * k * l));
        }
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrices),
                                       cmocka_unit_test(test_einsum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
