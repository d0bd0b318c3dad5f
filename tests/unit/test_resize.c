/* SPDX-License-Identifier: Apache-2.0 */
/* Resize against a naive sum over all input elements, for every mode; sizes, policies and bad
 * operands. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_numbers.h"

static const char *const coordinate_names[] = {"half_pixel",         "half_pixel_symmetric",
                                               "pytorch_half_pixel", "align_corners",
                                               "asymmetric",         "tf_half_pixel_for_nn"};

/* The formulas of the standard, for whole sizes. */
static double naive_source(int mode, double x, double in, double out)
{
    switch (mode) {
    case 2:
        return out > 1 ? (x + 0.5) * in / out - 0.5 : 0;
    case 3:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case 4:
        return x * in / out;
    case 5:
        return (x + 0.5) * in / out;
    default:
        return (x + 0.5) * in / out - 0.5;
    }
}

static double naive_kernel(bool cubic, double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (!cubic)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

/*
 * The weight of input element i in an output element at x: everything outside belongs to the edges.
 */
static double naive_weight(bool cubic, bool exclude, double stretch, double x, int64_t i,
                           int64_t in)
{
    double own = 0, all = 0;
    for (int64_t k = -200; k < 200; k++) {
        double weight = naive_kernel(cubic, ((double)k - x) * stretch);
        bool outside = k < 0 || k >= in;
        if (exclude && outside)
            continue;
        all += weight;
        if ((k < 0 ? 0 : k >= in ? in - 1 : k) == i)
            own += weight;
    }
    return own / all;
}

static void check_interpolation(bool cubic, int coordinates, bool antialias, bool exclude,
                                int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w)
{
    float x[64];
    random_floats(x, 64, 11);
    const int64_t sizes[2] = {out_h, out_w}, axes[2] = {2, -1};
    struct op_run t;
    op_begin(&t, IR_OP_Resize, 19);
    op_string(&t, "mode", cubic ? "cubic" : "linear");
    op_string(&t, "coordinate_transformation_mode", coordinate_names[coordinates]);
    op_int(&t, "antialias", antialias);
    op_int(&t, "exclude_outside", exclude);
    op_ints(&t, "axes", 2, axes);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, in_h, in_w}, x);
    op_absent(&t);
    op_absent(&t);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, sizes);
    op_go(&t);
    double sy = (double)out_h / (double)in_h, sx = (double)out_w / (double)in_w;
    for (int64_t r = 0; r < out_h; r++)
        for (int64_t c = 0; c < out_w; c++) {
            double y_at = naive_source(coordinates, (double)r, (double)in_h, (double)out_h);
            double x_at = naive_source(coordinates, (double)c, (double)in_w, (double)out_w),
                   sum = 0;
            for (int64_t i = 0; i < in_h; i++)
                for (int64_t k = 0; k < in_w; k++) {
                    double wy = sy == 1 ? i == r
                                        : naive_weight(cubic, exclude, antialias ? fmin(sy, 1) : 1,
                                                       y_at, i, in_h);
                    double wx = sx == 1 ? k == c
                                        : naive_weight(cubic, exclude, antialias ? fmin(sx, 1) : 1,
                                                       x_at, k, in_w);
                    sum += wy * wx * (double)x[i * in_w + k];
                }
            expect_close((double)((const float *)t.outputs[0].tensor.data)[r * out_w + c], sum,
                         2e-6, "y", (size_t)(r * out_w + c));
        }
    op_close(&t);
}

static void test_interpolation(void **state)
{
    (void)state;
    for (int cubic = 0; cubic < 2; cubic++)
        for (int mode = 0; mode < 6; mode++)
            for (int flags = 0; flags < 4; flags++) {
                check_interpolation(cubic, mode, flags & 1, flags & 2, 4, 5, 7, 9);
                check_interpolation(cubic, mode, flags & 1, flags & 2, 7, 8, 3, 2);
                check_interpolation(cubic, mode, flags & 1, flags & 2, 7, 3, 1, 3);
            }
}

/* ---- Bits ------------------------------------------------------------------------------------ */

/* Values of a tensor on their way through the passes, in double. */
struct values {
    tssa_dtype dtype;
    int64_t dims[4];
    int rank;
    double *at;
};

struct bit_options {
    bool cubic, antialias, exclude;
};

