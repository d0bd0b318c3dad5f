/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of quantized values against loops that say what they are, to the bit, at sizes where
 * the library sums products of bytes and at sizes where it does not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/op_run.h"
#include "ir/ops.h"
#include "ir/weights_turned.h"

#define MOST 65536
#define ROUNDS 60

static struct random numbers = {7};

static int64_t pick(int64_t low, int64_t high)
{
    return random_int(&numbers, low, high);
}

/* An operand of bytes of both kinds. */
struct bytes {
    tssa_dtype dtype;
    int rank;
    int64_t dims[5], count;
    uint8_t data[MOST];
};

static void fill(struct bytes *bytes, tssa_dtype dtype, int rank, const int64_t *dims)
{
    bytes->dtype = dtype;
    bytes->rank = rank;
    bytes->count = 1;
    for (int i = 0; i < rank; i++)
        bytes->count *= bytes->dims[i] = dims[i];
    assert_true(bytes->count <= MOST);
    for (int64_t i = 0; i < bytes->count; i++)
        bytes->data[i] = (uint8_t)random_bits(&numbers);
}

static int64_t at(const struct bytes *bytes, int64_t i)
{
    return dtype_load_int64(bytes->dtype, bytes->data + i);
}

static void add(struct op_run *run, const struct bytes *bytes)
{
    op_add(run, bytes->dtype, bytes->rank, bytes->dims, bytes->data);
}

static tssa_dtype either(void)
{
    return pick(0, 1) ? TSSA_UINT8 : TSSA_INT8;
}

/* One number for all, or one for each of n; UINT8 weights mostly around their middle. */
static void pick_zeros(struct bytes *zeros, tssa_dtype dtype, int64_t n, bool weights)
{
    const int64_t most = weights && dtype == TSSA_UINT8 ? 128 : 0, count = pick(0, 1) ? n : 1;
    fill(zeros, dtype, count == 1 && pick(0, 1) ? 0 : 1, &count);
    const bool skewed = pick(0, 4) == 0;
    for (int64_t i = 0; i < zeros->count; i++)
        zeros->data[i] = skewed ? (uint8_t)random_bits(&numbers) : (uint8_t)most;
}

static int64_t zero_at(const struct bytes *zeros, int64_t i)
{
    return at(zeros, zeros->count == 1 ? 0 : i);
}

