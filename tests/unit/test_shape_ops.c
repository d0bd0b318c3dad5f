/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that change or read shapes, and those that make tensors from shapes and scalars. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define LIST(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[])                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- Reshape and its kin --------------------------------------------------------------------- */

/* The result shares the operand's memory. */
static void expect_shared(struct op_run *run, int rank, const int64_t *dims)
{
    const struct tensor *x = &run->inputs[0].tensor;
    assert_ptr_equal(op_output(run, 0, x->dtype, rank, dims)->data, x->data);
}

static void reshape(int rank, const int64_t *dims, int64_t n, const int64_t *target,
                    int64_t allow_zero, const int64_t *expected)
{
    struct op_run run;
    op_open(&run, IR_OP_Reshape, 2, 1);
    op_int(&run, "allowzero", allow_zero);
    op_input(&run, 0, TSSA_FLOAT, rank, dims);
    op_input_ints(&run, 1, TSSA_INT64, 1, n, target);
    if (expected) {
        op_go(&run);
        expect_shared(&run, (int)n, expected);
    } else {
        op_fails(&run, "");
    }
    op_close(&run);
}

static void test_reshape(void **state)
{
    (void)state;
    const int64_t x[] = {2, 3, 4};
    reshape(3, x, LIST(4, 6), 0, (int64_t[]){4, 6});
    reshape(3, x, LIST(0, -1), 0, (int64_t[]){2, 12});
    reshape(3, x, LIST(-1), 0, (int64_t[]){24});
    reshape(3, x, LIST(1, -1, 1, 2), 0, (int64_t[]){1, 12, 1, 2});
    reshape(3, x, LIST(0, 0, 0), 0, x);
    reshape(0, NULL, LIST(1, 1), 0, (int64_t[]){1, 1});
    reshape(3, x, LIST(5, -1), 0, NULL);
    reshape(3, x, LIST(-1, -1), 0, NULL);
    reshape(3, x, LIST(24, -2), 0, NULL);
    reshape(3, x, LIST(1, 1, 1, 0), 0, NULL);
    reshape(3, x, LIST(INT64_MAX, INT64_MAX), 0, NULL);
    reshape(3, x, LIST(23), 0, NULL);
}

static void test_reshape_without_elements(void **state)
{
    (void)state;
    const int64_t x[] = {0, 80, 4};
    reshape(3, x, LIST(0, 320), 1, (int64_t[]){0, 320});
    reshape(3, x, LIST(0, -1), 0, (int64_t[]){0, 320});
    reshape(3, x, LIST(0, -1), 1, NULL);
    reshape(3, x, LIST(-1, 4), 0, (int64_t[]){0, 4});
    reshape(3, x, LIST(80, 0), 0, NULL); /* the 0 copies 80 */
    reshape(3, x, LIST(80, 0), 1, (int64_t[]){80, 0});
}

static void test_reshape_to_scalar(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Reshape, 2, 1);
    op_input(&run, 0, TSSA_STRING, 2, (int64_t[]){1, 1});
    op_input(&run, 1, TSSA_INT64, 1, (int64_t[]){0});
    op_go(&run);
    expect_shared(&run, 0, NULL);
    op_close(&run);
}

static void test_flatten(void **state)
{
    static const struct {
        int64_t axis, dims[2];
    } cases[] = {{0, {1, 24}}, {1, {2, 12}}, {2, {6, 4}},
                 {3, {24, 1}}, {-1, {6, 4}}, {-3, {1, 24}}};
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Flatten, 1, 1);
    op_input(&run, 0, TSSA_INT2, 3, (int64_t[]){2, 3, 4});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_int(&run, "axis", cases[i].axis);
        op_go(&run);
        expect_shared(&run, 2, cases[i].dims);
    }
    op_int(&run, "axis", 4);
    op_fails(&run, "axis 4 is out of range for rank 3");
    op_input(&run, 0, TSSA_FLOAT, 0, NULL);
    op_int(&run, "axis", 0);
    op_go(&run);
    expect_shared(&run, 2, (int64_t[]){1, 1});
    op_close(&run);
}

static void test_squeeze(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Squeeze, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 4, (int64_t[]){1, 3, 1, 0});
    op_go(&run);
    expect_shared(&run, 2, (int64_t[]){3, 0});
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(-2));
    op_go(&run);
    expect_shared(&run, 3, (int64_t[]){1, 3, 0});
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(1));
    op_fails(&run, "axis 1 has the size 3");
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(0, -4));
    op_fails(&run, "axis 0 is given twice");
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(4));
    op_fails(&run, "outside a tensor of rank 4");
    op_close(&run);
}

