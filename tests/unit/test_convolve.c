/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolve against plain loops in double: channels first and last of what is read and written,
 * groups, strides, dilations, pads, what is added and what is done to sums; large enough for the
 * library and too small for it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/convolve.h"

#define ROUNDS 300
#define MOST_CHANNELS 48
#define MOST_SIZE 12
#define MOST_ELEMENTS (2 * MOST_CHANNELS * (MOST_SIZE + 4) * (MOST_SIZE + 4))
#define MOST_WEIGHTS (MOST_CHANNELS * MOST_CHANNELS * 9)

static struct {
    int64_t batch, in, out, groups, size, kernel, stride, dilation, pad, result;
    bool x_last, y_last, biased, added;
    enum convolve_after after;
    float a, b;
    float x[MOST_ELEMENTS], w[MOST_WEIGHTS], bias[MOST_CHANNELS], more[MOST_ELEMENTS];
} conv;

static struct random numbers = {7};

static int64_t pick(int64_t low, int64_t high)
{
    return random_int(&numbers, low, high);
}

static void pick_channels(void)
{
    const int64_t each = pick(1, 16);
    conv.groups = random_chance(&numbers, 40) ? pick(2, 40) : 1;
    if (conv.groups == 1) {
        conv.in = pick(1, MOST_CHANNELS);
        conv.out = pick(1, MOST_CHANNELS);
    } else if (random_chance(&numbers, 60)) {
        conv.in = conv.out = conv.groups;
    } else {
        conv.groups = pick(2, 3);
        conv.in = conv.groups * each;
        conv.out = conv.groups * pick(1, 16);
    }
}

static void pick_conv(void)
{
    do {
        pick_channels();
        conv.batch = pick(1, 2);
        conv.size = pick(1, MOST_SIZE);
        conv.kernel = random_chance(&numbers, 40) ? 1 : 3;
        conv.stride = pick(1, 2);
        conv.dilation = random_chance(&numbers, 20) ? 2 : 1;
        conv.pad = pick(0, conv.kernel / 2);
        conv.result = conv.size + 2 * conv.pad - (conv.kernel - 1) * conv.dilation - 1;
    } while (conv.result < 0);
    conv.result = conv.result / conv.stride + 1;
    conv.x_last = random_chance(&numbers, 60);
    conv.y_last = random_chance(&numbers, 60);
    conv.biased = random_chance(&numbers, 50);
    conv.added = random_chance(&numbers, 40);
    conv.after = (enum convolve_after)pick(0, AFTER_COUNT - 1);
    conv.a = conv.after == AFTER_clip ? -0.5F : conv.after == AFTER_leaky_relu ? 0.25F : 0;
    conv.b = conv.after == AFTER_clip ? 1 : 0;
    random_floats(conv.x, MOST_ELEMENTS, (uint32_t)pick(1, 1000));
    random_floats(conv.w, MOST_WEIGHTS, (uint32_t)pick(1, 1000));
    random_floats(conv.bias, MOST_CHANNELS, (uint32_t)pick(1, 1000));
    random_floats(conv.more, MOST_ELEMENTS, (uint32_t)pick(1, 1000));
}

static int64_t at(bool last, int64_t channels, int64_t size, int64_t n, int64_t c, int64_t row,
                  int64_t column)
{
    return last ? ((n * size + row) * size + column) * channels + c
                : ((n * channels + c) * size + row) * size + column;
}

