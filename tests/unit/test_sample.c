/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling between elements: GridSample, DeformConv, RoiAlign. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_numbers.h"
#include "kernels/cpu/lib/sample.h"

/* ---- Points ---------------------------------------------------------------------------------- */

static double at(enum sample_mode mode, enum sample_padding padding, bool corners, double x)
{
    static const double line[4] = {10, 20, 40, 80};
    struct sample_axis axis;
    sample_axis_init(&axis, mode, padding, corners, x, 4, 1);
    return sample_doubles_at(line, &axis, 1);
}

static void test_points(void **state)
{
    (void)state;
    static const struct {
        enum sample_mode mode;
        enum sample_padding padding;
        bool corners;
        double x, y;
    } cases[] = {
        {SAMPLE_LINEAR, SAMPLE_ZEROS, false, 1.25, 25},
        {SAMPLE_LINEAR, SAMPLE_ZEROS, false, -0.25, 7.5},
        {SAMPLE_LINEAR, SAMPLE_ZEROS, false, 3.75, 20},
        {SAMPLE_LINEAR, SAMPLE_ZEROS, false, 1e300, 0},
        {SAMPLE_LINEAR, SAMPLE_ZEROS, false, -INFINITY, 0},
        {SAMPLE_LINEAR, SAMPLE_BORDER, false, -7, 10},
        {SAMPLE_LINEAR, SAMPLE_BORDER, false, INFINITY, 80},
        {SAMPLE_LINEAR, SAMPLE_BORDER, false, 3.25, 80},
        /* Around the centers of the outer elements, or half an element further out. */
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, true, -1.5, 30},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, true, 4, 40},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, true, 7.5, 30},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, false, -1.5, 15},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, false, 4, 80},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, false, 6.5, 15},
        {SAMPLE_LINEAR, SAMPLE_REFLECTION, false, INFINITY, 10},
        {SAMPLE_NEAREST, SAMPLE_ZEROS, false, 0.5, 10},
        {SAMPLE_NEAREST, SAMPLE_ZEROS, false, 1.5, 40},
        {SAMPLE_NEAREST, SAMPLE_ZEROS, false, 3.6, 0},
        {SAMPLE_NEAREST, SAMPLE_REFLECTION, false, 4.2, 80},
        {SAMPLE_CUBIC, SAMPLE_BORDER, false, 2, 40},
        {SAMPLE_CUBIC, SAMPLE_BORDER, false, 1.5, -0.09375 * 90 + 0.59375 * 60},
        {SAMPLE_CUBIC, SAMPLE_ZEROS, false, 0.5, -0.09375 * 40 + 0.59375 * 30},
        {SAMPLE_CUBIC, SAMPLE_REFLECTION, true, 0.5, -0.09375 * 60 + 0.59375 * 30},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_close(at(cases[i].mode, cases[i].padding, cases[i].corners, cases[i].x), cases[i].y,
                     1e-14, "case", i);
    assert_true(at(SAMPLE_LINEAR, SAMPLE_BORDER, false, NAN) == 10);
    assert_true(at(SAMPLE_NEAREST, SAMPLE_REFLECTION, true, NAN) == 10);
    /* One element: reflection has nowhere to go. */
    struct sample_axis axis;
    const double one = 7;
    sample_axis_init(&axis, SAMPLE_CUBIC, SAMPLE_REFLECTION, true, 5, 1, 1);
    expect_close(sample_doubles_at(&one, &axis, 1), 7, 1e-14, "one", 0);
}

/* ---- GridSample ------------------------------------------------------------------------------ */

/*
 * A grid that names every element's center gives the elements, in each mode; x comes first in it.
 */
