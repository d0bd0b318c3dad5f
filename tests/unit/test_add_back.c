/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose, Col2Im and MaxUnpool against their sums written out; Det. */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/op_run.h"
#include "common/xmalloc.h"

/* ---- ConvTranspose --------------------------------------------------------------------------- */

enum { N = 2, GROUPS = 2, IN = 4, OUT = 6, H = 3, W = 4, KH = 2, KW = 3, PER_GROUP = OUT / GROUPS };
enum { STRIDE_H = 2, STRIDE_W = 1, DILATION_H = 1, DILATION_W = 2 };

/* y's sizes are what is given: positions outside are dropped. */
static void transposed(const float *x, const float *w, const float *b, int64_t top, int64_t left,
                       int64_t height, int64_t width, double *y)
{
    for (int64_t n = 0; n < N; n++)
        for (int64_t o = 0; o < OUT; o++)
            for (int64_t i = 0; i < height * width; i++)
                y[(n * OUT + o) * height * width + i] = (double)b[o];
    for (int64_t n = 0; n < N; n++)
        for (int64_t c = 0; c < IN; c++)
            for (int64_t o = 0; o < PER_GROUP; o++)
                for (int64_t at = 0; at < H * W * KH * KW; at++) {
                    int64_t k = at % (KH * KW), p = at / (KH * KW);
                    int64_t row = p / W * STRIDE_H + k / KW * DILATION_H - top;
                    int64_t column = p % W * STRIDE_W + k % KW * DILATION_W - left;
                    int64_t channel = c / (IN / GROUPS) * PER_GROUP + o;
                    if (row < 0 || row >= height || column < 0 || column >= width)
                        continue;
                    y[((n * OUT + channel) * height + row) * width + column] +=
                        (double)x[(n * IN + c) * H * W + p] *
                        (double)w[(c * PER_GROUP + o) * KH * KW + k];
                }
}

struct transpose_case {
    const char *auto_pad;
    size_t n_pads, n_padding, n_shape;
    int64_t pads[4], padding[2], shape[2];
    int64_t top, left, height, width; /* what comes out */
};

static void check_transpose(const struct transpose_case *c)
{
    float x[N * IN * H * W], w[IN * PER_GROUP * KH * KW], b[OUT];
    double expected[N * OUT * 12 * 12];
    random_floats(x, sizeof x / sizeof *x, 1);
    random_floats(w, sizeof w / sizeof *w, 2);
    random_floats(b, OUT, 3);
    transposed(x, w, b, c->top, c->left, c->height, c->width, expected);
    struct op_run t;
    op_begin(&t, IR_OP_ConvTranspose, 0);
    op_int(&t, "group", GROUPS);
    op_ints(&t, "strides", 2, (const int64_t[]){STRIDE_H, STRIDE_W});
    op_ints(&t, "dilations", 2, (const int64_t[]){DILATION_H, DILATION_W});
    if (c->auto_pad)
        op_string(&t, "auto_pad", c->auto_pad);
    if (c->n_pads)
        op_ints(&t, "pads", c->n_pads, c->pads);
    if (c->n_padding)
        op_ints(&t, "output_padding", c->n_padding, c->padding);
    if (c->n_shape)
        op_ints(&t, "output_shape", c->n_shape, c->shape);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){N, IN, H, W}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){IN, PER_GROUP, KH, KW}, w);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){OUT}, b);
    op_go(&t);
    const struct tensor *y = &t.outputs[0].tensor;
    assert_int_equal(y->dims[2], c->height);
    assert_int_equal(y->dims[3], c->width);
    for (size_t i = 0; i < tensor_count(y); i++)
        expect_close((double)((const float *)y->data)[i], expected[i], 1e-6, "y", i);
    op_close(&t);
}

static void test_transpose(void **state)
{
    (void)state;
    /* Without pads 6 x 8: 2 * 2 + 2 rows, 3 + 5 columns. */
    check_transpose(&(struct transpose_case){.height = 6, .width = 8});
    check_transpose(&(struct transpose_case){.auto_pad = "VALID", .height = 6, .width = 8});
    check_transpose(&(struct transpose_case){.n_pads = 4,
                                             .pads = {1, 0, 0, 3},
                                             .n_padding = 2,
                                             .padding = {1, 0},
                                             .top = 1,
                                             .height = 6,
                                             .width = 5});
    /* 3 columns too many: the odd one is at the side that the name says. */
    check_transpose(&(struct transpose_case){.auto_pad = "SAME_UPPER",
                                             .n_shape = 2,
                                             .shape = {6, 5},
                                             .left = 1,
                                             .height = 6,
                                             .width = 5});
    check_transpose(&(struct transpose_case){.auto_pad = "SAME_LOWER",
                                             .n_shape = 2,
                                             .shape = {6, 5},
                                             .left = 2,
                                             .height = 6,
                                             .width = 5});
    check_transpose(&(struct transpose_case){
        .n_shape = 2, .shape = {6, 5}, .left = 2, .height = 6, .width = 5});
    /* Larger than the windows reach: the rest is bias. */
    check_transpose(
        &(struct transpose_case){.n_shape = 2, .shape = {9, 8}, .height = 9, .width = 8});
    check_transpose(
        &(struct transpose_case){.auto_pad = "SAME_UPPER", .left = 2, .height = 6, .width = 4});
}