static double tap_weight(const struct bit_options *options, double distance)
{
    const double a = -0.75, x = fabs(distance);
    if (!options->cubic)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Of `taps` elements from `first` on, for an output element at x. */
static void tap_weights(const struct bit_options *options, double x, double stretch, int64_t first,
                        int64_t taps, int64_t in, double *weights)
{
    double all = 0;
    for (int64_t k = 0; k < taps; k++) {
        bool excluded = options->exclude && (first + k < 0 || first + k >= in);
        weights[k] = excluded ? 0 : tap_weight(options, ((double)(first + k) - x) * stretch);
        all += weights[k];
    }
    for (int64_t k = 0; k < taps && all != 0 && (options->exclude || stretch < 1); k++)
        weights[k] /= all;
}

/* One axis, by what resample.h says: taps in their order, from 0 on, each weight rounded once. */
static void pass(struct op_run *t, struct values *v, int axis, int64_t out,
                 const struct bit_options *options)
{
    int64_t in = v->dims[axis], inner = 1, outer = 1;
    for (int i = 0; i < v->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : v->dims[i];
    double scale = (double)out / (double)in, stretch = options->antialias && scale < 1 ? scale : 1;
    int64_t taps = 2 * (int64_t)ceil((options->cubic ? 2 : 1) / stretch);
    size_t count = (size_t)(outer * out * inner);
    double *result = ARENA_ARRAY(&t->arena, double, count);
    double *weights = ARENA_ARRAY(&t->arena, double, (size_t)taps);
    assert_true(result && weights);
    for (int64_t i = 0; i < (int64_t)count; i++) {
        int64_t o = i / inner % out;
        double x = ((double)o + 0.5) / scale - 0.5, sum = 0;
        int64_t first = (int64_t)floor(x) - taps / 2 + 1;
        tap_weights(options, x, stretch, first, taps, in, weights);
        for (int64_t k = 0; k < taps; k++) {
            int64_t at = first + k < 0 ? 0 : first + k < in ? first + k : in - 1;
            double v_at = v->at[(i / inner / out * in + at) * inner + i % inner];
            double w = op_rounded(v->dtype, weights[k]);
            if (w != 0)
                sum = op_rounded(v->dtype, sum + op_rounded(v->dtype, w * v_at));
        }
        result[i] = sum;
    }
    v->dims[axis] = out;
    v->at = result;
}

/* Some of them no numbers. */
static void some_values(struct op_run *t, struct random *random, struct values *v)
{
    const struct tensor *x = op_add_numbers(t, random, v->dtype, v->rank, v->dims);
    size_t count = tensor_count(x);
    v->at = ARENA_ARRAY(&t->arena, double, count);
    assert_non_null(v->at);
    for (size_t i = 0; i < count; i++) {
        if (random_int(random, 0, 50) == 0)
            dtype_store_double(v->dtype, (char *)x->data + i * dtype_info(v->dtype)->size,
                               random_int(random, 0, 1) ? NAN : INFINITY);
        v->at[i] = op_number(x, (int64_t)i);
    }
}

/* Axes that shrink first; float32 for float32 and narrower, rounded once at the end. */
static void test_bits(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT16, TSSA_DOUBLE, TSSA_BFLOAT16};
    struct random random = {17};
    (void)state;
    for (int round = 0; round < 300; round++) {
        const struct bit_options options = {round % 2, round / 2 % 2, round / 4 % 2};
        struct values v = {
            dtypes[random_int(&random, 0, 3)], {0}, (int)random_int(&random, 1, 4), 0};
        int64_t dims[4], sizes[4];
        struct team team;
        struct op_run t;
        for (int i = 0; i < v.rank; i++) {
            int64_t most = i == 0 ? 3 : i == 3 && round % 9 == 0 ? 200 : 9;
            v.dims[i] = dims[i] = random_int(&random, 1, most);
            sizes[i] = random_int(&random, 0, 1) ? dims[i] : random_int(&random, 1, 17);
        }
        op_begin(&t, IR_OP_Resize, 19);
        op_string(&t, "mode", options.cubic ? "cubic" : "linear");
        op_int(&t, "antialias", options.antialias);
        op_int(&t, "exclude_outside", options.exclude);
        some_values(&t, &random, &v);
        op_absent(&t);
        op_absent(&t);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){v.rank}, sizes);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        op_go(&t);
        for (int grow = 0; grow < 2; grow++)
            for (int i = 0; i < v.rank; i++)
                if (dims[i] != sizes[i] && (sizes[i] > dims[i]) == grow)
                    pass(&t, &v, i, sizes[i], &options);
        for (int64_t i = 0; i < (int64_t)tensor_count(&t.outputs[0].tensor); i++)
            op_expect_number(&t.outputs[0].tensor, i, v.at[i]);
        op_close(&t);
    }
}