static void test_grid(void **state)
{
    (void)state;
    static const char *const names[] = {"nearest", "linear", "cubic"};
    enum { C = 3, H = 2, W = 5 };
    float x[C * H * W], grid[H * W * 2];
    random_floats(x, C * H * W, 1);
    for (int corners = 0; corners < 2; corners++) {
        for (int i = 0; i < H * W; i++) {
            float col = (float)(i % W), row = (float)(i / W);
            grid[2 * i] = corners ? 2 * col / (W - 1) - 1 : (2 * col + 1) / W - 1;
            grid[2 * i + 1] = corners ? 2 * row / (H - 1) - 1 : (2 * row + 1) / H - 1;
        }
        for (int mode = 0; mode < 3; mode++) {
            struct op_run t;
            op_begin(&t, IR_OP_GridSample, 0);
            op_string(&t, "mode", names[mode]);
            op_int(&t, "align_corners", corners);
            op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, C, H, W}, x);
            op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, H, W, 2}, grid);
            op_go(&t);
            for (size_t i = 0; i < C * H * W; i++)
                expect_close((double)((float *)t.outputs[0].tensor.data)[i], (double)x[i], 2e-6,
                             "y", i);
            op_close(&t);
        }
    }
}

static const enum sample_mode modes[] = {SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC};
static const enum sample_padding paddings[] = {SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION};
static const char *const mode_names[] = {"nearest", "linear", "cubic"};
static const char *const padding_names[] = {"zeros", "border", "reflection"};

/* A point of a plane, from `base` on: the definition of sample.h, in the type that elements are
 * computed in. */
static double point(const struct tensor *x, const struct sample_axis *axes, int rank, int64_t base)
{
    double sum = 0;
    if (rank == 0)
        return op_number(x, base);
    for (int i = 0; i < axes->count; i++)
        if (axes->offsets[i] >= 0) {
            double element = point(x, axes + 1, rank - 1, base + axes->offsets[i]);
            double product = op_rounded(x->dtype, axes->weights[i]) * element;
            sum = op_rounded(x->dtype, sum + op_rounded(x->dtype, product));
        }
    return sum;
}

/* Of a grid of float32, in which coordinates are made. */
static void grid_point(const float *grid, int rank, const int64_t *sizes, int round,
                       struct sample_axis *axes)
{
    const bool corners = round % 2;
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        float n = grid[rank - 1 - d], size = (float)sizes[d];
        float x = corners ? (n + 1) / 2 * (size - 1) : ((n + 1) * size - 1) / 2;
        sample_axis_init(&axes[d], modes[round % 3], paddings[round / 3 % 3], corners, (double)x,
                         sizes[d], stride);
        stride *= sizes[d];
    }
}

/* Points inside, at the edge, far away and nowhere; values that are no numbers, and zeros of both
 * signs. */
static void test_grid_bits(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    struct random random = {5};
    enum { POINTS = 2 * 30 * 5 };
    (void)state;
    for (int round = 0; round < 400; round++) {
        const int rank = round % 4 ? 2 : (int)random_int(&random, 1, 3);
        int64_t sizes[5] = {random_int(&random, 1, 2), random_int(&random, 1, 19)};
        int64_t points[5] = {sizes[0], random_int(&random, 1, 30), 5, 1};
        float grid[POINTS * 3];
        struct team team;
        struct op_run t;
        for (int i = 0; i < rank; i++)
            sizes[2 + i] = random_int(&random, 1, 8);
        if (rank == 1)
            points[2] = 1;
        points[rank + 1] = rank;
        random_floats(grid, POINTS * 3, (uint32_t)round + 1);
        for (int i = 0; i < POINTS * 3; i++) {
            int64_t special = random_int(&random, 0, 60);
            grid[i] *= round % 2 ? 1.5f : 1;
            grid[i] = special == 0   ? NAN
                      : special == 1 ? 1e30f
                      : special == 2 ? -INFINITY
                                     : grid[i];
        }
        op_begin(&t, IR_OP_GridSample, 0);
        op_string(&t, "mode", mode_names[round % 3]);
        op_string(&t, "padding_mode", padding_names[round / 3 % 3]);
        op_int(&t, "align_corners", round % 2);
        const struct tensor *x =
            op_add_numbers(&t, &random, dtypes[random_int(&random, 0, 3)], rank + 2, sizes);
        for (int i = 0; i < 3; i++) {
            int64_t special = random_int(&random, 0, (int64_t)tensor_count(x) - 1);
            char *to = (char *)x->data + (size_t)special * dtype_info(x->dtype)->size;
            dtype_store_double(x->dtype, to, i ? NAN : INFINITY);
        }
        op_add(&t, TSSA_FLOAT, rank + 2, points, grid);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        op_go(&t);
        const struct tensor *y = &t.outputs[0].tensor;
        int64_t plane = 1, count = (int64_t)tensor_count(y), each = count / (sizes[0] * sizes[1]);
        for (int i = 0; i < rank; i++)
            plane *= sizes[2 + i];
        for (int64_t i = 0; i < count; i++) {
            struct sample_axis axes[3];
            int64_t batch = i / each / sizes[1];
            grid_point(grid + (batch * each + i % each) * rank, rank, sizes + 2, round, axes);
            op_expect_number(y, i, point(x, axes, rank, i / each * plane));
        }
        op_close(&t);
    }
}

