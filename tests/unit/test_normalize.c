/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations and Dropout against naive formulas; Dropout's random numbers against numpy's. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define COUNT (2 * 6 * 3 * 4)
static const int64_t shape[4] = {2, 6, 3, 4};

static double at(const struct value *value, size_t i)
{
    return dtype_load_double(value->tensor.dtype, (const char *)value->tensor.data +
                                                      i * dtype_info(value->tensor.dtype)->size);
}

/* Mean and population variance of the elements that `member` picks. */
static void moments(const float *x, bool (*member)(size_t i, size_t of), size_t of, double *mean,
                    double *variance)
{
    double n = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < COUNT; i++)
        if (member(i, of)) {
            n++;
            sum += (double)x[i];
        }
    for (size_t i = 0; i < COUNT; i++)
        if (member(i, of))
            squares += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
    *mean = sum / n;
    *variance = squares / n;
}

static bool same_channel(size_t i, size_t of)
{
    return i / 12 % 6 == of / 12 % 6;
}

static bool same_plane(size_t i, size_t of)
{
    return i / 12 == of / 12;
}

static bool same_group(size_t i, size_t of) /* 3 groups of 2 channels */
{
    return i / 24 == of / 24;
}

static bool same_tail(size_t i, size_t of) /* axis 2 */
{
    return i / 12 == of / 12;
}

static void test_batch_norm(void **state)
{
    (void)state;
    float x[COUNT], scale[6], bias[6], mean[6], variance[6];
    random_floats(x, COUNT, 1);
    random_floats(scale, 6, 2);
    random_floats(bias, 6, 3);
    random_floats(mean, 6, 4);
    random_floats(variance, 6, 5);
    for (int i = 0; i < 6; i++)
        variance[i] += 1.5f;
    for (int training = 0; training < 2; training++) {
        struct op_run t;
        op_begin(&t, IR_OP_BatchNormalization, 15);
        op_int(&t, "training_mode", training);
        op_float(&t, "epsilon", 0.01f);
        op_float(&t, "momentum", 0.75f);
        op_add(&t, TSSA_FLOAT, 4, shape, x);
        const float *operands[4] = {scale, bias, mean, variance};
        for (int i = 0; i < 4; i++)
            op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){6}, operands[i]);
        op_outputs(&t, training ? 3 : 1);
        op_go(&t);
        for (size_t i = 0; i < COUNT; i++) {
            size_t c = i / 12 % 6;
            double m = (double)mean[c], v = (double)variance[c];
            if (training)
                moments(x, same_channel, i, &m, &v);
            double y =
                ((double)x[i] - m) / sqrt(v + (double)0.01f) * (double)scale[c] + (double)bias[c];
            expect_close(at(&t.outputs[0], i), y, 1e-6, "y", i);
            if (training) {
                expect_close(at(&t.outputs[1], c), (double)mean[c] * 0.75 + m * 0.25, 1e-6, "mean",
                             c);
                expect_close(at(&t.outputs[2], c), (double)variance[c] * 0.75 + v * 0.25, 1e-6,
                             "variance", c);
            }
        }
        op_close(&t);
    }
}

/* A vector of one dim is a batch of one channel. */
static void test_batch_norm_vector(void **state)
{
    (void)state;
    const float x[3] = {1, 2, 3}, scale = 2, bias = 1, mean = 2, variance = 4;
    const float *operands[4] = {&scale, &bias, &mean, &variance};
    struct op_run t;
    op_begin(&t, IR_OP_BatchNormalization, 15);
    op_float(&t, "epsilon", 0);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){3}, x);
    for (int i = 0; i < 4; i++)
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){1}, operands[i]);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, ((const float[]){0, 1, 2}), 3 * sizeof(float));
    op_close(&t);
}

static void check_channels(enum ir_op_id id, int version, bool (*member)(size_t, size_t),
                           int64_t n_scale, size_t elements_per_scale)
{
    float x[COUNT], scale[6], bias[6];
    random_floats(x, COUNT, 1);
    random_floats(scale, 6, 2);
    random_floats(bias, 6, 3);
    struct op_run t;
    op_begin(&t, id, version);
    if (id == IR_OP_GroupNormalization)
        op_int(&t, "num_groups", 3);
    op_add(&t, TSSA_FLOAT, 4, shape, x);
    op_add(&t, TSSA_FLOAT, 1, &n_scale, scale);
    op_add(&t, TSSA_FLOAT, 1, &n_scale, bias);
    op_go(&t);
    for (size_t i = 0; i < COUNT; i++) {
        double m, v;
        size_t s = i / elements_per_scale % (size_t)n_scale;
        moments(x, member, i, &m, &v);
        double y = ((double)x[i] - m) / sqrt(v + 1e-5) * (double)scale[s] + (double)bias[s];
        expect_close(at(&t.outputs[0], i), y, 1e-6, "y", i);
    }
    op_close(&t);
}