static uint8_t quantized(int64_t sum, float factor, int64_t zero, tssa_dtype dtype)
{
    const float low = dtype == TSSA_INT8 ? -128 : 0, high = dtype == TSSA_INT8 ? 127 : 255;
    float value = rintf((float)sum * factor) + (float)zero;
    value = value > low ? value : low;
    return (uint8_t)(int32_t)(value < high ? value : high);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

struct conv {
    int64_t groups, in, out, size, kernel, stride, dilation, pad, result;
    bool last, known, turned; /* channels are the last axis; all is constant when the step is made;
                                 the weights are a matrix that lies as a product has it */
    struct bytes x, w, x_zero, w_zeros;
};

static struct conv conv;

static void pick_conv(void)
{
    const bool large = pick(0, 1);
    conv.last = conv.known = conv.turned = false;
    conv.groups = pick(0, 2) ? 1 : pick(2, 4);
    conv.in = conv.groups * (large ? pick(1, 12) : pick(1, 2));
    conv.out = conv.groups * (pick(0, 3) ? pick(1, 10) : conv.in / conv.groups);
    conv.size = large ? pick(6, 12) : pick(3, 5);
    conv.kernel = pick(1, 3);
    conv.stride = pick(1, 2);
    conv.dilation = pick(1, 2);
    conv.pad = pick(0, 2);
    const int64_t room = conv.size + 2 * conv.pad - conv.dilation * (conv.kernel - 1) - 1;
    conv.result = room / conv.stride + 1;
    if (room < 0)
        pick_conv();
}

/* A matrix: of more rows and columns than are turned at a time, or of few. */
static void pick_turned(void)
{
    conv.turned = true;
    conv.groups = conv.kernel = conv.stride = conv.dilation = 1;
    conv.pad = 0;
    conv.result = conv.size = pick(1, 3);
    conv.in = pick(0, 1) ? pick(1, 20) : pick(200, 300);
    conv.out = pick(1, 80);
}

static int64_t x_index(int64_t n, int64_t channel, int64_t row, int64_t column)
{
    return conv.last ? ((n * conv.size + row) * conv.size + column) * conv.in + channel
                     : ((n * conv.in + channel) * conv.size + row) * conv.size + column;
}

static int64_t y_index(int64_t n, int64_t channel, int64_t row, int64_t column)
{
    return conv.last ? ((n * conv.result + row) * conv.result + column) * conv.out + channel
                     : ((n * conv.out + channel) * conv.result + row) * conv.result + column;
}

static int64_t w_index(int64_t o, int64_t i, int64_t ky, int64_t kx)
{
    return conv.turned ? i * conv.out + o
                       : ((o * (conv.in / conv.groups) + i) * conv.kernel + ky) * conv.kernel + kx;
}

/* The sum of products of one element of the result of batch n. */
static int64_t conv_sum(int64_t n, int64_t o, int64_t y, int64_t x)
{
    const int64_t per_group = conv.in / conv.groups, group = o / (conv.out / conv.groups);
    int64_t sum = 0;
    for (int64_t i = 0; i < per_group; i++)
        for (int64_t ky = 0; ky < conv.kernel; ky++)
            for (int64_t kx = 0; kx < conv.kernel; kx++) {
                const int64_t row = y * conv.stride + ky * conv.dilation - conv.pad,
                              column = x * conv.stride + kx * conv.dilation - conv.pad;
                if (row < 0 || row >= conv.size || column < 0 || column >= conv.size)
                    continue;
                const int64_t channel = group * per_group + i;
                sum += (at(&conv.x, x_index(n, channel, row, column)) - zero_at(&conv.x_zero, 0)) *
                       (at(&conv.w, w_index(o, i, ky, kx)) - zero_at(&conv.w_zeros, o));
            }
    return sum;
}

static void begin_conv(struct op_run *run, enum ir_op_id id)
{
    const int64_t pads[] = {conv.pad, conv.pad, conv.pad, conv.pad};
    const int64_t strides[] = {conv.stride, conv.stride},
                  dilations[] = {conv.dilation, conv.dilation};
    const int64_t first[] = {2, conv.in, conv.size, conv.size},
                  last[] = {2, conv.size, conv.size, conv.in},
                  w[] = {conv.out, conv.in / conv.groups, conv.kernel, conv.kernel},
                  turned[] = {conv.in, conv.out, 1, 1};
    fill(&conv.x, either(), 4, conv.last ? last : first);
    fill(&conv.w, either(), 4, conv.turned ? turned : w);
    fill(&conv.x_zero, conv.x.dtype, 0, NULL);
    pick_zeros(&conv.w_zeros, conv.w.dtype, conv.out, true);
    op_begin(run, id, 0);
    op_ints(run, "pads", 4, pads);
    op_ints(run, "strides", 2, strides);
    op_ints(run, "dilations", 2, dilations);
    op_int(run, "group", conv.groups);
    if (conv.last)
        op_int(run, IR_CHANNELS_LAST, 1);
    if (conv.turned)
        op_int(run, IR_WEIGHTS_TURNED, 1);
}

static const void *conv_result(struct op_run *run, tssa_dtype dtype)
{
    const int64_t first[] = {2, conv.out, conv.result, conv.result},
                  last[] = {2, conv.result, conv.result, conv.out};
    if (conv.known)
        op_go_known(run);
    else
        op_go(run);
    return op_output(run, 0, dtype, 4, conv.last ? last : first)->data;
}

static void test_conv_integer(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        pick_conv();
        conv.last = pick(0, 1);
        begin_conv(&run, IR_OP_ConvInteger);
        add(&run, &conv.x);
        add(&run, &conv.w);
        add(&run, &conv.x_zero);
        add(&run, &conv.w_zeros);
        const int32_t *y = conv_result(&run, TSSA_INT32);
        for (int64_t i = 0, area = conv.result * conv.result; i < 2 * conv.out * area; i++) {
            const int64_t n = i / area / conv.out, o = i / area % conv.out,
                          row = i % area / conv.result, column = i % conv.result;
            assert_int_equal(y[y_index(n, o, row, column)], conv_sum(n, o, row, column));
        }
        op_close(&run);
    }
}

static void one_qlinear_conv(void)
{
    static struct bytes y_zero;
    struct op_run run;
    /* powers of two: many results are half-way between two */
    const bool halves = pick(0, 1);
    float x_scale = halves ? 1 : 0.02f, y_scale = halves ? 64 : 3.5f, w_scales[80];
    int32_t bias[80];
    const bool biased = pick(0, 1), large = pick(0, 7) == 0, finite = pick(0, 7) != 0;
    pick_conv();
    conv.last = pick(0, 1);
    conv.known = pick(0, 3) != 0;
    if (pick(0, 3) == 0)
        pick_turned();
    begin_conv(&run, IR_OP_QLinearConv);
    fill(&y_zero, either(), 0, NULL);
    for (int64_t o = 0; o < conv.out; o++) {
        w_scales[o] = halves ? 1 : (float)pick(1, 100) / 64;
        if (!finite && pick(0, 1))
            w_scales[o] = NAN;
        bias[o] = biased ? (int32_t)pick(-20000, 20000) * (large ? 1000 : 1) : 0;
    }
    add(&run, &conv.x);
    op_add(&run, TSSA_FLOAT, 0, NULL, &x_scale);
    add(&run, &conv.x_zero);
    add(&run, &conv.w);
    op_add(&run, TSSA_FLOAT, 1, &conv.out, w_scales);
    add(&run, &conv.w_zeros);
    op_add(&run, TSSA_FLOAT, 0, NULL, &y_scale);
    add(&run, &y_zero);
    if (biased)
        op_add(&run, TSSA_INT32, 1, &conv.out, bias);
    const uint8_t *y = conv_result(&run, y_zero.dtype);
    for (int64_t i = 0, area = conv.result * conv.result; i < 2 * conv.out * area; i++) {
        const int64_t n = i / area / conv.out, o = i / area % conv.out,
                      row = i % area / conv.result, column = i % conv.result;
        assert_int_equal(y[y_index(n, o, row, column)],
                         quantized(conv_sum(n, o, row, column) + bias[o],
                                   x_scale * w_scales[o] / y_scale, zero_at(&y_zero, 0),
                                   y_zero.dtype));
    }
    op_close(&run);
}