/* It says what is wanted, also where both operands are alike. */
static void test_grid_explains(void **state)
{
    (void)state;
    static const float x[20] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_GridSample, 0);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){10, 2}, x);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){10, 2}, x);
    op_fails(&t, "operand 0 is f32[10, 2], not a tensor of batches, channels and spatial axes");
    op_close(&t);
    op_begin(&t, IR_OP_GridSample, 0);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 3}, x);
    op_fails(&t, "operand 1 is f32[1, 1, 2, 3], not floats of rank 4 that start with 1");
    op_close(&t);
}

static void test_grid_refuses(void **state)
{
    (void)state;
    float x[16] = {0};
    for (int i = 0; i < 3; i++) {
        struct op_run t;
        op_begin(&t, IR_OP_GridSample, 0);
        if (i == 0)
            op_string(&t, "mode", "quintic");
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){i == 1 ? 2 : 1, 1, 2, i == 2 ? 3 : 2}, x);
        op_fails(&t, "");
        op_close(&t);
    }
}

/* ---- DeformConv ------------------------------------------------------------------------------ */

enum { IN = 4, OUT = 6, GROUPS = 2, OFFSET_GROUPS = 2, H = 5, W = 4, KH = 2, KW = 3 };
enum { OH = 3, OW = 2, K = KH * KW };

static double plane_at(const float *plane, double row, double column)
{
    double sum = 0;
    for (int i = 0; i < H * W; i++) {
        double wy = 1 - fabs(row - i / W), wx = 1 - fabs(column - i % W);
        if (wy > 0 && wx > 0)
            sum += wy * wx * (double)plane[i];
    }
    return sum;
}

/* Strides 2 and 1, one row of padding at the top and bottom. */
static double deformed(const float *x, const float *w, const float *offsets, const float *mask,
                       int out, int position)
{
    double sum = 0;
    for (int c = 0; c < IN / GROUPS; c++)
        for (int k = 0; k < K; k++) {
            int channel = out / (OUT / GROUPS) * (IN / GROUPS) + c;
            int row = channel / (IN / OFFSET_GROUPS) * K + k;
            double dy = (double)offsets[(2 * row) * OH * OW + position];
            double dx = (double)offsets[(2 * row + 1) * OH * OW + position];
            double y = position / OW * 2 - 1 + k / KW + dy, z = position % OW + k % KW + dx;
            sum += plane_at(x + channel * H * W, y, z) * (double)mask[row * OH * OW + position] *
                   (double)w[(out * (IN / GROUPS) + c) * K + k];
        }
    return sum;
}