static double naive_round(const char *mode, double x)
{
    double low = floor(x);
    if (strcmp(mode, "floor") == 0)
        return low;
    if (strcmp(mode, "ceil") == 0)
        return ceil(x);
    if (x - low == 0.5)
        return strcmp(mode, "round_prefer_floor") == 0 ? low : low + 1;
    return x - low < 0.5 ? low : low + 1;
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    const int64_t outs[] = {1, 3, 6, 12, 13};
    int16_t x[2 * 6 * 2];
    for (int i = 0; i < 24; i++)
        x[i] = (int16_t)(i * 3);
    for (int m = 0; m < 6; m++)
        for (int r = 0; r < 4; r++)
            for (size_t s = 0; s < 5; s++) {
                int64_t out = outs[s], sizes[3] = {2, out, 2};
                struct op_run t;
                op_begin(&t, IR_OP_Resize, 19);
                op_string(&t, "coordinate_transformation_mode", coordinate_names[m]);
                op_string(&t, "nearest_mode", roundings[r]);
                op_add(&t, TSSA_INT16, 3, (const int64_t[]){2, 6, 2}, x);
                op_absent(&t);
                op_absent(&t);
                op_add(&t, TSSA_INT64, 1, (const int64_t[]){3}, sizes);
                op_go(&t);
                for (int64_t i = 0; i < 4 * out; i++) {
                    double at = naive_source(m, (double)(i / 2 % out), 6, (double)out);
                    int64_t from = out == 6
                                       ? i / 2 % out
                                       : (int64_t)fmin(fmax(naive_round(roundings[r], at), 0), 5);
                    assert_int_equal(((const int16_t *)t.outputs[0].tensor.data)[i],
                                     x[i / (2 * out) * 12 + from * 2 + i % 2]);
                }
                op_close(&t);
            }
}

/* Two axes at once, the last one too, and elements of several widths. */
static void test_nearest_doubles(void **state)
{
    (void)state;
    const uint8_t bytes[4] = {1, 2, 3, 4};
    const float floats[4] = {1, 2, 3, 4}, scales[2] = {2, 3};
    for (int wide = 0; wide < 2; wide++) {
        struct op_run t;
        op_begin(&t, IR_OP_Resize, 13);
        op_add(&t, wide ? TSSA_FLOAT : TSSA_UINT8, 2, (const int64_t[]){2, 2},
               wide ? (const void *)floats : bytes);
        op_absent(&t);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2}, scales);
        op_go(&t);
        const struct tensor *y = &t.outputs[0].tensor;
        assert_int_equal(y->dims[0], 4);
        assert_int_equal(y->dims[1], 6);
        for (int i = 0; i < 24; i++) {
            int expected = 1 + i / 12 * 2 + i % 6 / 3;
            int actual = wide ? (int)((const float *)y->data)[i] : ((const uint8_t *)y->data)[i];
            assert_int_equal(actual, expected);
        }
        op_close(&t);
    }
}

struct enlarged {
    int rank;
    int64_t in[4], out[4];
    float scales[4];
};

static int64_t enlarged_source(const void *context, const int64_t *at)
{
    const struct enlarged *e = context;
    int64_t from[4];
    for (int i = 0; i < e->rank; i++)
        from[i] =
            (int64_t)fmin(floor((double)at[i] / (double)e->scales[i]), (double)(e->in[i] - 1));
    return flat_index(e->rank, e->in, from);
}

/* Any axes, by whole and other factors: rows that repeat elements, rows that repeat, blocks that
 * are copied. */
static void test_nearest_axes(void **state)
{
    (void)state;
    static const float factors[] = {1, 1, 2, 2, 3, 4, 5, 1.5f, 2.25f, 0.5f};
    static const tssa_dtype dtypes[] = {TSSA_UINT8, TSSA_INT16, TSSA_FLOAT, TSSA_DOUBLE,
                                        TSSA_STRING};
    struct random random = {3};
    for (int round = 0; round < 500; round++) {
        struct enlarged e = {.rank = (int)random_int(&random, 1, 4)};
        struct op_run t;
        for (int i = 0; i < e.rank; i++) {
            e.in[i] = random_int(&random, 2, round % 10 == 0 && i == e.rank - 1 ? 70 : 6);
            e.scales[i] = factors[random_int(&random, 0, 9)];
            e.out[i] = (int64_t)floorf((float)e.in[i] * e.scales[i]);
        }
        op_open(&t, IR_OP_Resize, 3, 1);
        op_string(&t, "coordinate_transformation_mode", "asymmetric");
        op_string(&t, "nearest_mode", "floor");
        const struct tensor *x =
            op_random(&t, 0, &random, dtypes[random_int(&random, 0, 4)], e.rank, e.in);
        struct tensor *scales = op_input(&t, 2, TSSA_FLOAT, 1, (const int64_t[]){e.rank});
        memcpy(scales->data, e.scales, (size_t)e.rank * sizeof *e.scales);
        op_go(&t);
        op_expect_moved(&t, 0, x, e.rank, e.out, enlarged_source, &e, NULL);
        op_close(&t);
    }
}

