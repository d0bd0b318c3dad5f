/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by Winograd's algorithm against plain loops in double: channels first and last,
 * strips with a rest, several images in one, dilations, uneven pads, pieces of weights, what is
 * added and done to sums; and where it is not worth it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/cpu_engine.h"
#include "ir/convolve.h"

/* The algorithm adds what is up to about ten times as large as what comes of it. Tiles without
 * AVX-512, whose sums are not fused, are a bit further off. */
#define NEAR 1e-6
#define NEAR_OF_TILES 1.5e-6
#define EACH 7 /* every so manieth element is compared */

/* ---- What is right --------------------------------------------------------------------------- */

static int64_t place(const struct conv_problem *c, bool y, int64_t n, int64_t channel, int64_t row,
                     int64_t column)
{
    const int64_t *size = y ? c->out : c->in, channels = y ? c->out_channels : c->in_channels;
    return (y ? c->y_last : c->x_last)
               ? ((n * size[0] + row) * size[1] + column) * channels + channel
               : ((n * channels + channel) * size[0] + row) * size[1] + column;
}

static double sum_at(const struct conv_problem *c, const float *x, const float *w, int64_t n,
                     int64_t o, int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t i = 0; i < c->in_channels; i++)
        for (int64_t k = 0; k < 9; k++) {
            const int64_t at_row = row + k / 3 * c->dilation[0] - c->pad_begin[0],
                          at_column = column + k % 3 * c->dilation[1] - c->pad_begin[1];
            if (at_row >= 0 && at_row < c->in[0] && at_column >= 0 && at_column < c->in[1])
                sum += (double)x[place(c, false, n, i, at_row, at_column)] *
                       (double)w[(o * c->in_channels + i) * 9 + k];
        }
    return sum;
}

/* Numbers of what is done to sums. */
#define A (-0.75F)
#define B 1.5F