static void test_deform(void **state)
{
    (void)state;
    float x[IN * H * W], w[OUT * IN / GROUPS * K], bias[OUT];
    float offsets[OFFSET_GROUPS * K * 2 * OH * OW], mask[OFFSET_GROUPS * K * OH * OW];
    random_floats(x, sizeof x / sizeof *x, 1);
    random_floats(w, sizeof w / sizeof *w, 2);
    random_floats(offsets, sizeof offsets / sizeof *offsets, 3);
    random_floats(mask, sizeof mask / sizeof *mask, 4);
    random_floats(bias, OUT, 5);
    struct op_run t;
    op_begin(&t, IR_OP_DeformConv, 0);
    op_int(&t, "group", GROUPS);
    op_int(&t, "offset_group", OFFSET_GROUPS);
    op_ints(&t, "strides", 2, (const int64_t[]){2, 1});
    op_ints(&t, "pads", 4, (const int64_t[]){1, 0, 1, 0});
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, IN, H, W}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){OUT, IN / GROUPS, KH, KW}, w);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, OFFSET_GROUPS * K * 2, OH, OW}, offsets);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){OUT}, bias);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, OFFSET_GROUPS * K, OH, OW}, mask);
    op_go(&t);
    for (int i = 0; i < OUT * OH * OW; i++)
        expect_close((double)((float *)t.outputs[0].tensor.data)[i],
                     (double)bias[i / (OH * OW)] +
                         deformed(x, w, offsets, mask, i / (OH * OW), i % (OH * OW)),
                     1e-6, "y", (size_t)i);
    op_close(&t);

    op_begin(&t, IR_OP_DeformConv, 0); /* offsets for another output size */
    op_int(&t, "group", GROUPS);
    op_int(&t, "offset_group", OFFSET_GROUPS);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, IN, H, W}, x);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){OUT, IN / GROUPS, KH, KW}, w);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, OFFSET_GROUPS * K * 2, OH, OW}, offsets);
    op_fails(&t, "a number per offset and position");
    op_close(&t);
}

struct deform {
    int rank;
    int64_t groups, offset_groups, in_channels, out_channels; /* of all groups */
    int64_t in[3], out[3], kernel[3];
};

/* The sample that output `at` has of an input channel at kernel position k, times its mask. */
static double deform_sample(const struct deform *d, const struct tensor *x,
                            const struct tensor *offsets, const struct tensor *mask,
                            int64_t channel, int64_t k, int64_t at)
{
    int64_t o[3], position[3], plane = 1, size = 1, taps = 1, stride = 1;
    struct sample_axis axes[3];
    for (int i = 0; i < d->rank; i++) {
        plane *= d->in[i];
        size *= d->out[i];
        taps *= d->kernel[i];
    }
    unflatten(d->rank, d->out, at, o);
    unflatten(d->rank, d->kernel, k, position);
    const int64_t row = channel / (d->in_channels / d->offset_groups) * taps + k;
    for (int i = d->rank - 1; i >= 0; i--) {
        double place = (double)(o[i] * 2 + position[i] - 1) +
                       op_number(offsets, (row * d->rank + i) * size + at);
        sample_axis_init(&axes[i], SAMPLE_LINEAR, SAMPLE_ZEROS, true, place, d->in[i], stride);
        stride *= d->in[i];
    }
    double sample = point(x, axes, d->rank, channel * plane);
    return mask ? op_rounded(x->dtype, sample * op_number(mask, row * size + at)) : sample;
}

