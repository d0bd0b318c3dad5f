/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: equations read, and results against sums written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_numbers.h"
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

/* ---- Random equations ------------------------------------------------------------------------ */

enum { LETTERS = 6, OPERANDS = 4, AXES = 4, MOST = 4096 };

struct equation {
    int n, ranks[OPERANDS], out_rank;
    int labels[OPERANDS][AXES], out[LETTERS];
    int64_t sizes[LETTERS], dims[OPERANDS][AXES], out_dims[LETTERS];
    char text[64];
};

/* Labels that are in one operand, in several, twice in one, of one element in some; in any order in
 * the result. */
static void some_equation(struct random *random, struct equation *e)
{
    bool used[LETTERS] = {false};
    char *to = e->text;
    e->n = (int)random_int(random, 1, OPERANDS);
    for (int l = 0; l < LETTERS; l++)
        e->sizes[l] = random_int(random, 1, e->n > 2 ? 3 : 5);
    for (int i = 0; i < e->n; i++) {
        e->ranks[i] = (int)random_int(random, 0, AXES);
        for (int d = 0; d < e->ranks[i]; d++) {
            const int label = (int)random_int(random, 0, LETTERS - 1);
            e->labels[i][d] = label;
            e->dims[i][d] = random_int(random, 0, 6) ? e->sizes[label] : 1;
            used[label] = true;
            *to++ = (char)('a' + label);
        }
        *to++ = i + 1 < e->n ? ',' : '-';
    }
    *to++ = '>';
    e->out_rank = 0;
    for (int tries = (int)random_int(random, 0, 8); tries > 0; tries--) {
        const int label = (int)random_int(random, 0, LETTERS - 1);
        if (!used[label])
            continue;
        used[label] = false;
        e->out[e->out_rank++] = label;
        *to++ = (char)('a' + label);
    }
    *to = 0;
}

/* A label has the size of the operands that have it with more than one element, if any. */
static void size_labels(struct equation *e)
{
    bool wide[LETTERS] = {false};
    for (int i = 0; i < e->n; i++)
        for (int d = 0; d < e->ranks[i]; d++)
            wide[e->labels[i][d]] |= e->dims[i][d] > 1;
    for (int l = 0; l < LETTERS; l++)
        e->sizes[l] = wide[l] ? e->sizes[l] : 1;
    for (int d = 0; d < e->out_rank; d++)
        e->out_dims[d] = e->sizes[e->out[d]];
}

/* The sum for the result's element that `at` says where its labels are, over the others. */
static int64_t sum_of(const struct equation *e, const int64_t *const *x, int64_t *at)
{
    bool kept[LETTERS] = {false};
    int64_t sum = 0, count = 1;
    for (int d = 0; d < e->out_rank; d++)
        kept[e->out[d]] = true;
    for (int l = 0; l < LETTERS; l++)
        count *= kept[l] ? 1 : e->sizes[l];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, product = 1;
        for (int l = 0; l < LETTERS; l++)
            if (!kept[l]) {
                at[l] = rest % e->sizes[l];
                rest /= e->sizes[l];
            }
        for (int k = 0; k < e->n; k++) {
            int64_t index = 0;
            for (int d = 0; d < e->ranks[k]; d++)
                index = index * e->dims[k][d] + (e->dims[k][d] > 1 ? at[e->labels[k][d]] : 0);
            product *= x[k][index];
        }
        sum += product;
    }
    return sum;
}

static void add_operand(struct op_run *t, struct random *random, tssa_dtype dtype, int rank,
                        const int64_t *dims, int64_t *values, char *bytes)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    for (int64_t i = 0; i < count; i++) {
        values[i] = random_int(random, dtype == TSSA_UINT16 ? 0 : -2, 2);
        dtype_store_double(dtype, bytes + (size_t)i * dtype_info(dtype)->size, (double)values[i]);
    }
    op_add(t, dtype, rank, dims, bytes);
}

/* Of small integers, whose sums are exact in any order, but for narrow ones, which wrap. */
static void check_equation(struct random *random, const struct equation *e, tssa_dtype dtype,
                           int threads)
{
    static int64_t values[OPERANDS][MOST];
    static _Alignas(8) char bytes[OPERANDS][MOST * 8]; /* read when the op runs */
    const int64_t *x[OPERANDS] = {values[0], values[1], values[2], values[3]};
    struct team team;
    struct op_run t;
    begin(&t, e->text);
    for (int i = 0; i < e->n; i++)
        add_operand(&t, random, dtype, e->ranks[i], e->dims[i], values[i], bytes[i]);
    op_threads(&t, &team, threads);
    op_go(&t);
    const struct tensor *out = &t.outputs[0].tensor;
    assert_int_equal(out->rank, e->out_rank);
    for (int d = 0; d < e->out_rank; d++)
        assert_int_equal(out->dims[d], e->out_dims[d]);
    for (size_t i = 0; i < tensor_count(out); i++) {
        int64_t at[LETTERS] = {0}, rest = (int64_t)i;
        for (int d = e->out_rank - 1; d >= 0; d--) {
            at[e->out[d]] = rest % e->out_dims[d];
            rest /= e->out_dims[d];
        }
        int64_t sum = sum_of(e, x, at);
        if (dtype == TSSA_INT8)
            sum = (int64_t)(((uint64_t)sum + 128) & 255) - 128;
        if (sum == 0) /* of a single product it has that one's sign */
            assert_true(op_number(out, (int64_t)i) == 0);
        else
            op_expect_number(out, (int64_t)i, (double)sum);
    }
    op_close(&t);
}

static void test_random(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16,
                                        TSSA_INT8,  TSSA_INT64,  TSSA_UINT16};
    struct random random = {61};
    (void)state;
    for (int round = 0; round < 1500; round++) {
        struct equation e = {0};
        some_equation(&random, &e);
        size_labels(&e);
        check_equation(&random, &e, dtypes[round % 6], round % 3 + 1);
    }
}

/* More on the way than there is at both ends: then each element is summed by itself. */
static void test_much_on_the_way(void **state)
{
    struct equation e = {.n = 4,
                         .ranks = {2, 2, 2, 2},
                         .labels = {{0, 1}, {2, 3}, {0, 2}, {1, 3}},
                         .sizes = {20, 20, 20, 20, 1, 1},
                         .text = "ab,cd,ac,bd->"};
    struct random random = {67};
    (void)state;
    for (int i = 0; i < 4; i++)
        e.dims[i][0] = e.dims[i][1] = 20;
    check_equation(&random, &e, TSSA_FLOAT, 1);
    check_equation(&random, &e, TSSA_INT64, 2);
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
        cmocka_unit_test(test_random),      cmocka_unit_test(test_much_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