/* Weights whose rows are a multiple of 512 elements apart, known beforehand and not. Small
 * integers, whose sums are exact. */
static void test_transpose_constants(void **state)
{
    enum { GROUP = 128, ITEMS = 2 };
    static float x[ITEMS * IN * H * W], w[IN * GROUP * 4];
    const size_t bytes = sizeof(float) * ITEMS * GROUPS * GROUP * 2 * H * 2 * W;
    struct op_run t;
    (void)state;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (float)(i % 11) - 5;
    op_begin(&t, IR_OP_ConvTranspose, 0);
    op_int(&t, "group", GROUPS);
    op_ints(&t, "strides", 2, (const int64_t[]){2, 2});
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){ITEMS, IN, H, W}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){IN, GROUP, 2, 2}, w);
    no_error(op_try(&t));
    assert_int_equal(tensor_bytes(&t.outputs[0].tensor), bytes);
    float *y = xcalloc(bytes, 1);
    memcpy(y, t.outputs[0].tensor.data, bytes);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, y, bytes);
    free(y);
    op_close(&t);
}

static void test_transpose_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t count;
        int64_t values[3];
    } attrs[] = {{"strides", 2, {0, 1}},
                 {"strides", 1, {1}},
                 {"pads", 2, {-1, 0}},
                 {"dilations", 2, {1, -1}},
                 {"output_padding", 3, {0, 0, 0}},
                 {"output_shape", 2, {-2, 1}},
                 {"strides", 2, {INT64_MAX, 1}}};
    float x[64] = {0};
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_ConvTranspose, 0);
        op_ints(&t, attrs[i].name, attrs[i].count, attrs[i].values);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
        op_fails(&t, "");
        op_close(&t);
    }
    for (int64_t group = -1; group <= 2; group++) {
        struct op_run t;
        op_begin(&t, IR_OP_ConvTranspose, 0);
        op_int(&t, "group", group == 1 ? 3 : group);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 2}, x);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 2}, x);
        op_fails(&t, "");
        op_close(&t);
    }
}

/* Kernels as large as strides: each element is of one position. Small integers, whose sums are
 * exact. */
static void check_apart(int64_t kernel_rows, int64_t columns, bool biased)
{
    enum { ITEMS = 2, IN_GROUP = 3, OUT_GROUP = 5, ROWS = 3, MOST = 24 };
    static float x[ITEMS * 2 * IN_GROUP * ROWS * MOST], w[2 * IN_GROUP * OUT_GROUP * 3 * 2],
        b[2 * OUT_GROUP];
    const int64_t kernel[] = {kernel_rows, 2}, high = ROWS * kernel_rows, wide = 2 * columns;
    struct op_run t;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i * 7 % 11) - 5;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (float)(i * 5 % 9) - 4;
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = (float)i / 2;
    op_begin(&t, IR_OP_ConvTranspose, 0);
    op_int(&t, "group", 2);
    op_ints(&t, "strides", 2, kernel);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){ITEMS, 2 * IN_GROUP, ROWS, columns}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){2 * IN_GROUP, OUT_GROUP, kernel_rows, 2}, w);
    if (biased)
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){2 * OUT_GROUP}, b);
    op_go(&t);
    const int64_t dims[] = {ITEMS, 2 * OUT_GROUP, high, wide};
    const float *y = op_output(&t, 0, TSSA_FLOAT, 4, dims)->data;
    for (int64_t i = 0; i < ITEMS * 2 * OUT_GROUP * high * wide; i++) {
        const int64_t column = i % wide, row = i / wide % high,
                      o = i / wide / high % (2 * OUT_GROUP), n = i / wide / high / (2 * OUT_GROUP),
                      group = o / OUT_GROUP;
        float sum = biased ? b[o] : 0;
        for (int64_t c = group * IN_GROUP; c < (group + 1) * IN_GROUP; c++)
            sum += x[((n * 2 * IN_GROUP + c) * ROWS + row / kernel_rows) * columns + column / 2] *
                   w[((c * OUT_GROUP + o % OUT_GROUP) * kernel_rows + row % kernel_rows) * 2 +
                     column % 2];
        assert_true(y[i] == sum);
    }
    op_close(&t);
}