static void test_qlinear_conv(void **state)
{
    (void)state;
    for (int round = 0; round < 5 * ROUNDS; round++)
        one_qlinear_conv();
}

/* ---- Products -------------------------------------------------------------------------------- */

/* a[batch, m, k] * b[1 or batch, k, n] */
struct product {
    int64_t batch, m, n, k;
    bool shared;
    struct bytes a, b, a_zeros, b_zeros;
};

static struct product product;

static void pick_product(void)
{
    const bool large = pick(0, 1);
    product.batch = pick(1, 3);
    product.m = large ? pick(1, 40) : pick(1, 4);
    product.n = large ? pick(1, 60) : pick(1, 4);
    product.k = large ? pick(1, 70) : pick(1, 4);
    product.shared = pick(0, 1);
    const int64_t a[] = {product.batch, product.m, product.k},
                  b[] = {product.shared ? 1 : product.batch, product.k, product.n};
    const int drop = product.shared && pick(0, 1) ? 1 : 0;
    fill(&product.a, either(), 3, a);
    fill(&product.b, either(), 3 - drop, b + drop);
    fill(&product.a_zeros, product.a.dtype, 0, NULL);
    pick_zeros(&product.b_zeros, product.b.dtype, product.n, false);
}

static int64_t product_sum(int64_t i)
{
    const int64_t column = i % product.n, row = i / product.n;
    const int64_t matrix = product.shared ? 0 : row / product.m;
    int64_t sum = 0;
    for (int64_t k = 0; k < product.k; k++)
        sum += (at(&product.a, row * product.k + k) - zero_at(&product.a_zeros, 0)) *
               (at(&product.b, (matrix * product.k + k) * product.n + column) -
                zero_at(&product.b_zeros, column));
    return sum;
}

static const void *product_result(struct op_run *run, tssa_dtype dtype)
{
    const int64_t dims[] = {product.batch, product.m, product.n};
    op_go(run);
    return op_output(run, 0, dtype, 3, dims)->data;
}

static void test_matmul_integer(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        pick_product();
        op_begin(&run, IR_OP_MatMulInteger, 0);
        add(&run, &product.a);
        add(&run, &product.b);
        add(&run, &product.a_zeros);
        add(&run, &product.b_zeros);
        const int32_t *y = product_result(&run, TSSA_INT32);
        for (int64_t i = 0; i < product.batch * product.m * product.n; i++)
            assert_int_equal(y[i], product_sum(i));
        op_close(&run);
    }
}

static void one_qlinear_matmul(void)
{
    static struct bytes y_zero;
    struct op_run run;
    float a_scale = 0.02f, y_scale = 3.5f, b_scales[64];
    pick_product();
    fill(&y_zero, either(), 0, NULL);
    for (int64_t j = 0; j < product.n; j++)
        b_scales[j] = (float)pick(1, 100) / 64;
    op_begin(&run, IR_OP_QLinearMatMul, 0);
    add(&run, &product.a);
    op_add(&run, TSSA_FLOAT, 0, NULL, &a_scale);
    add(&run, &product.a_zeros);
    add(&run, &product.b);
    op_add(&run, TSSA_FLOAT, 1, &product.n, b_scales);
    add(&run, &product.b_zeros);
    op_add(&run, TSSA_FLOAT, 0, NULL, &y_scale);
    add(&run, &y_zero);
    const uint8_t *y = product_result(&run, y_zero.dtype);
    for (int64_t i = 0; i < product.batch * product.m * product.n; i++)
        assert_int_equal(y[i],
                         quantized(product_sum(i), a_scale * b_scales[i % product.n] / y_scale,
                                   zero_at(&y_zero, 0), y_zero.dtype));
    op_close(&run);
}

static void test_qlinear_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++)
        one_qlinear_matmul();
}