static void test_instance_and_group(void **state)
{
    (void)state;
    check_channels(IR_OP_InstanceNormalization, 22, same_plane, 6, 12);
    check_channels(IR_OP_GroupNormalization, 21, same_group, 6, 12);
    check_channels(IR_OP_GroupNormalization, 18, same_group, 3, 24);
}

/* scale of shape [3, 4] or [6, 1, 1] (differs between blocks), bias absent or [4]. */
static void check_layer(enum ir_op_id id, bool outer_scale, bool biased)
{
    float x[COUNT], scale[12], bias[4];
    random_floats(x, COUNT, 1);
    random_floats(scale, 12, 2);
    random_floats(bias, 4, 3);
    struct op_run t;
    op_begin(&t, id, 0);
    op_int(&t, "axis", -2);
    op_add(&t, TSSA_FLOAT, 4, shape, x);
    if (outer_scale)
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){6, 1, 1}, scale);
    else
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){3, 4}, scale);
    if (biased)
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){4}, bias);
    bool layer = id == IR_OP_LayerNormalization;
    op_outputs(&t, layer ? 3 : 1);
    op_go(&t);
    for (size_t i = 0; i < COUNT; i++) {
        double m, v;
        moments(x, same_tail, i, &m, &v);
        if (!layer) {
            v += m * m;
            m = 0;
        }
        double s = (double)scale[outer_scale ? i / 12 % 6 : i % 12],
               b = biased ? (double)bias[i % 4] : 0;
        expect_close(at(&t.outputs[0], i), ((double)x[i] - m) / sqrt(v + 1e-5) * s + b, 1e-6, "y",
                     i);
        if (layer) {
            expect_close(at(&t.outputs[1], i / 12), m, 1e-6, "mean", i / 12);
            expect_close(at(&t.outputs[2], i / 12), 1 / sqrt(v + 1e-5), 1e-6, "inverse", i / 12);
        }
    }
    op_close(&t);
}

static void test_layer_and_rms(void **state)
{
    (void)state;
    check_layer(IR_OP_LayerNormalization, false, true);
    check_layer(IR_OP_LayerNormalization, true, false);
    check_layer(IR_OP_RMSNormalization, false, false);
    check_layer(IR_OP_RMSNormalization, true, false);
}

static void test_lrn(void **state)
{
    (void)state;
    float x[COUNT];
    random_floats(x, COUNT, 1);
    for (int64_t size = 1; size <= 13; size += 3) {
        struct op_run t;
        op_begin(&t, IR_OP_LRN, 13);
        op_int(&t, "size", size);
        op_float(&t, "alpha", 0.5f);
        op_add(&t, TSSA_FLOAT, 4, shape, x);
        op_go(&t);
        for (size_t i = 0; i < COUNT; i++) {
            int64_t c = (int64_t)(i / 12 % 6);
            double squares = 0;
            for (int64_t k = 0; k < 6; k++)
                if (k >= c - (size - 1) / 2 && k <= c + size / 2) {
                    double v = (double)x[(int64_t)i + (k - c) * 12];
                    squares += v * v;
                }
            double y = (double)x[i] / pow(1 + 0.5 / (double)size * squares, 0.75);
            expect_close(at(&t.outputs[0], i), y, 1e-6, "y", i);
        }
        op_close(&t);
    }
}

static void test_lp(void **state)
{
    (void)state;
    const float x[6] = {3, 4, 0, 0, -1, 3};
    const float l1[6] = {3.0f / 7, 4.0f / 7, 0, 0, -0.25f, 0.75f}, l2[2] = {0.6f, 0.8f};
    for (int p = 1; p <= 2; p++) {
        struct op_run t;
        op_begin(&t, IR_OP_LpNormalization, 22);
        op_int(&t, "p", p);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){3, 2}, x);
        op_go(&t);
        for (size_t i = 0; i < (p == 1 ? 6u : 2u); i++)
            expect_close(at(&t.outputs[0], i), (double)(p == 1 ? l1 : l2)[i], 1e-7, "y", i);
        op_close(&t);
    }
}