/* Strides of 2, a pad of 1 at the start; more terms than 64 and fewer. */
static void test_deform_bits(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    static double terms[1000];
    struct random random = {29};
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct deform d = {.rank = round % 4 ? 2 : (int)random_int(&random, 1, 3),
                           .groups = random_int(&random, 1, 2),
                           .offset_groups = random_int(&random, 1, 2)};
        const tssa_dtype dtype = dtypes[random_int(&random, 0, 3)];
        const bool masked = round % 3;
        int64_t dims[5] = {1}, taps = 1, size = 1;
        int64_t strides[3] = {2, 2, 2}, pads[6] = {0};
        struct team team;
        struct op_run t;
        d.in_channels = 2 * random_int(&random, 1, round % 5 ? 3 : 12);
        d.out_channels = d.groups * random_int(&random, 1, 3);
        for (int i = 0; i < d.rank; i++) {
            d.kernel[i] = random_int(&random, 1, 3);
            d.in[i] = random_int(&random, 3, 12);
            d.out[i] = (d.in[i] + 1 - d.kernel[i]) / 2 + 1;
            pads[i] = 1;
            taps *= d.kernel[i];
            size *= d.out[i];
        }
        op_begin(&t, IR_OP_DeformConv, 0);
        op_int(&t, "group", d.groups);
        op_int(&t, "offset_group", d.offset_groups);
        op_ints(&t, "strides", (size_t)d.rank, strides);
        op_ints(&t, "pads", 2 * (size_t)d.rank, pads);
        dims[1] = d.in_channels;
        memcpy(dims + 2, d.in, sizeof d.in);
        const struct tensor *x = op_add_numbers(&t, &random, dtype, d.rank + 2, dims);
        dims[0] = d.out_channels;
        dims[1] = d.in_channels / d.groups;
        memcpy(dims + 2, d.kernel, sizeof d.kernel);
        const struct tensor *w = op_add_numbers(&t, &random, dtype, d.rank + 2, dims);
        dims[0] = 1;
        dims[1] = d.offset_groups * taps * d.rank;
        memcpy(dims + 2, d.out, sizeof d.out);
        const struct tensor *offsets = op_add_numbers(&t, &random, dtype, d.rank + 2, dims);
        const struct tensor *bias = op_add_numbers(&t, &random, dtype, 1, &d.out_channels);
        const struct tensor *mask = NULL;
        dims[1] = d.offset_groups * taps;
        if (masked)
            mask = op_add_numbers(&t, &random, dtype, d.rank + 2, dims);
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        const int64_t n = d.in_channels / d.groups * taps;
        for (int64_t i = 0; i < d.out_channels * size; i++) {
            int64_t o = i / size, first = o / (d.out_channels / d.groups) * n;
            for (int64_t k = 0; k < n; k++)
                terms[k] =
                    op_rounded(dtype, op_number(w, o * n + k) * deform_sample(&d, x, offsets, mask,
                                                                              (first + k) / taps,
                                                                              k % taps, i % size));
            op_expect_number(&t.outputs[0].tensor, i,
                             op_rounded(dtype, op_sum(dtype, terms, n) + op_number(bias, o)));
        }
        op_close(&t);
    }
}

/* ---- RoiAlign -------------------------------------------------------------------------------- */

/* On a plane that is linear in both axes, a bin's average is the value at its center. */
static void test_roi(void **state)
{
    (void)state;
    enum { SIZE = 12, BINS = 3 };
    float x[2 * SIZE * SIZE];
    for (int i = 0; i < 2 * SIZE * SIZE; i++) {
        int row = i / SIZE % SIZE, column = i % SIZE;
        x[i] = i < SIZE * SIZE ? 0.0f : (float)(100 * row + column);
    }
    const float rois[4] = {4, 2, 16, 20}; /* x1, y1, x2, y2, at half scale */
    const int64_t item = 1;
    for (int half = 0; half < 2; half++) {
        struct op_run t;
        op_begin(&t, IR_OP_RoiAlign, 0);
        op_string(&t, "coordinate_transformation_mode", half ? "half_pixel" : "output_half_pixel");
        op_int(&t, "output_height", BINS);
        op_int(&t, "output_width", BINS);
        op_float(&t, "spatial_scale", 0.5f);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){2, 1, SIZE, SIZE}, x);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){1, 4}, rois);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &item);
        op_go(&t);
        for (int i = 0; i < BINS * BINS; i++) {
            double row = 1 + (i / BINS + 0.5) * 3 - 0.5 * half;
            double column = 2 + (i % BINS + 0.5) * 2 - 0.5 * half;
            expect_close((double)((float *)t.outputs[0].tensor.data)[i], 100 * row + column, 1e-6,
                         "y", (size_t)i);
        }
        op_close(&t);
    }
}

