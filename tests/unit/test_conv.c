/* SPDX-License-Identifier: Apache-2.0 */
/* Conv of two-byte floats against Conv in double, with and without the provider's help. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/op_run.h"
#include "kernels/cpu/lib/convert.h"

#define MAX_ELEMENTS 4096

struct shape {
    int rank;
    int64_t x[TSSA_MAX_RANK], w[TSSA_MAX_RANK], groups;
    bool bias;
};

static int64_t count_of(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MAX_ELEMENTS);
    return count;
}

/* Values that all float types hold: small multiples of 1/8. */
static void add_operand(struct op_run *run, tssa_dtype dtype, int rank, const int64_t *dims,
                        uint64_t seed)
{
    static double exact[MAX_ELEMENTS], converted[MAX_ELEMENTS];
    struct random random = {seed};
    int64_t count = count_of(rank, dims);
    for (int64_t i = 0; i < count; i++)
        exact[i] = (double)random_int(&random, -16, 16) / 8;
    convert_elements(count, TSSA_DOUBLE, exact, 1, dtype, converted, 1, &convert_default);
    op_add(run, dtype, rank, dims, converted);
}

static void run_conv(struct op_run *run, tssa_dtype dtype, const struct shape *shape)
{
    op_begin(run, IR_OP_Conv, 0);
    op_int(run, "group", shape->groups);
    add_operand(run, dtype, shape->rank, shape->x, 1);
    add_operand(run, dtype, shape->rank, shape->w, 2);
    if (shape->bias)
        add_operand(run, dtype, 1, shape->w, 3);
    op_go(run);
}

static void one_type(const struct shape *shape, tssa_dtype dtype, double unit)
{
    struct op_run narrow, wide;
    run_conv(&narrow, dtype, shape);
    run_conv(&wide, TSSA_DOUBLE, shape);
    const struct tensor *y = &narrow.outputs[0].tensor, *expected = &wide.outputs[0].tensor;
    size_t count = tensor_count(expected);
    static double widened[MAX_ELEMENTS];
    assert_true(count <= MAX_ELEMENTS);
    assert_int_equal(y->dtype, dtype);
    assert_int_equal(tensor_count(y), count);
    convert_elements((int64_t)count, dtype, y->data, 1, TSSA_DOUBLE, widened, 1, &convert_default);
    for (size_t i = 0; i < count; i++)
        expect_close(widened[i], ((const double *)expected->data)[i], unit, "y", i);
    op_close(&narrow);
    op_close(&wide);
}

static void test_narrow_types(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {4, {1, 3, 8, 8}, {5, 3, 3, 3}, 1, true},
        {4, {2, 4, 6, 5}, {6, 2, 1, 1}, 2, false},
        {3, {1, 4, 30}, {4, 1, 5}, 4, true},
        {5, {1, 2, 5, 5, 5}, {3, 2, 2, 2, 2}, 1, false},
        {6, {1, 1, 3, 3, 3, 3}, {2, 1, 2, 2, 2, 2}, 1, true}, /* more axes than libraries take */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        one_type(&shapes[i], TSSA_FLOAT16, 1.0 / 2048);
        one_type(&shapes[i], TSSA_BFLOAT16, 1.0 / 256);
        one_type(&shapes[i], TSSA_FLOAT, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_narrow_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
