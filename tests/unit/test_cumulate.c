/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd against running totals, bit for bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_run.h"

enum { MOST = 3 * 40 * 150 };

struct line {
    int64_t first, step, n; /* elements */
    bool exclusive, reverse, product;
};

/* Totals are doubles, rounded when they are stored. */
static void naive_line(const struct line *line, const float *x, float *y)
{
    double total = line->product ? 1 : 0;
    for (int64_t k = 0; k < line->n; k++) {
        int64_t at = line->first + (line->reverse ? line->n - 1 - k : k) * line->step;
        double before = total;
        total = line->product ? total * (double)x[at] : total + (double)x[at];
        y[at] = (float)(line->exclusive ? before : total);
    }
}

static void test_floats(void **state)
{
    (void)state;
    static float x[MOST], expected[MOST];
    struct random random = {1};
    for (int round = 0; round < 400; round++) {
        int64_t dims[3] = {random_int(&random, 1, 3), random_int(&random, 1, 40),
                           random_int(&random, 1, round % 4 ? 20 : 150)};
        int64_t axis = random_int(&random, 0, 2), inner = 1;
        for (int64_t i = axis + 1; i < 3; i++)
            inner *= dims[i];
        struct line line = {.step = inner,
                            .n = dims[axis],
                            .exclusive = round % 2,
                            .reverse = round / 2 % 2,
                            .product = round / 4 % 2};
        int64_t count = dims[0] * dims[1] * dims[2];
        random_floats(x, (size_t)count, (uint32_t)round);
        x[random_int(&random, 0, count - 1)] = round % 3 ? -0.0f : INFINITY;
        for (int64_t i = 0; i < count / line.n; i++) {
            line.first = i / inner * inner * line.n + i % inner;
            naive_line(&line, x, expected);
        }
        struct op_run t;
        op_begin(&t, line.product ? IR_OP_CumProd : IR_OP_CumSum, 0);
        op_int(&t, "exclusive", line.exclusive);
        op_int(&t, "reverse", line.reverse);
        op_add(&t, TSSA_FLOAT, 3, dims, x);
        op_add(&t, TSSA_INT64, 0, NULL, &axis);
        op_go(&t);
        const float *y = t.outputs[0].tensor.data;
        for (int64_t i = 0; i < count; i++)
            if (!(isnan(y[i]) && isnan(expected[i])))
                assert_memory_equal(&y[i], &expected[i], sizeof *y);
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
