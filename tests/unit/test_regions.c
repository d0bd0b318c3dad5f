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

static void test_affine_volume(void **state)
{
    (void)state;
    float theta[2 * 12];
    const int64_t size[5] = {2, 3, 2, 3, 4};
    random_floats(theta, 24, 5);
    struct op_run t;
    op_begin(&t, IR_OP_AffineGrid, 20);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){2, 3, 4}, theta);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){5}, size);
    op_go(&t);
    for (size_t i = 0; i < 2 * 24 * 3; i++) {
        size_t point = i / 3 % 24;
        const float *row = theta + i / 72 * 12 + i % 3 * 4;
        double x = (2 * (double)(point % 4) + 1) / 4 - 1,
               y = (2 * (double)(point / 4 % 3) + 1) / 3 - 1;
        double z = (2 * (double)(point / 12) + 1) / 2 - 1;
        double expected =
            (double)row[0] * x + (double)row[1] * y + (double)row[2] * z + (double)row[3];
        expect_close((double)((const float *)t.outputs[0].tensor.data)[i], expected, 1e-6, "grid",
                     i);
    }
    op_close(&t);
}

static void test_roi_pool(void **state)
{
    (void)state;
    float x[2 * 6 * 6];
    for (int i = 0; i < 72; i++)
        x[i] = (float)i;
    /* 5 x 4 elements from (1, 0), whose two bins per axis overlap or not; then one outside the image. */
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
        cmocka_unit_test(test_affine_volume),
        cmocka_unit_test(test_roi_pool),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