static void test_mean_variance(void **state)
{
    (void)state;
    float x[COUNT];
    random_floats(x, COUNT, 1);
    struct op_run t;
    op_begin(&t, IR_OP_MeanVarianceNormalization, 13);
    op_add(&t, TSSA_FLOAT, 4, shape, x);
    op_go(&t);
    for (size_t i = 0; i < COUNT; i++) {
        double m, v;
        moments(x, same_channel, i, &m, &v);
        expect_close(at(&t.outputs[0], i), ((double)x[i] - m) / sqrt(v), 1e-6, "y", i);
    }
    op_close(&t);
}

static void test_dropout_inference(void **state)
{
    (void)state;
    const float x[3] = {1, -2, NAN};
    for (int version = 7; version <= 13; version += 6) {
        struct op_run t;
        op_begin(&t, IR_OP_Dropout, version);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){3}, x);
        op_outputs(&t, 2);
        op_go(&t);
        assert_ptr_equal(t.outputs[0].tensor.data, x);
        assert_int_equal(t.outputs[1].tensor.dtype, version == 7 ? TSSA_FLOAT : TSSA_BOOL);
        for (size_t i = 0; i < 3; i++)
            assert_true(at(&t.outputs[1], i) == 1);
        op_close(&t);
    }
}

/* numpy.random.RandomState(7).uniform(size=8) >= 0.5 */
static void test_dropout_training(void **state)
{
    (void)state;
    const bool kept[8] = {false, true, false, true, true, true, true, false};
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, ratio = 0.5f;
    const bool training = true;
    struct op_run t;
    op_begin(&t, IR_OP_Dropout, 13);
    op_int(&t, "seed", 7);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){8}, x);
    op_add(&t, TSSA_FLOAT, 0, NULL, &ratio);
    op_add(&t, TSSA_BOOL, 0, NULL, &training);
    op_outputs(&t, 2);
    op_go(&t);
    for (size_t i = 0; i < 8; i++) {
        assert_true(at(&t.outputs[0], i) == (kept[i] ? 2 * (double)x[i] : 0));
        assert_true(at(&t.outputs[1], i) == kept[i]);
    }
    op_close(&t);
}

static void refuse(enum ir_op_id id, const char *attr, int64_t value, int rank, const int64_t *dims,
                   int64_t n_scale)
{
    float x[COUNT] = {0};
    struct op_run t;
    op_begin(&t, id, 0);
    if (attr)
        op_int(&t, attr, value);
    op_add(&t, TSSA_FLOAT, rank, dims, x);
    for (int i = 0; i < 2 && n_scale; i++)
        op_add(&t, TSSA_FLOAT, 1, &n_scale, x);
    op_fails(&t, "");
    op_close(&t);
}

static void test_refuses(void **state)
{
    (void)state;
    refuse(IR_OP_GroupNormalization, "num_groups", 4, 4, shape, 6);
    refuse(IR_OP_GroupNormalization, "num_groups", 0, 4, shape, 6);
    refuse(IR_OP_GroupNormalization, "num_groups", 3, 4, shape, 5);
    refuse(IR_OP_InstanceNormalization, NULL, 0, 1, shape, 1);
    refuse(IR_OP_LayerNormalization, "axis", 4, 4, shape, 4);
    refuse(IR_OP_LayerNormalization, "stash_type", 99, 4, shape, 4);
    refuse(IR_OP_LayerNormalization, "axis", -1, 4, shape, 3);
    refuse(IR_OP_LRN, "size", 0, 4, shape, 0);
    refuse(IR_OP_LRN, "size", 3, 1, shape, 0);
    refuse(IR_OP_LpNormalization, "p", 3, 4, shape, 0);
    refuse(IR_OP_MeanVarianceNormalization, NULL, 0, 2, shape, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_batch_norm_vector),
        cmocka_unit_test(test_instance_and_group),
        cmocka_unit_test(test_layer_and_rms),
        cmocka_unit_test(test_lrn),
        cmocka_unit_test(test_lp),
        cmocka_unit_test(test_mean_variance),
        cmocka_unit_test(test_dropout_inference),
        cmocka_unit_test(test_dropout_training),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
