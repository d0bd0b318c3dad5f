/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and Hardmax against their definitions in long double. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/scalar/f32_exp.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/softmax.h"

static void check_line(const float *x, const float *y, int64_t n, int64_t step, enum ir_op_id id)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += expl((long double)x[i * step]);
    for (int64_t i = 0; i < n; i++) {
        long double p = expl((long double)x[i * step]) / sum;
        expect_close((double)y[i * step], (double)(id == IR_OP_Softmax ? p : logl(p)), 4e-7, "y",
                     (size_t)i);
    }
}

static void run_case(enum ir_op_id id, int version, int64_t axis, int64_t n, int64_t inner)
{
    float x[2 * 3 * 5];
    random_floats(x, 30, 3);
    for (int i = 0; i < 30; i++)
        x[i] *= 20;
    struct op_run t;
    op_begin(&t, id, version);
    if (axis != INT64_MIN)
        op_int(&t, "axis", axis);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){2, 3, 5}, x);
    op_go(&t);
    const float *y = t.outputs[0].tensor.data;
    for (int64_t o = 0; o < 30 / n / inner; o++)
        for (int64_t i = 0; i < inner; i++)
            check_line(x + o * n * inner + i, y + o * n * inner + i, n, inner, id);
    op_close(&t);
}

static void test_axes(void **state)
{
    (void)state;
    const enum ir_op_id ids[2] = {IR_OP_Softmax, IR_OP_LogSoftmax};
    for (int i = 0; i < 2; i++) {
        run_case(ids[i], 13, INT64_MIN, 5, 1);
        run_case(ids[i], 13, 1, 3, 5);
        run_case(ids[i], 13, -3, 2, 15);
        /* Before opset 13: everything from the axis on. */
        run_case(ids[i], 11, INT64_MIN, 15, 1);
        run_case(ids[i], 1, 0, 30, 1);
        run_case(ids[i], 1, 2, 5, 1);
        run_case(ids[i], 11, -2, 15, 1);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    const float x[4] = {3e38f, -INFINITY, 3e38f, 0};
    struct op_run t;
    op_begin(&t, IR_OP_Softmax, 13);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){4}, x);
    op_go(&t);
    const float *y = t.outputs[0].tensor.data;
    assert_true(y[0] == 0.5f && y[1] == 0 && y[2] == 0.5f && y[3] == 0);
    op_close(&t);
}

/* Long and short lines, in place and not: the bits of f32_exp, near 0 and far from it. */
static void check_bits(int64_t n)
{
    float x[3 * 300], place[3 * 300], exps[SOFTMAX_EXPS];
    random_floats(x, (size_t)(3 * n), 5);
    x[n + 7] = -88.5f;
    x[n + 11] = -104.5f;
    x[2 * n + 13] = NAN;
    memcpy(place, x, sizeof x);
    softmax_of_lines(TSSA_FLOAT, place, exps, 3, n, (const int64_t[]){n, n, n});
    struct op_run t;
    op_begin(&t, IR_OP_Softmax, 13);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){3, n}, x);
    op_go(&t);
    const float *y = t.outputs[0].tensor.data;
    for (int64_t line = 0; line < 3; line++) {
        float most, sum;
        reduce_lines(REDUCTION_Max, TSSA_FLOAT, &most, x + line * n, n, 1, n, NULL);
        for (int64_t i = 0; i < n; i++)
            exps[i] = f32_exp(x[line * n + i] - most);
        reduce_lines(REDUCTION_Sum, TSSA_FLOAT, &sum, exps, n, 1, n, NULL);
        for (int64_t i = 0, at = line * n; i < n; i++, at++) {
            float wanted = exps[i] * (1 / sum);
            if (line == 2)
                assert_true(isnan(y[at]) && isnan(place[at]));
            else
                assert_true(f32_bits(y[at]) == f32_bits(wanted) &&
                            f32_bits(place[at]) == f32_bits(wanted));
        }
    }
    op_close(&t);
}

static void test_bits(void **state)
{
    (void)state;
    check_bits(300);
    check_bits(49);
    check_bits(21);
}

static void test_half(void **state)
{
    (void)state;
    const uint16_t x[2] = {0x3c00, 0x4000}; /* 1, 2 */
    struct op_run t;
    op_begin(&t, IR_OP_LogSoftmax, 13);
    op_add(&t, TSSA_FLOAT16, 1, (const int64_t[]){2}, x);
    op_go(&t);
    const uint16_t *y = t.outputs[0].tensor.data;
    assert_int_equal(y[0], double_to_half(-log1p(exp(1.0))));
    assert_int_equal(y[1], double_to_half(-log1p(exp(-1.0))));
    op_close(&t);
}

static void test_hardmax(void **state)
{
    (void)state;
    const float x[6] = {1, 3, 3, -1, -2, -1};
    const float expected[6] = {0, 1, 0, 1, 0, 0};
    struct op_run t;
    op_begin(&t, IR_OP_Hardmax, 13);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, x);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, expected, sizeof expected);
    op_close(&t);
}

/* The first of the largest, or the first NaN; of lines and columns, some that fill no vectors. */
static void test_hardmax_bits(void **state)
{
    (void)state;
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    static const int64_t inners[] = {1, 3, 8, 70};
    enum { MOST = 3 * 90 * 70 };
    static double values[MOST], x[MOST];
    struct random random = {6};
    for (int round = 0; round < 240; round++) {
        const tssa_dtype dtype = types[round % 3];
        const size_t size = tssa_dtype_size(dtype);
        const int64_t inner = inners[random_int(&random, 0, 3)];
        const int64_t dims[3] = {3, random_int(&random, 1, 90), inner}, n = dims[1];
        for (int64_t i = 0; i < 3 * n * inner; i++) {
            const bool is_nan = round % 2 && !random_int(&random, 0, 60);
            values[i] = is_nan                       ? (double)NAN
                        : random_int(&random, 0, 30) ? (double)random_int(&random, -9, 4)
                                                     : -0.0;
            dtype_store_double(dtype, (char *)x + (size_t)i * size, values[i]);
        }
        struct op_run t;
        op_begin(&t, IR_OP_Hardmax, 0);
        op_int(&t, "axis", 1);
        op_add(&t, dtype, 3, dims, x);
        op_go(&t);
        for (int64_t line = 0; line < 3 * inner; line++) {
            const int64_t from = line / inner * n * inner + line % inner;
            int64_t best = 0;
            for (int64_t i = 1; i < n && !isnan(values[from + best * inner]); i++)
                if (values[from + i * inner] > values[from + best * inner] ||
                    isnan(values[from + i * inner]))
                    best = i;
            for (int64_t i = 0; i < n; i++)
                assert_true(dtype_load_double(dtype, (const char *)t.outputs[0].tensor.data +
                                                         (size_t)(from + i * inner) * size) ==
                            (i == best));
        }
        op_close(&t);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    const int64_t ints[2] = {1, 2};
    const float x[2] = {1, 2};
    struct op_run t;
    op_begin(&t, IR_OP_Softmax, 13);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, ints);
    op_fails(&t, "");
    op_close(&t);
    op_begin(&t, IR_OP_Softmax, 13);
    op_int(&t, "axis", 1);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2}, x);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),    cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_bits),    cmocka_unit_test(test_half),
        cmocka_unit_test(test_hardmax), cmocka_unit_test(test_hardmax_bits),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