static void test_policies(void **state)
{
    (void)state;
    const struct {
        const char *policy;
        int64_t height, width;
    } cases[] = {{"stretch", 7, 8}, {"not_larger", 5, 8}, {"not_smaller", 7, 11}};
    const float x[6 * 10] = {0};
    const int64_t sizes[2] = {7, 8}, axes[2] = {0, 1};
    for (size_t i = 0; i < 3; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_Resize, 19);
        op_string(&t, "keep_aspect_ratio_policy", cases[i].policy);
        op_ints(&t, "axes", 2, axes);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){6, 9}, x);
        op_absent(&t);
        op_absent(&t);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, sizes);
        op_go(&t);
        assert_int_equal(t.outputs[0].tensor.dims[0], cases[i].height);
        assert_int_equal(t.outputs[0].tensor.dims[1], cases[i].width);
        op_close(&t);
    }
}

/* The same in both axes of many planes, whose rows are short. */
static void test_crop_planes(void **state)
{
    (void)state;
    enum { PLANES = 9, OUT = 3 };
    const float roi[6] = {0, 0, 0, 1, 2, 2};
    const int64_t sizes[3] = {PLANES, OUT, OUT};
    float x[PLANES * 3 * 4];
    for (int i = 0; i < PLANES * 3 * 4; i++)
        x[i] = (float)i;
    struct op_run t;
    op_begin(&t, IR_OP_Resize, 19);
    op_string(&t, "mode", "nearest");
    op_string(&t, "coordinate_transformation_mode", "tf_crop_and_resize");
    op_float(&t, "extrapolation_value", -1);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){PLANES, 3, 4}, x);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){6}, roi);
    op_absent(&t);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){3}, sizes);
    op_go(&t);
    for (int i = 0; i < PLANES * OUT * OUT; i++) {
        const int plane = i / (OUT * OUT), row = i / OUT % OUT, column = i % OUT;
        const float expected = row < 2 && column < 2 ? x[plane * 12 + row * 8 + column * 3] : -1;
        assert_true(((const float *)t.outputs[0].tensor.data)[i] == expected);
    }
    op_close(&t);
}

/* Beyond the input: the extrapolation value. */
static void test_crop(void **state)
{
    (void)state;
    const float x[4] = {0, 10, 20, 30}, roi[2] = {0, 2}, expected[4] = {0, 20, -1, -1};
    const int64_t sizes[1] = {4};
    for (int nearest = 0; nearest < 2; nearest++) {
        struct op_run t;
        op_begin(&t, IR_OP_Resize, 19);
        op_string(&t, "mode", nearest ? "nearest" : "linear");
        op_string(&t, "coordinate_transformation_mode", "tf_crop_and_resize");
        op_float(&t, "extrapolation_value", -1);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){4}, x);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2}, roi);
        op_absent(&t);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, sizes);
        op_go(&t);
        assert_memory_equal(t.outputs[0].tensor.data, expected, sizeof expected);
        op_close(&t);
    }
}

/* Cubic overshoots; bytes saturate and round. */
static void test_bytes(void **state)
{
    (void)state;
    const uint8_t x[4] = {0, 0, 255, 255};
    const float scale = 4;
    struct op_run t;
    op_begin(&t, IR_OP_Resize, 19);
    op_string(&t, "mode", "cubic");
    op_add(&t, TSSA_UINT8, 1, (const int64_t[]){4}, x);
    op_absent(&t);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){1}, &scale);
    op_go(&t);
    const uint8_t *y = t.outputs[0].tensor.data;
    assert_int_equal(y[4], 0);
    assert_int_equal(y[11], 255);
    for (int i = 1; i < 16; i++)
        assert_true(y[i] >= y[i - 1]);
    op_close(&t);
}

static void test_refuses(void **state)
{
    (void)state;
    const float x[4] = {0}, zero[1] = {0}, nan[1] = {NAN}, two[2] = {1, 1}, large[1] = {1e30f};
    const float *scales[4] = {zero, nan, two, large};
    for (int i = 0; i < 4; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_Resize, 19);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){4}, x);
        op_absent(&t);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){i == 2 ? 2 : 1}, scales[i]);
        op_fails(&t, "");
        op_close(&t);
    }
    const int64_t negative = -1;
    struct op_run t;
    op_begin(&t, IR_OP_Resize, 19);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){4}, x);
    op_absent(&t);
    op_absent(&t);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &negative);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpolation), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_nearest),       cmocka_unit_test(test_nearest_doubles),
        cmocka_unit_test(test_crop_planes),   cmocka_unit_test(test_nearest_axes),
        cmocka_unit_test(test_policies),      cmocka_unit_test(test_crop),
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
