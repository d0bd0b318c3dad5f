/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling against a naive loop over windows and taps, for random geometries. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

struct geometry {
    int64_t planes, in[2], kernel[2], strides[2], dilations[2], pads[4];
    bool ceil_mode, include_pad, column_major;
};

#define MOST_PLANES 20

static uint32_t seed;

static int64_t pick(int64_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int64_t)(seed >> 16) % n;
}

static void random_geometry(struct geometry *g)
{
    g->planes = 2;
    for (int i = 0; i < 2; i++) {
        g->kernel[i] = 1 + pick(4);
        g->dilations[i] = 1 + pick(2);
        g->strides[i] = 1 + pick(4);
        int64_t extent = (g->kernel[i] - 1) * g->dilations[i] + 1;
        g->pads[i] = pick(extent);
        g->pads[2 + i] = pick(extent);
        g->in[i] = 1 + pick(extent + 7); /* perhaps less than a window */
    }
    g->ceil_mode = pick(2);
    g->include_pad = pick(2);
    g->column_major = pick(2);
}

/* Counts windows one by one. */
static int64_t naive_size(const struct geometry *g, int i)
{
    int64_t extent = (g->kernel[i] - 1) * g->dilations[i] + 1, n = 0;
    int64_t padded = g->in[i] + g->pads[i] + g->pads[2 + i];
    for (int64_t start = 0;; start += g->strides[i], n++) {
        bool fits = start + extent <= padded;
        /* Of the windows that do not fit, ceil_mode adds one, unless it starts behind the input. */
        if (!fits && !(g->ceil_mode && start - g->strides[i] + extent < padded &&
                       start < g->in[i] + g->pads[i]))
            return n;
        if (g->ceil_mode && start >= g->in[i] + g->pads[i])
            return n;
    }
}

struct window_result {
    double max, sum, norm3;
    int64_t argmax, count, padded_count;
};

static struct window_result naive_window(const struct geometry *g, const float *x, int64_t oy,
                                         int64_t ox)
{
    struct window_result r = {.max = -INFINITY, .argmax = -1};
    for (int64_t ky = 0; ky < g->kernel[0]; ky++)
        for (int64_t kx = 0; kx < g->kernel[1]; kx++) {
            int64_t y = oy * g->strides[0] + ky * g->dilations[0] - g->pads[0];
            int64_t c = ox * g->strides[1] + kx * g->dilations[1] - g->pads[1];
            if (y < g->in[0] + g->pads[2] && c < g->in[1] + g->pads[3])
                r.padded_count++;
            if (y < 0 || c < 0 || y >= g->in[0] || c >= g->in[1])
                continue;
            double v = (double)x[y * g->in[1] + c];
            r.count++;
            r.sum += v;
            r.norm3 += fabs(v * v * v);
            if (v > r.max) {
                r.max = v;
                r.argmax = g->column_major ? y + c * g->in[0] : y * g->in[1] + c;
            }
        }
    r.norm3 = cbrt(r.norm3);
    return r;
}

static void start(struct op_run *t, enum ir_op_id id, const struct geometry *g, tssa_dtype dtype,
                  const void *x)
{
    op_begin(t, id, 0);
    op_ints(t, "kernel_shape", 2, g->kernel);
    op_ints(t, "strides", 2, g->strides);
    op_ints(t, "dilations", 2, g->dilations);
    op_ints(t, "pads", 4, g->pads);
    op_int(t, "ceil_mode", g->ceil_mode);
    op_int(t, "storage_order", g->column_major);
    op_int(t, "count_include_pad", g->include_pad);
    op_int(t, "p", 3);
    op_add(t, dtype, 4, (const int64_t[]){1, g->planes, g->in[0], g->in[1]}, x);
}

