/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: equations read, and results against sums written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/einsum.h"

static void begin(struct op_run *t, const char *equation)
{
    op_begin(t, IR_OP_Einsum, 0);
    op_string(t, "equation", equation);
}

static void expect(struct op_run *t, int rank, const int64_t *dims, const double *values)
{
    op_go(t);
    const struct tensor *out = &t->outputs[0].tensor;
    assert_int_equal(out->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(out->dims[i], dims[i]);
    for (size_t i = 0; i < tensor_count(out); i++)
        expect_close((double)((const float *)out->data)[i], values[i], 1e-6, "out", i);
    op_close(t);
}

static void test_one_operand(void **state)
{
    (void)state;
    float x[9];
    double sums[3] = {0}, diagonal[3], turned[9], trace = 0;
    random_floats(x, 9, 1);
    for (int i = 0; i < 3; i++) {
        diagonal[i] = (double)x[4 * i];
        trace += diagonal[i];
        for (int j = 0; j < 3; j++) {
            sums[i] += (double)x[3 * i + j];
            turned[3 * j + i] = (double)x[3 * i + j];
        }
    }
    static const struct {
        const char *equation;
        int rank;
    } cases[] = {{"ij->i", 1}, {"ii->i", 1},     {"ij->ji", 2},  {"ba", 2},
                 {" i i ", 0}, {"...j->...", 1}, {"...->...", 2}};
    double same[9];
    for (int i = 0; i < 9; i++)
        same[i] = (double)x[i];
    const double *expected[] = {sums, diagonal, turned, turned, &trace, sums, same};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run t;
        begin(&t, cases[i].equation);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){3, 3}, x);
        expect(&t, cases[i].rank, (const int64_t[]){3, 3}, expected[i]);
    }
}

/* "bij,kbj->kib" through a matrix product per b, and the same with an ellipsis. */
static void test_products(void **state)
{
    (void)state;
    enum { B = 2, I = 3, J = 4, K = 5 };
    float a[B * I * J], b[K * B * J];
    double expected[K * I * B] = {0}, outer[K * B * I] = {0};
    random_floats(a, B * I * J, 1);
    random_floats(b, K * B * J, 2);
    for (int n = 0; n < B; n++)
        for (int i = 0; i < I; i++)
            for (int k = 0; k < K; k++)
                for (int j = 0; j < J; j++) {
                    double product =
                        (double)a[(n * I + i) * J + j] * (double)b[(k * B + n) * J + j];
                    expected[(k * I + i) * B + n] += product;
                    outer[(n * I + i) * K + k] += product;
                }
    struct op_run t;
    begin(&t, "bij,kbj->kib");
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){B, I, J}, a);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){K, B, J}, b);
    expect(&t, 3, (const int64_t[]){K, I, B}, expected);
    begin(&t, "...ij, k...j -> ...ik");
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){B, I, J}, a);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){K, B, J}, b);
    expect(&t, 3, (const int64_t[]){B, I, K}, outer);
}

/* Three operands; a label of size 1 broadcasts; a label summed in one operand only. */
static void test_sums(void **state)
{
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 10, 100}, c[2] = {2, 3}, one[1] = {7};
    struct op_run t;
    begin(&t, "ij,j,i->i");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, a);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){3}, b);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2}, c);
    expect(&t, 1, (const int64_t[]){2}, (const double[]){2 * 321, 3 * 654});
    begin(&t, "ij,j->i");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, a);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){1}, one);
    expect(&t, 1, (const int64_t[]){2}, (const double[]){42, 105});
    begin(&t, "ij,k->k");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, a);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2}, c);
    expect(&t, 1, (const int64_t[]){2}, (const double[]){42, 63});
}

static void test_integers(void **state)
{
    (void)state;
    const int8_t a[2] = {100, 100}, b[2] = {3, -1};
    const int64_t big[1] = {INT64_C(9007199254740993)};
    struct op_run t;
    begin(&t, "i,i");
    op_add(&t, TSSA_INT8, 1, (const int64_t[]){2}, a);
    op_add(&t, TSSA_INT8, 1, (const int64_t[]){2}, b);
    op_go(&t);
    assert_int_equal(*(const int8_t *)t.outputs[0].tensor.data, (int8_t)200);
    op_close(&t);
    begin(&t, "i->");
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, big);
    op_go(&t);
    assert_true(*(const int64_t *)t.outputs[0].tensor.data == big[0]);
    op_close(&t);
}

static void test_empty(void **state)
{
    (void)state;
    struct op_run t;
    begin(&t, "ij,jk");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 0}, NULL);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){0, 1}, NULL);
    expect(&t, 2, (const int64_t[]){2, 1}, (const double[]){0, 0});
    begin(&t, "ij->i");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 0}, NULL);
    expect(&t, 1, (const int64_t[]){2}, (const double[]){0, 0});
}

static void test_refuses(void **state)
{
    (void)state;
    static const char *const equations[] = {"ij->k", "ij->ii",   "i",     "ijk",    "i1",
                                            "ij-i",  "ij->ij->", "ij,jk", "......", "ij>i"};
    float x[4] = {0};
    for (size_t i = 0; i < sizeof equations / sizeof *equations; i++) {
        struct op_run t;
        begin(&t, equations[i]);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 2}, x);
        op_fails(&t, "");
        op_close(&t);
    }
    struct op_run t;
    begin(&t, "ij,jk");
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 2}, x);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){3, 1}, x);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_operand), cmocka_unit_test(test_products),
        cmocka_unit_test(test_sums),        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_empty),       cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