static void test_unsqueeze(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Unsqueeze, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){3, 4});
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(4, 0, -5));
    op_fails(&run, "axis 0 is given twice");
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(4, 0, -3));
    op_go(&run);
    expect_shared(&run, 5, (int64_t[]){1, 3, 1, 4, 1});
    op_input_ints(&run, 1, TSSA_INT64, 0, LIST(-1));
    op_go(&run);
    expect_shared(&run, 3, (int64_t[]){3, 4, 1});
    op_input(&run, 1, TSSA_INT64, 1, (int64_t[]){15});
    op_fails(&run, "rank above 16");
    op_close(&run);
}

static void test_shape_and_size(void **state)
{
    static const struct {
        int64_t start, end, first, count;
    } cases[] = {{0, 3, 0, 3},
                 {-1, 3, 2, 1},
                 {0, -1, 0, 2},
                 {1, 2, 1, 1},
                 {-9, 9, 0, 3},
                 {2, 1, 0, 0},
                 {INT64_MIN, INT64_MAX, 0, 3},
                 {5, 3, 0, 0}};
    const int64_t dims[] = {2, 0, 4};
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Shape, 1, 1);
    op_input(&run, 0, TSSA_STRING, 3, dims);
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){3}, dims);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_int(&run, "start", cases[i].start);
        op_int(&run, "end", cases[i].end);
        op_go(&run);
        op_expect_ints(&run, 0, 1, &cases[i].count, dims + cases[i].first);
    }
    op_close(&run);
    op_open(&run, IR_OP_Size, 1, 1);
    op_input(&run, 0, TSSA_FLOAT, 3, (int64_t[]){2, 3, 4});
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){24});
    op_input(&run, 0, TSSA_FLOAT, 3, dims);
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){0});
    op_close(&run);
}

/* ---- ConstantOfShape, EyeLike ---------------------------------------------------------------- */

static void test_constant_of_shape(void **state)
{
    struct op_run run;
    uint16_t element = 0x1234;
    struct tensor value = {.dtype = TSSA_BFLOAT16, .rank = 1, .dims = {1}, .data = &element};
    (void)state;
    op_open(&run, IR_OP_ConstantOfShape, 1, 1);
    op_input_ints(&run, 0, TSSA_INT64, 1, LIST(2, 3));
    op_go(&run);
    const float *zeros = op_output(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3})->data;
    for (int i = 0; i < 6; i++)
        assert_true(zeros[i] == 0 && !signbit(zeros[i]));
    op_tensor(&run, "value", &value);
    op_input(&run, 0, TSSA_INT64, 1, (int64_t[]){0});
    op_go(&run);
    assert_int_equal(*(uint16_t *)op_output(&run, 0, TSSA_BFLOAT16, 0, NULL)->data, 0x1234);
    op_input_ints(&run, 0, TSSA_INT64, 1, LIST(100000, 0));
    op_go(&run);
    op_output(&run, 0, TSSA_BFLOAT16, 2, (int64_t[]){100000, 0});
    op_input_ints(&run, 0, TSSA_INT64, 1, LIST(100003));
    op_go(&run);
    const uint16_t *y = op_output(&run, 0, TSSA_BFLOAT16, 1, (int64_t[]){100003})->data;
    for (int i = 0; i < 100003; i++)
        assert_int_equal(y[i], 0x1234);
    op_input_ints(&run, 0, TSSA_INT64, 1, LIST(-1));
    op_fails(&run, "negative");
    op_input_ints(&run, 0, TSSA_INT64, 1, LIST(INT64_MAX, 2));
    op_fails(&run, "larger");
    value.dims[0] = 0;
    op_fails(&run, "value has 0 elements");
    op_close(&run);
}

