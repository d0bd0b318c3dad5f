/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd against running totals, bit for bit, for any number of threads. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_numbers.h"

struct line {
    int64_t first, step, n; /* elements */
    bool exclusive, reverse, product;
};

static void expect_line(const struct line *line, const struct tensor *x, const struct tensor *y)
{
    double total = line->product ? 1 : line->exclusive ? 0 : -0.0; /* which changes nothing */
    for (int64_t k = 0; k < line->n; k++) {
        int64_t at = line->first + (line->reverse ? line->n - 1 - k : k) * line->step;
        double before = total, v = op_number(x, at);
        total = op_rounded(x->dtype, line->product ? total * v : total + v);
        op_expect_number(y, at, line->exclusive ? before : total);
    }
}

/* The first of the lines along the axis, of a round. */
static struct line line_of(int round, const int64_t *dims, int64_t axis)
{
    struct line line = {.step = 1,
                        .n = dims[axis],
                        .exclusive = round % 2,
                        .reverse = round / 2 % 2,
                        .product = round / 4 % 2};
    for (int64_t i = axis + 1; i < 3; i++)
        line.step *= dims[i];
    return line;
}

static void test_floats(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT16, TSSA_DOUBLE, TSSA_BFLOAT16};
    struct random random = {1};
    (void)state;
    for (int round = 0; round < 600; round++) {
        int64_t dims[3] = {random_int(&random, 1, round % 9 ? 3 : 30), random_int(&random, 1, 40),
                           random_int(&random, 1, round % 4 ? 20 : 150)};
        int64_t axis = random_int(&random, 0, 2);
        const int64_t count = dims[0] * dims[1] * dims[2];
        struct line line = line_of(round, dims, axis);
        tssa_dtype dtype = dtypes[random_int(&random, 0, 3)];
        struct team team;
        struct op_run t;
        op_begin(&t, line.product ? IR_OP_CumProd : IR_OP_CumSum, 0);
        op_int(&t, "exclusive", line.exclusive);
        op_int(&t, "reverse", line.reverse);
        const struct tensor *x = op_add_numbers(&t, &random, dtype, 3, dims);
        if (round % 3 == 0)
            dtype_store_double(dtype, (char *)x->data + count / 2 * dtype_info(dtype)->size,
                               INFINITY);
        for (int64_t i = 0; round % 5 == 0 && i < count; i++)
            dtype_store_double(dtype, (char *)x->data + i * dtype_info(dtype)->size, -0.0);
        op_add(&t, TSSA_INT64, 0, NULL, &axis);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        op_go(&t);
        for (int64_t i = 0; i < count / line.n; i++) {
            line.first = i / line.step * line.step * line.n + i % line.step;
            expect_line(&line, x, &t.outputs[0].tensor);
        }
        op_close(&t);
    }
}

/* Integers wrap in words of their own size: the low bits of what 64 come to. */
static void expect_integers(const struct line *line, const struct tensor *x, const struct tensor *y)
{
    const size_t size = dtype_info(x->dtype)->size;
    uint64_t total = line->product;
    for (int64_t k = 0; k < line->n; k++) {
        const int64_t at = line->first + (line->reverse ? line->n - 1 - k : k) * line->step;
        const uint64_t before = total,
                       v = (uint64_t)dtype_load_int64(x->dtype, (char *)x->data + at * size);
        uint64_t wanted = 0, found = 0;
        total = line->product ? total * v : total + v;
        dtype_store_int64(x->dtype, &wanted, (int64_t)(line->exclusive ? before : total));
        memcpy(&found, (char *)y->data + at * size, size);
        assert_int_equal(found, wanted);
    }
}

static void test_integers(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_INT8,  TSSA_UINT8,  TSSA_INT16, TSSA_UINT16,
                                        TSSA_INT32, TSSA_UINT32, TSSA_INT64, TSSA_UINT64};
    static uint64_t data[3 * 20 * 80];
    struct random random = {3};
    (void)state;
    for (int round = 0; round < 400; round++) {
        const int64_t dims[3] = {random_int(&random, 1, 3), random_int(&random, 1, 20),
                                 random_int(&random, 1, round % 4 ? 10 : 80)};
        int64_t axis = random_int(&random, 0, 2);
        const int64_t count = dims[0] * dims[1] * dims[2];
        struct line line = line_of(round, dims, axis);
        struct team team;
        struct op_run t;
        for (int64_t i = 0; i < count; i++)
            data[i] = random_bits(&random) | 1;
        op_begin(&t, line.product ? IR_OP_CumProd : IR_OP_CumSum, 0);
        op_int(&t, "exclusive", line.exclusive);
        op_int(&t, "reverse", line.reverse);
        op_add(&t, dtypes[round / 8 % 8], 3, dims, data);
        op_add(&t, TSSA_INT64, 0, NULL, &axis);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        op_go(&t);
        for (int64_t i = 0; i < count / line.n; i++) {
            line.first = i / line.step * line.step * line.n + i % line.step;
            expect_integers(&line, &t.inputs[0].tensor, &t.outputs[0].tensor);
        }
        op_close(&t);
    }
}

/* Lines that are worth threads. */
static void test_threads(void **state)
{
    const int64_t dims[2] = {300, 300};
    (void)state;
    for (int64_t axis = 0; axis < 2; axis++)
        for (int threads = 1; threads <= 2; threads++) {
            struct random random = {7};
            struct line line = {.step = axis ? 1 : 300, .n = 300};
            struct team team;
            struct op_run t;
            op_begin(&t, IR_OP_CumSum, 0);
            const struct tensor *x = op_add_numbers(&t, &random, TSSA_FLOAT, 2, dims);
            op_add(&t, TSSA_INT64, 0, NULL, &axis);
            op_threads(&t, &team, threads);
            op_go(&t);
            for (int64_t i = 0; i < 300; i++) {
                line.first = axis ? i * 300 : i;
                expect_line(&line, x, &t.outputs[0].tensor);
            }
            op_close(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats),
                                       cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