/* One sample along an axis: two elements and the second one's weight; false: beyond the input. */
static bool roi_place(double start, double bin, int64_t size, int64_t b, int64_t s, int64_t samples,
                      int64_t *at, double *weight)
{
    double x = start + (double)b * bin + ((double)s + 0.5) * bin / (double)samples;
    if (x < -1 || x > (double)size)
        return false;
    x = fmin(fmax(x, 0), (double)(size - 1));
    at[0] = (int64_t)x;
    at[1] = at[0] + 1 < size ? at[0] + 1 : at[0];
    *weight = x - (double)at[0];
    return true;
}

struct roi_case {
    double start[2], bin[2];
    int64_t sizes[2], samples; /* of a bin along an axis */
    bool max;
};

static double roi_expected(const struct roi_case *r, const struct tensor *x, int64_t plane,
                           int64_t bin_y, int64_t bin_x)
{
    double bin = 0;
    for (int64_t i = 0; i < r->samples * r->samples; i++) {
        int64_t y[2], z[2];
        double wy, wx, sample = 0;
        if (roi_place(r->start[0], r->bin[0], r->sizes[0], bin_y, i / r->samples, r->samples, y,
                      &wy) &&
            roi_place(r->start[1], r->bin[1], r->sizes[1], bin_x, i % r->samples, r->samples, z,
                      &wx))
            for (int k = 0; k < 4; k++) {
                double weight = (k / 2 ? wy : 1 - wy) * (k % 2 ? wx : 1 - wx);
                double v = op_number(x, (plane * r->sizes[0] + y[k / 2]) * r->sizes[1] + z[k % 2]);
                v = op_rounded(x->dtype, op_rounded(x->dtype, weight) * v);
                sample = k == 0   ? v
                         : r->max ? (v > sample ? v : sample)
                                  : op_rounded(x->dtype, sample + v);
            }
        if (!r->max)
            bin = op_rounded(x->dtype, bin + sample);
        else if (i == 0 || sample > bin)
            bin = sample;
    }
    return r->max ? bin : op_rounded(x->dtype, bin / (double)(r->samples * r->samples));
}

/* Regions inside and partly outside, many samples and few; any float type. */
static void test_roi_bits(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    enum { BINS = 3 };
    struct random random = {23};
    (void)state;
    for (int round = 0; round < 200; round++) {
        tssa_dtype dtype = dtypes[random_int(&random, 0, 3)];
        const int64_t dims[4] = {1, random_int(&random, 1, 9), random_int(&random, 1, 9),
                                 random_int(&random, 1, 9)};
        struct roi_case r = {.sizes = {dims[2], dims[3]},
                             .samples = round % 20 ? random_int(&random, 1, 3) : 70,
                             .max = round % 3 == 0};
        double corners[4];
        char rois[4 * sizeof(double)];
        for (int i = 0; i < 4; i++) { /* x1, y1, x2, y2 */
            corners[i] = (double)random_int(&random, -8, 40) / 4 + (i < 2 ? 0 : 3);
            dtype_store_double(dtype, rois + (size_t)i * dtype_info(dtype)->size, corners[i]);
        }
        for (int i = 0; i < 2; i++) {
            r.start[i] = corners[1 - i] - 0.5;
            r.bin[i] = (corners[3 - i] - 0.5 - r.start[i]) / BINS;
        }
        const int64_t item = 0;
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_RoiAlign, 0);
        op_string(&t, "mode", r.max ? "max" : "avg");
        op_int(&t, "output_height", BINS);
        op_int(&t, "output_width", BINS);
        op_int(&t, "sampling_ratio", r.samples);
        const struct tensor *x = op_add_numbers(&t, &random, dtype, 4, dims);
        op_add(&t, dtype, 2, (const int64_t[]){1, 4}, rois);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &item);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        op_go(&t);
        for (int64_t i = 0; i < dims[1] * BINS * BINS; i++)
            op_expect_number(&t.outputs[0].tensor, i,
                             roi_expected(&r, x, i / (BINS * BINS), i / BINS % BINS, i % BINS));
        op_close(&t);
    }
}