static double after(double x)
{
    const double swish = fmax(fmin(x / 6 + 0.5, 1), 0);
    switch (conv.after) {
    case AFTER_relu:
        return fmax(x, 0);
    case AFTER_clip:
        return fmin(fmax(x, (double)conv.a), (double)conv.b);
    case AFTER_leaky_relu:
        return x < 0 ? (double)conv.a * x : x;
    case AFTER_hard_swish:
        return x * swish;
    case AFTER_swish:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

static double sum_at(int64_t n, int64_t o, int64_t row, int64_t column)
{
    const int64_t each = conv.in / conv.groups, first = o / (conv.out / conv.groups) * each;
    double sum = conv.biased ? (double)conv.bias[o] : 0;
    for (int64_t c = 0; c < each; c++)
        for (int64_t k = 0; k < conv.kernel * conv.kernel; k++) {
            const int64_t y = row * conv.stride + k / conv.kernel * conv.dilation - conv.pad,
                          x = column * conv.stride + k % conv.kernel * conv.dilation - conv.pad;
            if (y >= 0 && y < conv.size && x >= 0 && x < conv.size)
                sum += (double)conv.x[at(conv.x_last, conv.in, conv.size, n, first + c, y, x)] *
                       (double)conv.w[(o * each + c) * conv.kernel * conv.kernel + k];
        }
    return sum;
}

static void image_dims(bool last, int64_t channels, int64_t size, int64_t *dims)
{
    const int64_t first[] = {conv.batch, channels, size, size},
                  other[] = {conv.batch, size, size, channels};
    memcpy(dims, last ? other : first, sizeof first);
}

static void add_operands(struct op_run *run)
{
    const int64_t w[] = {conv.out, conv.in / conv.groups, conv.kernel, conv.kernel};
    int64_t dims[4];
    image_dims(conv.x_last, conv.in, conv.size, dims);
    op_add(run, TSSA_FLOAT, 4, dims, conv.x);
    op_add(run, TSSA_FLOAT, 4, w, conv.w);
    if (conv.biased)
        op_add(run, TSSA_FLOAT, 1, &conv.out, conv.bias);
    else
        op_absent(run);
    image_dims(conv.y_last, conv.out, conv.result, dims);
    if (conv.added)
        op_add(run, TSSA_FLOAT, 4, dims, conv.more);
    else
        op_absent(run);
}

static void begin(struct op_run *run)
{
    const int64_t pads[] = {conv.pad, conv.pad, conv.pad, conv.pad};
    const int64_t strides[] = {conv.stride, conv.stride},
                  dilations[] = {conv.dilation, conv.dilation};
    op_begin(run, IR_OP_convolve, 0);
    op_ints(run, "pads", 4, pads);
    op_ints(run, "strides", 2, strides);
    op_ints(run, "dilations", 2, dilations);
    op_int(run, "group", conv.groups);
    op_int(run, CONVOLVE_X_LAST, conv.x_last);
    op_int(run, CONVOLVE_Y_LAST, conv.y_last);
    op_string(run, CONVOLVE_AFTER, convolve_after_name(conv.after));
    op_float(run, CONVOLVE_A, conv.a);
    op_float(run, CONVOLVE_B, conv.b);
}

static void compare(struct op_run *run)
{
    int64_t dims[4];
    image_dims(conv.y_last, conv.out, conv.result, dims);
    const float *y = op_output(run, 0, TSSA_FLOAT, 4, dims)->data;
    for (int64_t n = 0; n < conv.batch; n++)
        for (int64_t o = 0; o < conv.out; o++)
            for (int64_t i = 0; i < conv.result * conv.result; i++) {
                const int64_t row = i / conv.result, column = i % conv.result;
                const int64_t place = at(conv.y_last, conv.out, conv.result, n, o, row, column);
                const double more = conv.added ? (double)conv.more[place] : 0;
                expect_close((double)y[place], after(sum_at(n, o, row, column) + more), 1e-4, "y",
                             (size_t)place);
            }
}

static void test_all_of_it(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        pick_conv();
        begin(&run);
        add_operands(&run);
        if (round % 2)
            op_go(&run);
        else
            op_go_known(&run);
        compare(&run);
        op_close(&run);
    }
}

static void test_wrong_operands(void **state)
{
    struct op_run run;
    const int64_t one = 1;
    (void)state;
    pick_conv();
    conv.added = true;
    begin(&run);
    add_operands(&run);
    run.inputs[CONVOLVE_ADDED].tensor.dims[0] += one;
    op_fails(&run, "what is added does not have the result's shape");
    op_close(&run);
    begin(&run);
    op_string(&run, CONVOLVE_AFTER, "hum");
    add_operands(&run);
    op_fails(&run, "nothing that a convolution does is named \"hum\"");
    op_close(&run);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_of_it),
                                       cmocka_unit_test(test_wrong_operands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