static void check(const struct op_run *t, enum ir_op_id id, const struct geometry *g,
                  const float *x)
{
    const struct tensor *y = &t->outputs[0].tensor;
    int64_t plane = g->in[0] * g->in[1], height = naive_size(g, 0), width = naive_size(g, 1);
    assert_int_equal(y->dims[2], height);
    assert_int_equal(y->dims[3], width);
    for (int64_t i = 0; i < 2 * height * width; i++) {
        int64_t c = i / (height * width);
        struct window_result r = naive_window(g, x + c * plane, i / width % height, i % width);
        double actual = (double)((const float *)y->data)[i];
        if (id == IR_OP_MaxPool) {
            assert_true(actual == r.max);
            int64_t index = ((const int64_t *)t->outputs[1].tensor.data)[i];
            assert_int_equal(index, r.argmax < 0 ? -1 : r.argmax + c * plane);
        } else if (id == IR_OP_LpPool) {
            expect_close(actual, r.norm3, 1e-6, "LpPool", (size_t)i);
        } else {
            int64_t n = g->include_pad ? r.padded_count : r.count;
            expect_close(actual, n ? r.sum / (double)n : 0, 1e-6, "AveragePool", (size_t)i);
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    const enum ir_op_id ids[3] = {IR_OP_MaxPool, IR_OP_AveragePool, IR_OP_LpPool};
    float x[2 * 20 * 20];
    random_floats(x, sizeof x / sizeof *x, 5);
    seed = 1;
    for (int round = 0; round < 600; round++) {
        struct geometry g;
        random_geometry(&g);
        enum ir_op_id id = ids[round % 3];
        struct op_run t;
        start(&t, id, &g, TSSA_FLOAT, x);
        op_outputs(&t, id == IR_OP_MaxPool ? 2 : 1);
        op_go(&t);
        check(&t, id, &g, x);
        op_close(&t);
    }
}

static void expect_same_bits(float actual, float expected)
{
    if (!(isnan(actual) && isnan(expected)))
        assert_memory_equal(&actual, &expected, sizeof actual);
}

/* Few values, so that maxima are often zeros of either sign; few of them no numbers. */
static void special_floats(float *x, double *wide, size_t n, uint32_t kind)
{
    random_floats(x, n, kind);
    for (size_t i = 0; i < n; i++) {
        int64_t special = pick(6);
        x[i] = special == 0                             ? 0.0f
               : special == 1                           ? -0.0f
               : special == 2 && kind % 2 && i % 9 == 0 ? (pick(2)   ? NAN
                                                           : pick(2) ? INFINITY
                                                                     : -INFINITY)
                                                        : x[i];
        wide[i] = (double)x[i];
    }
}

/* Maxima of float32 without positions have code of their own. Their bits are those of the same in
 * double; of zeros the first one's sign. */
static void test_floats(void **state)
{
    (void)state;
    static float x[MOST_PLANES * 60 * 60];
    static double wide[MOST_PLANES * 60 * 60];
    seed = 7;
    for (int round = 0; round < 800; round++) {
        struct geometry g;
        struct op_run narrow, all;
        random_geometry(&g);
        if (round % 3 == 0) /* some are turned together */
            g.planes = 8 + pick(MOST_PLANES - 7);
        for (int i = 0; i < 2; i++) {
            if (round % 5 == 0) /* more than 64 elements, too */
                g.kernel[i] += 5 + pick(2);
            if (round % 5 < 2)
                g.in[i] = (g.kernel[i] - 1) * g.dilations[i] + 1 + pick(40);
            if (round % 50 < 2) {
                g.dilations[i] = 1;
                g.in[i] = g.kernel[i];
                g.pads[i] = g.pads[2 + i] = 0;
            }
        }
        special_floats(x, wide, (size_t)(g.planes * g.in[0] * g.in[1]), (uint32_t)round);
        start(&narrow, IR_OP_MaxPool, &g, TSSA_FLOAT, x);
        start(&all, IR_OP_MaxPool, &g, TSSA_DOUBLE, wide);
        op_go(&narrow);
        op_go(&all);
        const struct tensor *y = &narrow.outputs[0].tensor, *z = &all.outputs[0].tensor;
        assert_int_equal(tensor_count(y), tensor_count(z));
        for (size_t i = 0; i < tensor_count(y); i++)
            expect_same_bits(((const float *)y->data)[i], (float)((const double *)z->data)[i]);
        op_close(&narrow);
        op_close(&all);
    }
}

/* The same for one axis and three. */
static void test_other_ranks(void **state)
{
    (void)state;
    static float x[2 * 12 * 12 * 12];
    static double wide[2 * 12 * 12 * 12];
    seed = 11;
    for (int round = 0; round < 200; round++) {
        int64_t dims[5] = {1, 2}, kernel[3], strides[3], dilations[3], pads[6], count = 2;
        int rank = round % 3 ? 3 : 1;
        for (int i = 0; i < rank; i++) {
            kernel[i] = 1 + pick(3);
            strides[i] = 1 + pick(3);
            dilations[i] = 1 + pick(2);
            int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
            pads[i] = pick(extent);
            pads[rank + i] = pick(extent);
            dims[2 + i] = extent + pick(12 - extent);
            count *= dims[2 + i];
        }
        special_floats(x, wide, (size_t)count, (uint32_t)round);
        struct op_run runs[2];
        for (int i = 0; i < 2; i++) {
            op_begin(&runs[i], IR_OP_MaxPool, 0);
            op_ints(&runs[i], "kernel_shape", (size_t)rank, kernel);
            op_ints(&runs[i], "strides", (size_t)rank, strides);
            op_ints(&runs[i], "dilations", (size_t)rank, dilations);
            op_ints(&runs[i], "pads", 2 * (size_t)rank, pads);
            op_add(&runs[i], i ? TSSA_DOUBLE : TSSA_FLOAT, rank + 2, dims,
                   i ? (const void *)wide : x);
            op_go(&runs[i]);
        }
        const struct tensor *y = &runs[0].outputs[0].tensor, *z = &runs[1].outputs[0].tensor;
        for (size_t i = 0; i < tensor_count(y); i++)
            expect_same_bits(((const float *)y->data)[i], (float)((const double *)z->data)[i]);
        op_close(&runs[0]);
        op_close(&runs[1]);
    }
}

/* SAME pads so that there are ceil(in / stride) windows; the odd one goes to the named side. */
static void test_same(void **state)
{
    (void)state;
    const float x[4] = {1, 2, 3, 4};
    const struct {
        const char *mode;
        float expected[2];
    } cases[2] = {{"SAME_UPPER", {3, 4}}, {"SAME_LOWER", {2, 4}}};
    for (int i = 0; i < 2; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_MaxPool, 12);
        op_string(&t, "auto_pad", cases[i].mode);
        op_ints(&t, "kernel_shape", 1, (const int64_t[]){3});
        op_ints(&t, "strides", 1, (const int64_t[]){2});
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 4}, x);
        op_go(&t);
        assert_int_equal(t.outputs[0].tensor.dims[2], 2);
        assert_memory_equal(t.outputs[0].tensor.data, cases[i].expected, sizeof cases[i].expected);
        op_close(&t);
    }
}