static void test_transpose_apart(void **state)
{
    (void)state;
    for (int64_t kernel_rows = 1; kernel_rows <= 3; kernel_rows++)
        for (int64_t columns = 1; columns <= 24; columns += 1 + columns / 2)
            for (int biased = 0; biased < 2; biased++)
                check_apart(kernel_rows, columns, biased);
}

/* More columns than are made together, in two groups of two items: small integers, whose sums are
 * exact. */
static void test_transpose_in_blocks(void **state)
{
    enum { ITEMS = 2, IN_GROUP = 2, OUT_GROUP = 70, SIDE = 130, PLANE = SIDE * SIDE };
    enum { CHANNELS = 2 * IN_GROUP, OUTPUTS = 2 * OUT_GROUP };
    float *x = xcalloc(ITEMS * CHANNELS * PLANE, sizeof *x), w[CHANNELS * OUT_GROUP];
    struct op_run t;
    (void)state;
    for (int i = 0; i < ITEMS * CHANNELS * PLANE; i++)
        x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < CHANNELS * OUT_GROUP; i++)
        w[i] = (float)(i * 5 % 13 - 6);
    op_begin(&t, IR_OP_ConvTranspose, 0);
    op_int(&t, "group", 2);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){ITEMS, CHANNELS, SIDE, SIDE}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){CHANNELS, OUT_GROUP, 1, 1}, w);
    op_go(&t);
    const float *y = t.outputs[0].tensor.data;
    int wrong = tensor_count(&t.outputs[0].tensor) != (size_t)ITEMS * OUTPUTS * PLANE;
    for (int i = 0; i < ITEMS * OUTPUTS * PLANE && !wrong; i++) {
        const int at = i % PLANE, output = i / PLANE % OUTPUTS, item = i / PLANE / OUTPUTS;
        float sum = 0;
        for (int c = 0; c < IN_GROUP; c++) {
            const int channel = output / OUT_GROUP * IN_GROUP + c;
            sum += x[(item * CHANNELS + channel) * PLANE + at] *
                   w[channel * OUT_GROUP + output % OUT_GROUP];
        }
        wrong += y[i] != sum;
    }
    assert_int_equal(wrong, 0);
    op_close(&t);
    free(x);
}

/* ---- Col2Im ---------------------------------------------------------------------------------- */

static void test_col2im(void **state)
{
    (void)state;
    /* 2 channels of 5 x 4, blocks of 2 x 2, strides 2 and 1, one row of padding at the top. */
    enum { C = 2, BH = 2, BW = 2, ROWS = 3, COLUMNS = 3 };
    static const int64_t image[2] = {5, 4}, block[2] = {BH, BW};
    int32_t x[C * BH * BW * ROWS * COLUMNS], expected[C * 5 * 4] = {0};
    for (int i = 0; i < C * BH * BW * ROWS * COLUMNS; i++)
        x[i] = i * i;
    for (int i = 0; i < C * BH * BW * ROWS * COLUMNS; i++) {
        int p = i % (ROWS * COLUMNS), k = i / (ROWS * COLUMNS) % (BH * BW),
            c = i / (ROWS * COLUMNS) / (BH * BW);
        int row = p / COLUMNS * 2 + k / BW - 1, column = p % COLUMNS + k % BW;
        if (row >= 0)
            expected[(c * 5 + row) * 4 + column] += x[i];
    }
    struct op_run t;
    op_begin(&t, IR_OP_Col2Im, 0);
    op_ints(&t, "strides", 2, (const int64_t[]){2, 1});
    op_ints(&t, "pads", 4, (const int64_t[]){1, 0, 0, 0});
    op_add(&t, TSSA_INT32, 3, (const int64_t[]){1, C * BH * BW, ROWS * COLUMNS}, x);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, image);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, block);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[1], C);
    assert_memory_equal(t.outputs[0].tensor.data, expected, sizeof expected);
    op_close(&t);

    op_begin(&t, IR_OP_Col2Im, 0); /* too few blocks */
    op_add(&t, TSSA_INT32, 3, (const int64_t[]){1, C * BH * BW, ROWS * COLUMNS}, x);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, image);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, block);
    op_fails(&t, "");
    op_close(&t);
}

/* ---- MaxUnpool ------------------------------------------------------------------------------- */