/* ---- To bytes and back ----------------------------------------------------------------------- */

/* x[outer, axis, inner]; one scale, one for each of the axis, or one for each block of it. */
struct scaled {
    int64_t outer, axis, inner, block, scales_count;
    float scales[4096];
    struct bytes zeros;
};

static struct scaled scaled;

static int64_t scale_of(int64_t i)
{
    const int64_t inner = i % scaled.inner, axis = i / scaled.inner % scaled.axis,
                  outer = i / scaled.inner / scaled.axis;
    if (scaled.scales_count == 1)
        return 0;
    if (!scaled.block)
        return axis;
    const int64_t blocks = (scaled.axis + scaled.block - 1) / scaled.block;
    return (outer * blocks + axis / scaled.block) * scaled.inner + inner;
}

/* Adds x, its scales and zero points. */
static void begin_scaled(struct op_run *run, enum ir_op_id id, tssa_dtype dtype, const void *x,
                         tssa_dtype zeros)
{
    const int64_t dims[] = {scaled.outer, scaled.axis, scaled.inner};
    const int64_t blocks = scaled.block ? (scaled.axis + scaled.block - 1) / scaled.block : 0;
    const int64_t blocked[] = {scaled.outer, blocks, scaled.inner};
    const int rank = scaled.block ? 3 : scaled.scales_count == 1 ? 0 : 1;
    const int64_t *shape = scaled.block ? blocked : &scaled.axis;
    op_begin(run, id, 0);
    op_int(run, "axis", 1);
    op_int(run, "block_size", scaled.block);
    op_add(run, dtype, 3, dims, x);
    op_add(run, TSSA_FLOAT, rank, shape, scaled.scales);
    fill(&scaled.zeros, zeros, rank, shape);
    op_add(run, zeros, rank, shape, scaled.zeros.data);
}

static void pick_scaled(void)
{
    scaled.outer = pick(1, 3);
    scaled.axis = pick(1, 40);
    scaled.inner = pick(0, 1) ? 1 : pick(2, 300);
    scaled.block = pick(0, 2) ? 0 : pick(1, 7);
    scaled.scales_count =
        scaled.block
            ? scaled.outer * ((scaled.axis + scaled.block - 1) / scaled.block) * scaled.inner
        : pick(0, 1) ? 1
                     : scaled.axis;
    if (scaled.scales_count > 4096 || scaled.outer * scaled.axis * scaled.inner > 20000) {
        pick_scaled();
        return;
    }
    for (int64_t i = 0; i < scaled.scales_count; i++)
        scaled.scales[i] = (float)pick(1, 100) / 64;
}

static void one_quantize(void)
{
    static float x[20000];
    const tssa_dtype to = either();
    struct op_run run;
    pick_scaled();
    const int64_t n = scaled.outer * scaled.axis * scaled.inner,
                  dims[] = {scaled.outer, scaled.axis, scaled.inner};
    random_floats(x, (size_t)n, (uint32_t)random_bits(&numbers));
    for (int64_t i = 0; i < n; i++)
        x[i] *= 200;
    x[n / 2] = NAN;
    begin_scaled(&run, IR_OP_QuantizeLinear, TSSA_FLOAT, x, to);
    op_go(&run);
    const uint8_t *y = op_output(&run, 0, to, 3, dims)->data;
    for (int64_t i = 0; i < n; i++) {
        const float low = to == TSSA_INT8 ? -128 : 0, high = to == TSSA_INT8 ? 127 : 255;
        float value =
            rintf(x[i] / scaled.scales[scale_of(i)]) + (float)at(&scaled.zeros, scale_of(i));
        value = value > low ? value : low;
        assert_int_equal(y[i], (uint8_t)(int32_t)(value < high ? value : high));
    }
    op_close(&run);
}

static void one_dequantize(void)
{
    static struct bytes x;
    struct op_run run;
    pick_scaled();
    const int64_t dims[] = {scaled.outer, scaled.axis, scaled.inner};
    fill(&x, either(), 3, dims);
    begin_scaled(&run, IR_OP_DequantizeLinear, x.dtype, x.data, x.dtype);
    op_go(&run);
    const float *y = op_output(&run, 0, TSSA_FLOAT, 3, dims)->data;
    for (int64_t i = 0; i < x.count; i++) {
        const float expected =
            (float)(at(&x, i) - at(&scaled.zeros, scale_of(i))) * scaled.scales[scale_of(i)];
        assert_memory_equal(&y[i], &expected, sizeof expected);
    }
    op_close(&run);
}

static void test_scales(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        one_quantize();
        one_dequantize();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_integer),   cmocka_unit_test(test_qlinear_conv),
        cmocka_unit_test(test_matmul_integer), cmocka_unit_test(test_qlinear_matmul),
        cmocka_unit_test(test_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