static void test_eye_like(void **state)
{
    struct op_run run;
    (void)state;
    for (int64_t k = -6; k <= 6; k++) {
        op_open(&run, IR_OP_EyeLike, 1, 1);
        op_int(&run, "k", k == 6 ? INT64_MAX : k == -6 ? INT64_MIN : k);
        op_int(&run, "dtype", TSSA_INT32);
        op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){4, 5});
        op_go(&run);
        const int32_t *y = op_output(&run, 0, TSSA_INT32, 2, (int64_t[]){4, 5})->data;
        for (int i = 0; i < 20; i++)
            assert_int_equal(y[i], i % 5 - i / 5 == k && k < 6 && k > -6);
        op_close(&run);
    }
    op_open(&run, IR_OP_EyeLike, 1, 1);
    op_input(&run, 0, TSSA_FLOAT16, 2, (int64_t[]){1, 1});
    op_go(&run);
    assert_int_equal(*(uint16_t *)op_output(&run, 0, TSSA_FLOAT16, 2, (int64_t[]){1, 1})->data,
                     0x3c00);
    op_int(&run, "dtype", TSSA_STRING);
    op_fails(&run, "str has no identity matrix");
    op_input(&run, 0, TSSA_FLOAT16, 1, (int64_t[]){1});
    op_fails(&run, "must have rank 2");
    op_int(&run, "dtype", 99);
    op_fails(&run, "dtype 99");
    op_close(&run);
}

/* ---- OneHot ---------------------------------------------------------------------------------- */

static void test_one_hot(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 3), axis = (int)random_int(&random, 0, rank);
        int64_t dims[4] = {0}, result[4], depth = random_int(&random, 0, 5);
        tssa_dtype index =
            (tssa_dtype[]){TSSA_INT64, TSSA_FLOAT, TSSA_INT8, TSSA_FLOAT16}[round % 4];
        for (int i = 0; i < rank; i++)
            dims[i] = random_int(&random, round % 10 == 0 ? 0 : 1, 4);
        for (int i = 0; i <= rank; i++)
            result[i] = i == axis ? depth : dims[i < axis ? i : i - 1];
        op_open(&run, IR_OP_OneHot, 3, 1);
        op_int(&run, "axis", round % 2 ? axis : axis - rank - 1);
        struct tensor *x = op_input(&run, 0, index, rank, dims);
        size_t size = dtype_info(index)->size;
        for (size_t i = 0; i < tensor_count(x); i++)
            dtype_store_int64(index, (char *)x->data + i * size, random_int(&random, -8, 8));
        op_input_ints(&run, 1, TSSA_INT32, round % 2, 1, &depth);
        op_input_ints(&run, 2, TSSA_UINT16, 1, LIST(7, 9));
        op_go(&run);
        const uint16_t *y = op_output(&run, 0, TSSA_UINT16, rank + 1, result)->data;
        for (size_t i = 0; i < tensor_count(&run.outputs[0].tensor); i++) {
            int64_t at[4], source[4];
            unflatten(rank + 1, result, (int64_t)i, at);
            for (int d = 0; d < rank; d++)
                source[d] = at[d < axis ? d : d + 1];
            int64_t hot = dtype_load_int64(
                index, (char *)x->data + (size_t)flat_index(rank, dims, source) * size);
            bool on = hot >= -depth && hot < depth && (hot + depth) % depth == at[axis];
            assert_int_equal(y[i], on ? 9 : 7);
        }
        op_close(&run);
    }
}

static void test_one_hot_of_odd_numbers(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_OneHot, 3, 1);
    float *x = op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){4})->data;
    x[0] = NAN, x[1] = INFINITY, x[2] = 1e30f, x[3] = 1.9f;
    op_input_ints(&run, 1, TSSA_INT64, 0, LIST(2));
    op_input_ints(&run, 2, TSSA_INT64, 1, LIST(0, 1));
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){4, 2}, (int64_t[]){0, 0, 0, 0, 0, 0, 0, 1});
    op_input_ints(&run, 1, TSSA_INT64, 0, LIST(-2));
    op_fails(&run, "depth must be");
    op_input_ints(&run, 1, TSSA_INT64, 1, LIST(2, 2));
    op_fails(&run, "depth must be");
    op_input_ints(&run, 1, TSSA_INT64, 0, LIST(2));
    op_input_ints(&run, 2, TSSA_INT64, 1, LIST(0, 1, 2));
    op_fails(&run, "values has 3 elements");
    op_close(&run);
}

/* ---- Range ----------------------------------------------------------------------------------- */

static void range(struct op_run *run, tssa_dtype dtype, double start, double limit, double delta)
{
    const double values[] = {start, limit, delta};
    op_open(run, IR_OP_Range, 3, 1);
    for (uint32_t i = 0; i < 3; i++)
        dtype_store_double(dtype, op_input(run, i, dtype, 0, NULL)->data, values[i]);
}