enum { NAN_SIDE = 3, NAN_BINS = 4 };

/* Which bins of two regions are NaN where element number `at` is. */
static unsigned roi_nans(tssa_dtype dtype, const char *mode, int64_t at)
{
    char x[NAN_SIDE * NAN_SIDE * sizeof(double)], rois[8 * sizeof(double)];
    static const double corners[8] = {-3, -2, 4.5, 4.5, -3, -2, 3.5, 3.5};
    const int64_t items[2] = {0, 0};
    unsigned nans = 0;
    struct op_run t;
    for (size_t i = 0; i < NAN_SIDE * NAN_SIDE; i++)
        dtype_store_double(dtype, x + i * dtype_info(dtype)->size, (int64_t)i == at ? NAN : -1);
    for (size_t i = 0; i < 8; i++)
        dtype_store_double(dtype, rois + i * dtype_info(dtype)->size, corners[i]);
    op_begin(&t, IR_OP_RoiAlign, 0);
    op_string(&t, "mode", mode);
    op_int(&t, "output_height", NAN_BINS);
    op_int(&t, "output_width", NAN_BINS);
    op_int(&t, "sampling_ratio", 2);
    op_add(&t, dtype, 4, (const int64_t[]){1, 1, NAN_SIDE, NAN_SIDE}, x);
    op_add(&t, dtype, 2, (const int64_t[]){2, 4}, rois);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){2}, items);
    op_go(&t);
    for (int64_t i = 0; i < 2 * NAN_BINS * NAN_BINS; i++)
        nans |= (unsigned)isnan(op_number(&t.outputs[0].tensor, i)) << i;
    op_close(&t);
    return nans;
}

/* What is no number goes where comparisons one after the other take it, in lanes as well. */
static void test_roi_nans(void **state)
{
    unsigned any = 0, all = ~0U;
    (void)state;
    for (int max = 0; max < 2; max++)
        for (int64_t at = 0; at < NAN_SIDE * NAN_SIDE; at++) {
            const char *mode = max ? "max" : "avg";
            const unsigned nans = roi_nans(TSSA_DOUBLE, mode, at);
            assert_int_equal(roi_nans(TSSA_FLOAT, mode, at), nans);
            any |= max ? nans : 0;
            all &= max ? nans : ~0U;
        }
    assert_true(any && !all);
}

static void roi_refused(const float *roi, int64_t item, int64_t height)
{
    float x[4] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_RoiAlign, 0);
    op_int(&t, "output_height", height);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){1, 4}, roi);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &item);
    op_fails(&t, "");
    op_close(&t);
}

static void test_roi_refuses(void **state)
{
    (void)state;
    const float good[4] = {0, 0, 1, 1}, huge[4] = {0, 0, 1e30f, 1}, nan[4] = {NAN, 0, 1, 1};
    roi_refused(good, 1, 1);
    roi_refused(good, -1, 1);
    roi_refused(good, 0, 0);
    roi_refused(huge, 0, 1);
    roi_refused(nan, 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),       cmocka_unit_test(test_grid),
        cmocka_unit_test(test_grid_bits),    cmocka_unit_test(test_grid_explains),
        cmocka_unit_test(test_grid_refuses), cmocka_unit_test(test_deform),
        cmocka_unit_test(test_roi),          cmocka_unit_test(test_roi_refuses),
        cmocka_unit_test(test_roi_bits),     cmocka_unit_test(test_deform_bits),
        cmocka_unit_test(test_roi_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