static void test_valid_ignores_ceil(void **state)
{
    (void)state;
    const float x[6] = {1, 2, 3, 4, 5, 6};
    struct op_run t;
    op_begin(&t, IR_OP_MaxPool, 22);
    op_string(&t, "auto_pad", "VALID");
    op_int(&t, "ceil_mode", 1);
    op_ints(&t, "kernel_shape", 1, (const int64_t[]){3});
    op_ints(&t, "strides", 1, (const int64_t[]){2});
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 6}, x);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[2], 2);
    op_close(&t);
}

static void test_bytes_and_nan(void **state)
{
    (void)state;
    const int8_t bytes[4] = {-128, -5, -7, 3};
    const float floats[4] = {1, NAN, 5, 7};
    struct op_run t;
    op_begin(&t, IR_OP_MaxPool, 12);
    op_ints(&t, "kernel_shape", 1, (const int64_t[]){2});
    op_add(&t, TSSA_INT8, 3, (const int64_t[]){1, 1, 4}, bytes);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, ((const int8_t[]){-5, -5, 3}), 3);
    op_close(&t);
    op_begin(&t, IR_OP_MaxPool, 12);
    op_ints(&t, "kernel_shape", 1, (const int64_t[]){2});
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 4}, floats);
    op_outputs(&t, 2);
    op_go(&t);
    const float *y = t.outputs[0].tensor.data;
    assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 7);
    assert_int_equal(((const int64_t *)t.outputs[1].tensor.data)[0], 1);
    op_close(&t);
}

static void test_global(void **state)
{
    (void)state;
    float x[2 * 3 * 4 * 5];
    random_floats(x, 120, 9);
    const enum ir_op_id ids[3] = {IR_OP_GlobalAveragePool, IR_OP_GlobalMaxPool, IR_OP_GlobalLpPool};
    for (int i = 0; i < 3; i++) {
        struct op_run t;
        op_begin(&t, ids[i], 0);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){2, 3, 4, 5}, x);
        op_go(&t);
        assert_int_equal(tensor_count(&t.outputs[0].tensor), 6);
        for (int p = 0; p < 6; p++) {
            double sum = 0, squares = 0, most = -INFINITY;
            for (int k = 0; k < 20; k++) {
                double v = (double)x[p * 20 + k];
                sum += v;
                squares += v * v;
                most = fmax(most, v);
            }
            double expected = i == 0 ? sum / 20 : i == 1 ? most : sqrt(squares);
            expect_close((double)((const float *)t.outputs[0].tensor.data)[p], expected, 1e-6,
                         "global", (size_t)p);
        }
        op_close(&t);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    const float x[4] = {0};
    const struct {
        const char *name;
        int64_t values[2];
        size_t count;
    } cases[] = {
        {"strides", {0}, 1},  {"strides", {1, 1}, 2},      {"dilations", {-1}, 1},
        {"pads", {-1, 0}, 2}, {"strides", {INT64_MAX}, 1}, {"pads", {INT64_MAX, INT64_MAX}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_MaxPool, 12);
        op_ints(&t, "kernel_shape", 1, (const int64_t[]){2});
        op_ints(&t, cases[i].name, cases[i].count, cases[i].values);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 4}, x);
        op_fails(&t, "");
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_other_ranks),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_valid_ignores_ceil),
        cmocka_unit_test(test_bytes_and_nan),
        cmocka_unit_test(test_global),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