static void begin_unpool(struct op_run *t, const int64_t *indices)
{
    static const float x[4] = {1, 2, 3, 4};
    static const int64_t twos[2] = {2, 2};
    op_begin(t, IR_OP_MaxUnpool, 0);
    op_ints(t, "kernel_shape", 2, twos);
    op_ints(t, "strides", 2, twos);
    op_add(t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
    op_add(t, TSSA_INT64, 4, (const int64_t[]){1, 1, 2, 2}, indices);
}

static void test_max_unpool(void **state)
{
    (void)state;
    static const int64_t indices[4] = {5, 2, 8, 15}, outside[4] = {5, 2, 16, 15};
    static const int64_t larger[4] = {1, 1, 4, 5}, smaller[4] = {1, 1, 4, 3};
    float expected[16] = {0}, wide[20] = {0};
    for (int i = 0; i < 4; i++) {
        expected[indices[i]] = (float)(i + 1);
        wide[indices[i] / 4 * 5 + indices[i] % 4] = (float)(i + 1);
    }
    struct op_run t;
    begin_unpool(&t, indices);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, expected, sizeof expected);
    op_close(&t);
    begin_unpool(&t, indices);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){4}, larger);
    op_go(&t);
    assert_memory_equal(t.outputs[0].tensor.data, wide, sizeof wide);
    op_close(&t);
    begin_unpool(&t, indices);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){4}, smaller);
    op_fails(&t, "");
    op_close(&t);
    begin_unpool(&t, outside);
    op_fails(&t, "");
    op_close(&t);
}

/* Elements of each width; of more than vectors hold, one index outside is found among many. */
static void test_max_unpool_widths(void **state)
{
    (void)state;
    static const tssa_dtype types[] = {TSSA_FLOAT16, TSSA_FLOAT, TSSA_DOUBLE};
    enum { COUNT = 2 * 3 * 5 * 7 };
    static const int64_t dims[4] = {2, 3, 5, 7}, twos[2] = {2, 2};
    int64_t indices[COUNT];
    struct random random = {2};
    for (int round = 0; round < 12; round++) {
        struct op_run t;
        op_open(&t, IR_OP_MaxUnpool, 2, 1);
        op_ints(&t, "kernel_shape", 2, twos);
        op_ints(&t, "strides", 2, twos);
        const struct tensor *x = op_random(&t, 0, &random, types[round % 3], 4, dims);
        for (int i = 0; i < COUNT; i++)
            indices[i] = 4 * i + random_int(&random, 0, 3);
        op_input_ints(&t, 1, TSSA_INT64, 1, COUNT, indices);
        t.inputs[1].tensor.rank = 4;
        memcpy(t.inputs[1].tensor.dims, dims, sizeof dims);
        op_go(&t);
        const size_t size = tssa_dtype_size(x->dtype);
        char *expected = xcalloc(4 * COUNT, size);
        for (int i = 0; i < COUNT; i++)
            memcpy(expected + (size_t)indices[i] * size, (const char *)x->data + (size_t)i * size,
                   size);
        assert_memory_equal(t.outputs[0].tensor.data, expected, 4 * COUNT * size);
        free(expected);
        static const int64_t outside[] = {4 * COUNT, -1, INT64_MIN, INT64_MAX};
        ((int64_t *)t.inputs[1].tensor.data)[random_int(&random, 0, COUNT - 1)] =
            outside[round % 4];
        op_fails(&t, "outside");
        op_close(&t);
    }
}

/* ---- Det ------------------------------------------------------------------------------------- */

static void test_det(void **state)
{
    (void)state;
    static const double x[3 * 9] = {0, 2, 1, 3, 4, 5, 6, 7, 9, /* pivots */
                                    1, 2, 3, 2, 4, 6, 1, 0, 1, /* singular */
                                    2, 0, 0, 0, 3, 0, 0, 0, 4};
    static const double expected[3] = {3, 0, 24};
    struct op_run t;
    op_begin(&t, IR_OP_Det, 0);
    op_add(&t, TSSA_DOUBLE, 3, (const int64_t[]){3, 3, 3}, x);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.rank, 1);
    for (size_t i = 0; i < 3; i++)
        expect_close(((const double *)t.outputs[0].tensor.data)[i], expected[i], 1e-14, "det", i);
    op_close(&t);
    op_begin(&t, IR_OP_Det, 0); /* of no rows: 1 */
    op_add(&t, TSSA_DOUBLE, 2, (const int64_t[]){0, 0}, NULL);
    op_go(&t);
    assert_true(*(const double *)t.outputs[0].tensor.data == 1);
    op_close(&t);
    op_begin(&t, IR_OP_Det, 0);
    op_add(&t, TSSA_DOUBLE, 2, (const int64_t[]){3, 2}, x);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_transpose_constants),
        cmocka_unit_test(test_transpose_refuses),
        cmocka_unit_test(test_transpose_apart),
        cmocka_unit_test(test_transpose_in_blocks),
        cmocka_unit_test(test_col2im),
        cmocka_unit_test(test_max_unpool),
        cmocka_unit_test(test_max_unpool_widths),
        cmocka_unit_test(test_det),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