static double after(const struct conv_problem *c, double x)
{
    switch ((enum convolve_after)c->after) {
    case AFTER_relu:
        return fmax(x, 0);
    case AFTER_leaky_relu:
        return x < 0 ? (double)A * x : x;
    case AFTER_clip:
        return fmin(fmax(x, (double)A), (double)B);
    case AFTER_hard_swish:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case AFTER_swish:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

static void compare(const struct conv_problem *c, const float *x, const float *w, const float *bias,
                    const float *before, const float *y, double near)
{
    const int64_t pixels = c->out[0] * c->out[1], count = c->batch * c->out_channels * pixels;
    for (int64_t i = 0; i < count; i += EACH) {
        const int64_t n = i / pixels / c->out_channels, o = i / pixels % c->out_channels,
                      row = i % pixels / c->out[1], column = i % c->out[1],
                      at = place(c, true, n, o, row, column);
        double right = sum_at(c, x, w, n, o, row, column) + (c->biased ? (double)bias[o] : 0) +
                       (c->added ? (double)before[at] : 0);
        right = after(c, right);
        if (!(fabs((double)y[at] - right) <= near * (double)c->in_channels))
            fail_msg("element %lld: %g where %g is right", (long long)i, (double)y[at], right);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Twice, since the second run may not depend on what the first left behind. */
static void run_twice(const struct library_primitive *made, const struct library_call *call,
                      const float *before, size_t count)
{
    for (int i = 0; i < 2; i++) {
        memcpy(call->result.memory, before, count * sizeof *before);
        assert_true(made->table->run(made, NULL, call));
    }
}

/* The bytes of packed weights. */
static size_t check(struct cpu_engine *engine, struct conv_problem *c, bool expected)
{
    struct library_problem problem;
    for (int i = 0; i < 2; i++)
        c->out[i] = c->in[i] + c->pad_begin[i] + c->pad_end[i] - 2 * c->dilation[i];
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_CONV;
    problem.dtype = TSSA_FLOAT;
    problem.threads = engine->provider->threads(2);
    problem.conv = *c;
    struct library_primitive *made = engine->provider->make(engine, &problem);
    /* Channels last may be what oneDNN only does as a matrix product. */
    if (!made && isa_level() < (expected ? ISA_V3 : ISA_V4))
        return 0;
    assert_non_null(made);
    const size_t packed_bytes = made->packed_bytes;
    const bool by_winograd = strstr(made->name, "wino") != NULL;
    assert_true(expected || !by_winograd);
    /* Without AVX-512, of channels that are the last axis alone. */
    assert_true(by_winograd || !expected || isa_level() < ISA_V3 ||
                (isa_level() == ISA_V3 && !(c->x_last && c->y_last)));
    const size_t results = (size_t)(c->batch * c->out_channels * c->out[0] * c->out[1]);
    float *x = engine_floats((size_t)(c->batch * c->in_channels * c->in[0] * c->in[1]), 1),
          *w = engine_floats((size_t)(c->out_channels * c->in_channels * 9), 2),
          *bias = engine_floats((size_t)c->out_channels, 3), *before = engine_floats(results, 4),
          *y = engine_floats(results, 5), *packed = engine_floats(made->packed_bytes / 4, 6),
          *scratch = engine_floats(made->scratch_bytes / 4, 7);
    memset(scratch, 0xff, made->scratch_bytes); /* NaN everywhere */
    assert_true(made->table->pack(made, w, packed, scratch));
    const struct library_call call = {
        .operands = {engine_place(x), engine_place(packed), engine_place(c->biased ? bias : NULL)},
        .result = engine_place(y),
        .scratch = engine_place(scratch)};
    run_twice(made, &call, before, results);
    compare(c, x, w, bias, before, y, strstr(made->name, "tiles") ? NEAR_OF_TILES : NEAR);
    made->table->release(made);
    float *all[] = {x, w, bias, before, y, packed, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return packed_bytes;
}

static struct conv_problem square(int64_t in_channels, int64_t out_channels, int64_t size)
{
    return (struct conv_problem){.rank = 2,
                                 .batch = 1,
                                 .groups = 1,
                                 .in_channels = in_channels,
                                 .out_channels = out_channels,
                                 .in = {size, size},
                                 .kernel = {3, 3},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .pad_begin = {1, 1},
                                 .pad_end = {1, 1},
                                 .x_last = 1,
                                 .y_last = 1,
                                 .winograd = 1};
}

static void test_layouts_and_what_is_done_to_sums(void **state)
{
    struct cpu_engine *engine = engine_open();
    (void)state;
    for (int i = 0; i < 16; i++) {
        struct conv_problem c = square(64, 80, 20);
        c.x_last = i & 1;
        c.y_last = i >> 1 & 1;
        c.biased = i >> 2 & 1;
        c.added = c.y_last && (i & 8);
        c.after = i & 8 ? AFTER_relu : AFTER_NOTHING;
        check(engine, &c, true);
    }
    engine->provider->close(engine);
}

static void test_all_that_is_done_to_sums(void **state)
{
    struct cpu_engine *engine = engine_open();
    const float numbers[] = {A, B};
    int32_t bits[2];
    (void)state;
    memcpy(bits, numbers, sizeof bits);
    for (int i = AFTER_NOTHING; i < AFTER_COUNT; i++) {
        struct conv_problem c = square(64, i % 2 ? 80 : 96, 21);
        c.biased = i % 2;
        c.added = i % 3 == 0;
        c.after = i;
        c.a = bits[0];
        c.b = bits[1];
        check(engine, &c, true);
    }
    engine->provider->close(engine);
}

/* More pixels than a strip has, with a rest; and images of which several are one. */
static void test_strips(void **state)
{
    static const int64_t sizes[][3] = {
        {1, 67, 50}, {1, 41, 99}, {3, 18, 19}, {5, 12, 13}, {2, 45, 45}};
    struct cpu_engine *engine = engine_open();
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int last = 0; last < 2; last++) {
            struct conv_problem c = square(64, 64, 0);
            c.batch = sizes[i][0];
            c.in[0] = sizes[i][1];
            c.in[1] = sizes[i][2];
            c.x_last = c.y_last = last;
            c.added = last;
            check(engine, &c, true);
        }
    engine->provider->close(engine);
}

static void test_dilations_and_pads(void **state)
{
    static const int64_t cases[][7] = {{2, 2, 2, 2, 2, 2, 33},
                                       {3, 1, 3, 0, 1, 3, 40},
                                       {1, 4, 0, 5, 4, 0, 50},
                                       {1, 1, 2, 0, 0, 2, 24},
                                       {4, 4, 4, 4, 4, 4, 48}};
    struct cpu_engine *engine = engine_open();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conv_problem c = square(64, 64, cases[i][6]);
        for (int k = 0; k < 2; k++) {
            c.dilation[k] = cases[i][k];
            c.pad_begin[k] = cases[i][2 + k];
            c.pad_end[k] = cases[i][4 + k];
        }
        c.batch = 1 + (int64_t)i % 2;
        c.added = i % 2;
        check(engine, &c, true);
    }
    engine->provider->close(engine);
}

/* Weights that are large beside images are spread in each run, a piece of the results' channels at
 * a time, and kept as they are until then, with zeros where channels do not fill the last piece. */
static void test_pieces(void **state)
{
    static const int64_t sizes[][4] = {
        {320, 288, 20, 288}, {320, 291, 19, 336}, {416, 224, 18, 240}, {288, 320, 18, 336}};
    struct cpu_engine *engine = engine_open();
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct conv_problem c = square(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (int k = 0; k < 2 && i == 2; k++)
            c.dilation[k] = c.pad_begin[k] = c.pad_end[k] = 2;
        c.batch = i == 3 ? 2 : 1;
        c.biased = i % 2;
        c.added = i == 1;
        c.after = i == 3 ? AFTER_swish : AFTER_relu;
        const size_t packed = check(engine, &c, true);
        if (isa_level() == ISA_V3)
            assert_int_equal(packed, sizes[i][0] * sizes[i][3] * 9 * (int64_t)sizeof(float));
    }
    engine->provider->close(engine);
}

/* Few channels or pixels, pictures with short sides, weights that grow too much, and where it is
 * not allowed. */
static void test_declined(void **state)
{
    struct cpu_engine *engine = engine_open();
    (void)state;
    struct conv_problem few = square(isa_level() == ISA_V3 ? 16 : 32, 64, 20),
                        odd = square(72, 64, 20),
                        small = square(64, 64, isa_level() == ISA_V3 ? 13 : 14),
                        short_sides = square(64, 64, 30), refused = square(64, 64, 20);
    for (int i = 0; i < 2; i++)
        short_sides.dilation[i] = short_sides.pad_begin[i] = short_sides.pad_end[i] = 6;
    refused.winograd = 0;
    struct conv_problem *all[] = {&few, &odd, &small, &short_sides, &refused};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(engine, all[i], false);
    engine->provider->close(engine);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts_and_what_is_done_to_sums),
        cmocka_unit_test(test_all_that_is_done_to_sums),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_dilations_and_pads),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