static void test_range(void **state)
{
    static const struct {
        double start, limit, delta;
        int64_t count;
    } cases[] = {{3, 9, 3, 2}, {10, 4, -2, 3}, {0, 5, 1, 5},  {0, 5, 2, 3},
                 {5, 0, 1, 0}, {0, 5, -1, 0},  {-3, 4, 2, 4}, {7, 7, 1, 0}};
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE,  TSSA_INT16,   TSSA_INT32,
                                       TSSA_INT64, TSSA_FLOAT16, TSSA_BFLOAT16};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct op_run run;
            range(&run, types[t], cases[i].start, cases[i].limit, cases[i].delta);
            op_go(&run);
            const struct tensor *y = op_output(&run, 0, types[t], 1, &cases[i].count);
            size_t size = dtype_info(types[t])->size;
            for (int64_t n = 0; n < cases[i].count; n++)
                assert_true(dtype_load_double(types[t], (char *)y->data + (size_t)n * size) ==
                            cases[i].start + (double)n * cases[i].delta);
            op_close(&run);
        }
    }
}

static void test_range_at_the_limits(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Range, 3, 1);
    op_input_ints(&run, 0, TSSA_INT64, 0, LIST(INT64_MIN));
    op_input_ints(&run, 1, TSSA_INT64, 0, LIST(INT64_MAX));
    op_input_ints(&run, 2, TSSA_INT64, 0, LIST(INT64_MAX));
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){3}, (int64_t[]){INT64_MIN, -1, INT64_MAX - 1});
    op_input_ints(&run, 2, TSSA_INT64, 0, LIST(1));
    op_fails(&run, "no finite length");
    op_input_ints(&run, 2, TSSA_INT64, 0, LIST(0));
    op_fails(&run, "delta is 0");
    op_input_ints(&run, 2, TSSA_INT32, 0, LIST(1));
    op_fails(&run, "of one type");
    op_close(&run);
    range(&run, TSSA_FLOAT, 0, INFINITY, 1);
    op_fails(&run, "no finite length");
    op_close(&run);
    range(&run, TSSA_FLOAT, NAN, 1, 1);
    op_fails(&run, "no finite length");
    op_close(&run);
    range(&run, TSSA_DOUBLE, 0, 1, 0);
    op_fails(&run, "delta is 0");
    op_close(&run);
    /* Half precision computes in float: 2049 is not 2048 + 1 rounded twice, but element 2049
     * rounded. */
    range(&run, TSSA_FLOAT16, 0, 2052, 1);
    op_go(&run);
    const uint16_t *y = run.outputs[0].tensor.data;
    assert_true(half_to_float(y[2047]) == 2047 && half_to_float(y[2050]) == 2050);
    op_close(&run);
}

/* Longer than any vector, of every type: each element is what its own number gives. */
static void test_long_ranges(void **state)
{
    static const tssa_dtype types[] = {TSSA_INT64,  TSSA_INT32,  TSSA_UINT64, TSSA_UINT32,
                                       TSSA_INT16,  TSSA_UINT16, TSSA_INT8,   TSSA_UINT8,
                                       TSSA_DOUBLE, TSSA_FLOAT,  TSSA_FLOAT16};
    struct random random = {7};
    (void)state;
    for (int round = 0; round < 220; round++) {
        tssa_dtype dtype = types[round % 11];
        bool floats = dtype_is_float(dtype);
        double by = floats ? (double)random_int(&random, 1, 99) / 7 : 1;
        int64_t count = random_int(&random, 0, 100);
        double start = floats ? (double)random_int(&random, -999, 999) / 3 : 3;
        struct op_run run;
        range(&run, dtype, start, start + by * (double)count, by);
        op_go(&run);
        double first = dtype_load_double(dtype, run.inputs[0].tensor.data);
        double step = dtype_load_double(dtype, run.inputs[2].tensor.data);
        const struct tensor *y = &run.outputs[0].tensor;
        for (size_t i = 0; i < tensor_count(y); i++) {
            char expected[8] = {0};
            float narrow = (float)first + (float)i * (float)step;
            dtype_store_double(dtype, expected,
                               dtype == TSSA_DOUBLE ? first + (double)i * step : narrow);
            size_t size = dtype_info(dtype)->size;
            assert_memory_equal((char *)y->data + i * size, expected, size);
        }
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_reshape_without_elements),
        cmocka_unit_test(test_reshape_to_scalar),
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_squeeze),
        cmocka_unit_test(test_unsqueeze),
        cmocka_unit_test(test_shape_and_size),
        cmocka_unit_test(test_constant_of_shape),
        cmocka_unit_test(test_eye_like),
        cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_one_hot_of_odd_numbers),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_range_at_the_limits),
        cmocka_unit_test(test_long_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
