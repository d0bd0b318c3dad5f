/* SPDX-License-Identifier: Apache-2.0 */
/* AffineGrid and MaxRoiPool on small cases worked out by hand, and by naive loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* The identity leaves the regular grid; x comes first. */
static void test_affine_identity(void **state)
{
    (void)state;
    const float theta[6] = {1, 0, 0, 0, 1, 0};
    const int64_t size[4] = {1, 1, 2, 4};
    const float edges[4] = {-1, -1.0f / 3, 1.0f / 3, 1},
                centers[4] = {-0.75f, -0.25f, 0.25f, 0.75f};
    for (int align = 0; align < 2; align++) {
        struct op_run t;
        op_begin(&t, IR_OP_AffineGrid, 20);
        op_int(&t, "align_corners", align);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, 3}, theta);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){4}, size);
        op_go(&t);
        const float *grid = t.outputs[0].tensor.data;
        for (size_t i = 0; i < 8; i++) {
            expect_close((double)grid[2 * i], (double)(align ? edges : centers)[i % 4], 1e-6, "x",
                         i);
            double y = align ? 1 : 0.5;
            expect_close((double)grid[2 * i + 1], i < 4 ? -y : y, 1e-6, "y", i);
        }
        op_close(&t);
    }
}

static double affine_coordinate(int64_t i, int64_t n, bool align)
{
    if (align)
        return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : -1;
    return (2 * (double)i + 1) / (double)n - 1;
}

/* Products are added from x on, in double, and rounded once, bit for bit. */
static void test_affine(void **state)
{
    (void)state;
    struct random random = {3};
    for (int round = 0; round < 100; round++) {
        float theta[2 * 12];
        int n = round % 2 ? 3 : 2, align = round / 2 % 2;
        int64_t size[5] = {2, 3}, sides[3] = {1, 1, 1}; /* D, H, W */
        for (int i = 0; i < n; i++)
            size[2 + i] = sides[3 - n + i] = random_int(&random, 1, i == n - 1 ? 40 : 5);
        random_floats(theta, 24, (uint32_t)round);
        struct op_run t;
        op_begin(&t, IR_OP_AffineGrid, 20);
        op_int(&t, "align_corners", align);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){2, n, n + 1}, theta);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){n + 2}, size);
        op_go(&t);
        const float *grid = t.outputs[0].tensor.data;
        int64_t points = sides[0] * sides[1] * sides[2];
        for (int64_t i = 0; i < 2 * points * n; i++) {
            int64_t point = i / n % points;
            const float *row = theta + (i / n / points * n + i % n) * (n + 1);
            double x = affine_coordinate(point % sides[2], sides[2], align),
                   y = affine_coordinate(point / sides[2] % sides[1], sides[1], align),
                   z = affine_coordinate(point / sides[2] / sides[1], sides[0], align);
            double sum = (double)row[0] * x + (double)row[1] * y;
            sum = n == 3 ? sum + (double)row[2] * z + (double)row[3] : sum + (double)row[2];
            assert_true(grid[i] == (float)sum);
        }
        op_close(&t);
    }
}

static void test_roi_pool(void **state)
{
    (void)state;
    float x[2 * 6 * 6];
    for (int i = 0; i < 72; i++)
        x[i] = (float)i;
    /* 5 x 4 elements from (1, 0), whose two bins per axis overlap or not; then one outside the
     * image. */
    const float rois[10] = {0, 2, 0, 10, 6, 0, 40, 40, 44, 44};
    const float expected[8] = {9, 11, 21, 23, 0, 0, 0, 0};
    struct op_run t;
    op_begin(&t, IR_OP_MaxRoiPool, 0);
    op_ints(&t, "pooled_shape", 2, (const int64_t[]){2, 2});
    op_float(&t, "spatial_scale", 0.5f);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){2, 1, 6, 6}, x);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 5}, rois);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, expected, sizeof expected);
    op_close(&t);
}

static void test_refuses(void **state)
{
    (void)state;
    const float x[4] = {0},
                wrong[3][5] = {{1, 0, 0, 1, 1}, {NAN, 0, 0, 1, 1}, {0, 0, INFINITY, 1, 1}};
    for (int i = 0; i < 3; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_MaxRoiPool, 0);
        op_ints(&t, "pooled_shape", 2, (const int64_t[]){2, 2});
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){1, 5}, wrong[i]);
        op_fails(&t, "");
        op_close(&t);
    }
    const int64_t sizes[2][4] = {{1, 1, -2, 2}, {2, 1, 2, 2}};
    const float theta[6] = {0};
    for (int i = 0; i < 2; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_AffineGrid, 20);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, 3}, theta);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){4}, sizes[i]);
        op_fails(&t, "");
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_affine_identity),
        cmocka_unit_test(test_affine),
        cmocka_unit_test(test_roi_pool),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
