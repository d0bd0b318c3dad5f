/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions of bytes in 16 bits against plain loops: all sums are exact, whatever
 * threads there are: OpenMP's, whose barriers ThreadSanitizer does not know. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "device/cpu/bytes/bytes.h"
#include "device/cpu/bytes/winograd.h"

#define MOST_THREADS 4
#define MOST_BIAS 100000
#define MOST_SUM_OF(terms, weight) ((terms)*255 * (weight) + MOST_BIAS)

static uint64_t seed = 1;

static int64_t pick(int64_t low, int64_t high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

/* In memory of just that size. `extreme`: of the two ends alone, where sums are largest. */
static uint8_t *random_bytes(int64_t count, bool extreme)
{
    uint8_t *bytes = malloc((size_t)count);
    assert_non_null(bytes);
    const int64_t flip = pick(0, 1) ? 128 : 0;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(extreme ? (pick(0, 7) ? 255 : 0) ^ flip : pick(0, 255));
    return bytes;
}

static struct device_place at(const void *memory)
{
    return (struct device_place){(void *)(uintptr_t)memory, 0};
}

static int32_t value_of(int64_t dtype, uint8_t byte)
{
    return dtype == TSSA_INT8 ? (int8_t)byte : byte;
}

static void *aligned_bytes(size_t bytes)
{
    void *memory =
        aligned_alloc(LIBRARY_ALIGNMENT, (bytes / LIBRARY_ALIGNMENT + 1) * LIBRARY_ALIGNMENT);
    assert_non_null(memory);
    memset(memory, 0xA5, bytes);
    return memory;
}

/* Runs the problem with so many threads; `weights` as they are given. */
static void run(struct library_problem *problem, int64_t threads, const void *x,
                const void *weights, const void *bias, void *y)
{
    problem->threads = threads;
    struct library_primitive *made = bytes_make(problem);
    assert_non_null(made);
    void *packed = aligned_bytes(made->packed_bytes), *scratch = aligned_bytes(made->scratch_bytes);
    struct library_call call = {
        .operands = {at(x), at(weights), at(bias)}, .result = at(y), .scratch = at(scratch)};
    if (made->packed_bytes) {
        assert_true(made->table->same_packing(made, made));
        assert_true(made->table->pack(made, weights, packed, scratch));
        call.operands[LIBRARY_WEIGHTS] = at(packed);
    }
    assert_true(made->table->run(made, NULL, &call));
    made->table->release(made);
    free(packed);
    free(scratch);
}

/* Results of `size` bytes in all, of one thread up to MOST_THREADS. */
static void check(struct library_problem *problem, const void *x, const void *weights,
                  const void *bias, const void *expected, size_t size)
{
    uint8_t *y = malloc(size + 1);
    assert_non_null(y);
    for (int64_t threads = 1; threads <= MOST_THREADS; threads++) {
        memset(y, 0x5A, size + 1);
        run(problem, threads, x, weights, bias, y);
        assert_int_equal(y[size], 0x5A);
        assert_memory_equal(y, expected, size);
    }
    free(y);
}

/* ---- Products -------------------------------------------------------------------------------- */

static void check_product(struct library_problem *problem, bool extreme)
{
    const struct matmul_problem *p = &problem->matmul;
    const int64_t a_count = (p->m - 1) * p->a_row + (p->k - 1) * p->a_column + 1,
                  b_count = (p->k - 1) * p->b_row + (p->n - 1) * p->b_column + 1;
    uint8_t *a = random_bytes(a_count, extreme), *b = random_bytes(b_count, extreme);
    int32_t *sums = calloc((size_t)(p->m * p->n), sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            for (int64_t k = 0; k < p->k; k++)
                sums[i * p->n + j] +=
                    (value_of(problem->dtype, a[i * p->a_row + k * p->a_column]) -
                     (int32_t)p->a_zero) *
                    ((int8_t)b[k * p->b_row + j * p->b_column] - (int32_t)p->b_zero);
    check(problem, a, b, NULL, sums, (size_t)(p->m * p->n) * sizeof *sums);
    free(a);
    free(b);
    free(sums);
}

static int64_t random_zero(int64_t dtype)
{
    const int64_t low = dtype == TSSA_INT8 ? -128 : 0;
    const int64_t zeros[] = {0, low, low + 255, pick(low, low + 255)};
    return zeros[pick(0, 3)];
}

static void test_products(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct library_problem problem;
        memset(&problem, 0, sizeof problem);
        const int64_t most = round % 20 ? 40 : 300, k = pick(1, round % 20 ? 60 : 1500);
        const int64_t m = pick(1, pick(0, 2) ? most : 4), n = pick(1, most),
                      gap = pick(0, 1) * pick(0, 9);
        const bool ta = pick(0, 1), tb = pick(0, 1);
        problem.kind = LIBRARY_MATMUL;
        problem.dtype = pick(0, 1) ? TSSA_INT8 : TSSA_UINT8;
        problem.matmul = (struct matmul_problem){.batch = 1,
                                                 .m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .a_row = ta ? 1 : k + gap,
                                                 .a_column = ta ? m + gap : 1,
                                                 .b_row = tb ? 1 : n + gap,
                                                 .b_column = tb ? k + gap : 1,
                                                 .b_constant = pick(0, 1),
                                                 .a_zero = random_zero(problem.dtype),
                                                 .b_zero = pick(0, 1) * random_zero(TSSA_INT8)};
        check_product(&problem, round % 3 == 0);
    }
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

struct images {
    const struct conv_problem *c;
    int64_t dtype, in, out, kernel; /* pixels of an image, of a result, elements of a window */
    uint8_t *x, *w;
    int32_t *bias;
};

/* The place of a channel's pixel of an image of `pixels`. */
static int64_t place(bool last, int64_t channels, int64_t pixels, int64_t batch, int64_t channel,
                     int64_t pixel)
{
    return last ? (batch * pixels + pixel) * channels + channel
                : (batch * channels + channel) * pixels + pixel;
}

/* The pixel that an element of a window reads; -1: none. */
static int64_t pixel_of(const struct conv_problem *c, int64_t window, int64_t element)
{
    int64_t pixel = 0, step = 1;
    for (int i = (int)c->rank - 1; i >= 0; i--) {
        const int64_t at = window % c->out[i] * c->stride[i] - c->pad_begin[i] +
                           element % c->kernel[i] * c->dilation[i];
        if (at < 0 || at >= c->in[i])
            return -1;
        pixel += at * step;
        step *= c->in[i];
        window /= c->out[i];
        element /= c->kernel[i];
    }
    return pixel;
}

static int32_t sum_of(const struct images *s, int64_t batch, int64_t channel, int64_t window)
{
    const struct conv_problem *c = s->c;
    const int64_t used = c->in_channels / c->groups,
                  group = channel / (c->out_channels / c->groups);
    int32_t sum = 0;
    for (int64_t i = 0; i < used; i++)
        for (int64_t e = 0; e < s->kernel; e++) {
            const int64_t pixel = pixel_of(c, window, e);
            if (pixel < 0)
                continue;
            const uint8_t byte =
                s->x[place(c->x_last, c->in_channels, s->in, batch, group * used + i, pixel)];
            sum += (value_of(s->dtype, byte) - (int32_t)c->x_zero) *
                   ((int8_t)s->w[(channel * used + i) * s->kernel + e] - (int32_t)c->w_zero);
        }
    return sum;
}

static uint8_t quantized(const struct library_quantizer *q, int32_t sum, int64_t channel)
{
    const double low = q->dtype == TSSA_INT8 ? -128 : 0,
                 value = rint((double)((float)sum * q->factors[channel])) + (double)q->zero;
    return (uint8_t)(int32_t)fmin(fmax(value, low), low + 255);
}

static void check_images(struct library_problem *problem, const struct images *s,
                         const struct library_quantizer *q)
{
    const struct conv_problem *c = s->c;
    const int64_t count = c->batch * c->out_channels * s->out;
    uint8_t *bytes = malloc((size_t)count);
    int32_t *sums = malloc((size_t)count * sizeof *sums);
    assert_non_null(bytes);
    assert_non_null(sums);
    for (int64_t i = 0; i < count; i++) {
        const int64_t batch = i / (c->out_channels * s->out),
                      channel = i / s->out % c->out_channels, window = i % s->out;
        const int64_t to = place(c->y_last, c->out_channels, s->out, batch, channel, window);
        sums[to] = sum_of(s, batch, channel, window) + (c->biased ? s->bias[channel] : 0);
        if (q)
            bytes[to] = quantized(q, sums[to], channel);
    }
    check(problem, s->x, s->w, c->biased ? s->bias : NULL, q ? (void *)bytes : (void *)sums,
          (size_t)count * (q ? 1 : sizeof *sums));
    free(bytes);
    free(sums);
}

/* Some are out of INT32 for what is quantized: all larger sums are the same byte. */
static void random_quantizer(const struct images *s, struct library_quantizer *q, float *factors)
{
    const int64_t channels = s->c->out_channels;
    static const float scales[] = {1e-5F, 1e-3F, 0.5F, 1, 1e7F, 1e30F};
    for (int64_t i = 0; i < channels; i++)
        factors[i] = scales[pick(0, 5)] * (pick(0, 9) ? 1.0F : -1.0F);
    q->factors = factors;
    q->dtype = pick(0, 1) ? TSSA_INT8 : TSSA_UINT8;
    q->zero = random_zero(q->dtype);
    q->most = MOST_SUM_OF(s->c->in_channels / s->c->groups * s->kernel, s->c->w_zero ? 255 : 128);
}

/* In memory of just what it needs, and all random but for the sizes. */
static void make_images(struct library_problem *problem, bool extreme, struct images *s)
{
    const struct conv_problem *c = &problem->conv;
    *s = (struct images){.c = c, .dtype = problem->dtype, .in = 1, .out = 1, .kernel = 1};
    for (int i = 0; i < c->rank; i++) {
        s->in *= c->in[i];
        s->out *= c->out[i];
        s->kernel *= c->kernel[i];
    }
    s->x = random_bytes(c->batch * c->in_channels * s->in, extreme);
    s->w = random_bytes(c->out_channels * (c->in_channels / c->groups) * s->kernel, extreme);
    s->bias = malloc((size_t)c->out_channels * sizeof *s->bias);
    assert_non_null(s->bias);
    for (int64_t i = 0; i < c->out_channels; i++)
        s->bias[i] = (int32_t)pick(-MOST_BIAS, MOST_BIAS);
}

static void free_images(struct images *s)
{
    free(s->x);
    free(s->w);
    free(s->bias);
}

static void check_conv(struct library_problem *problem, bool quantizes, bool extreme)
{
    struct conv_problem *c = &problem->conv;
    struct images s;
    struct library_quantizer q;
    float *factors = malloc((size_t)c->out_channels * sizeof *factors);
    assert_non_null(factors);
    make_images(problem, extreme, &s);
    random_quantizer(&s, &q, factors);
    c->quantizer = quantizes ? (intptr_t)&q : 0;
    c->biased = quantizes && pick(0, 2);
    check_images(problem, &s, quantizes ? &q : NULL);
    free_images(&s);
    free(factors);
}

/* One channel in each group and others. */
static void random_channels(struct conv_problem *c)
{
    const int64_t kind = pick(0, 3);
    c->groups = kind == 0 ? pick(2, 70) : kind == 1 ? pick(2, 4) : 1;
    if (kind == 0 && pick(0, 1))
        c->groups = 16 * pick(1, 4);
    c->in_channels = c->groups * (kind == 0 ? 1 : pick(1, 40));
    c->out_channels = kind == 0 ? c->groups : c->groups * pick(1, 40);
}

/* False: the window is larger than the image. */
static bool pad_axis(struct conv_problem *c, int i)
{
    c->pad_begin[i] = pick(0, 1) * pick(0, 4);
    c->pad_end[i] = pick(0, 1) * pick(0, 4);
    const int64_t rest =
        c->in[i] + c->pad_begin[i] + c->pad_end[i] - ((c->kernel[i] - 1) * c->dilation[i] + 1);
    c->out[i] = rest >= 0 ? rest / c->stride[i] + 1 : 0;
    return rest >= 0;
}

static bool random_axis(struct conv_problem *c, int i)
{
    c->in[i] = pick(1, 12);
    c->kernel[i] = pick(0, 1) ? 1 : pick(1, 5);
    c->stride[i] = pick(0, 1) ? 1 : pick(1, 3);
    c->dilation[i] = pick(0, 2) ? 1 : pick(1, 3);
    return pad_axis(c, i);
}

/* All but its channels and its axes. */
static void open_conv(struct library_problem *problem, int64_t rank)
{
    memset(problem, 0, sizeof *problem);
    problem->kind = LIBRARY_CONV;
    problem->dtype = pick(0, 1) ? TSSA_INT8 : TSSA_UINT8;
    problem->conv = (struct conv_problem){.rank = rank,
                                          .batch = pick(1, 2),
                                          .x_zero = random_zero(problem->dtype),
                                          .w_zero = pick(0, 1) * random_zero(TSSA_INT8),
                                          .x_last = pick(0, 3) != 0,
                                          .y_last = pick(0, 3) != 0};
}

static void test_convolutions(void **state)
{
    (void)state;
    for (int round = 0; round < 600;) {
        struct library_problem problem;
        struct conv_problem *c = &problem.conv;
        open_conv(&problem, pick(1, 3));
        bool fits = true;
        for (int i = 0; i < c->rank; i++)
            fits &= random_axis(c, i);
        random_channels(c);
        if (!fits)
            continue;
        check_conv(&problem, pick(0, 2) != 0, round % 3 == 0);
        round++;
    }
}

/* Many terms, rows and columns: several stretches, blocks and parts. */
static void test_large(void **state)
{
    static const struct conv_problem problems[] = {
        {.in_channels = 200, .out_channels = 70, .in = {14, 15}, .kernel = {3, 3}},
        {.in_channels = 3, .out_channels = 24, .in = {40, 41}, .kernel = {7, 7}},
        {.in_channels = 600, .out_channels = 420, .in = {5, 40}, .kernel = {1, 1}},
        {.in_channels = 512, .out_channels = 96, .in = {20, 21}, .kernel = {1, 1}},
        {.in_channels = 96, .out_channels = 96, .groups = 96, .in = {30, 31}, .kernel = {3, 3}},
        {.in_channels = 72, .out_channels = 72, .groups = 72, .in = {30, 31}, .kernel = {5, 5}},
        {.in_channels = 48, .out_channels = 48, .groups = 48, .in = {9, 50}, .kernel = {3, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        struct library_problem problem;
        memset(&problem, 0, sizeof problem);
        problem.kind = LIBRARY_CONV;
        problem.dtype = i % 2 ? TSSA_INT8 : TSSA_UINT8;
        struct conv_problem *c = &problem.conv;
        *c = problems[i];
        c->rank = 2;
        c->batch = 1;
        c->groups = c->groups ? c->groups : 1;
        c->x_last = c->y_last = 1;
        c->x_zero = random_zero(problem.dtype);
        c->w_zero = pick(0, 1) * random_zero(TSSA_INT8);
        for (int axis = 0; axis < 2; axis++) {
            c->stride[axis] = c->dilation[axis] = 1;
            c->pad_begin[axis] = c->pad_end[axis] = c->kernel[axis] / 2;
            c->out[axis] = c->in[axis];
        }
        check_conv(&problem, i != 2, i == 3);
    }
}

/* Depthwise ones of 3x3 along lines, whose channels are whole blocks. */
static void test_lines(void **state)
{
    (void)state;
    for (int round = 0; round < 60;) {
        struct library_problem problem;
        struct conv_problem *c = &problem.conv;
        open_conv(&problem, pick(2, 3));
        bool fits = true;
        for (int i = 0; i < c->rank; i++) {
            const bool is_line = i == c->rank - 1;
            c->in[i] = pick(1, is_line ? 40 : 6);
            c->kernel[i] = i == c->rank - 3 ? 1 : 3;
            c->stride[i] = is_line ? 1 : pick(1, 2);
            c->dilation[i] = is_line ? 1 : pick(1, 2);
            fits &= pad_axis(c, i);
        }
        c->groups = c->in_channels = c->out_channels = 16 * pick(1, 4);
        if (!fits)
            continue;
        check_conv(&problem, pick(0, 2) != 0, round % 3 == 0);
        round++;
    }
}

/* ---- Winograd's algorithm -------------------------------------------------------------------- */

static void open_winograd(struct library_problem *problem, int64_t in, int64_t out, int64_t high,
                          int64_t wide)
{
    struct conv_problem *c = &problem->conv;
    open_conv(problem, 2);
    c->groups = 1;
    c->in_channels = in;
    c->out_channels = out;
    c->in[0] = high;
    c->in[1] = wide;
    for (int i = 0; i < 2; i++) {
        c->kernel[i] = 3;
        c->stride[i] = c->dilation[i] = 1;
        c->pad_begin[i] = pick(0, 2);
        c->pad_end[i] = pick(0, 2);
        c->out[i] = c->in[i] + c->pad_begin[i] + c->pad_end[i] - 2;
    }
}

/* Quantized sums, that are no larger than they may be. */
static void check_winograd_takes(const struct conv_problem *problem)
{
    struct library_quantizer q = {.most = (1 << 25) - 1};
    struct conv_problem c = *problem;
    assert_false(winograd_takes(&c));
    c.quantizer = (intptr_t)&q;
    assert_int_equal(winograd_takes(&c), isa_level() >= ISA_V3);
    q.most++;
    assert_false(winograd_takes(&c));
}

static void test_winograd(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct library_problem problem;
        open_winograd(&problem, 16 * pick(2, 7), pick(32, 70), pick(9, 26), pick(9, 26));
        check_winograd_takes(&problem.conv);
        check_conv(&problem, true, round % 3 == 0);
    }
}

/* More channels than are computed at a time: only of small weights sums are small enough. */
static void test_winograd_stretches(void **state)
{
    static const int64_t channels[] = {144, 256, 272, 512};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct library_problem problem;
        struct images s;
        float factors[48];
        struct library_quantizer q = {factors, TSSA_INT8, -3, channels[i] * 9 * 255 * 16};
        open_winograd(&problem, channels[i], i % 2 ? 48 : 33, 10, 11);
        problem.conv.w_zero = 0;
        problem.conv.quantizer = (intptr_t)&q;
        assert_int_equal(winograd_takes(&problem.conv), isa_level() >= ISA_V3);
        for (int c = 0; c < 48; c++)
            factors[c] = 1e-4F;
        make_images(&problem, false, &s);
        for (int64_t k = 0; k < problem.conv.out_channels * channels[i] * 9; k++)
            s.w[k] = (uint8_t)pick(-16, 16);
        check_images(&problem, &s, &q);
        free_images(&s);
    }
}

/* What the numbers of six pixels, and of three weights, are made of. */
static const int pixels_of[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0},
                                    {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0},
                                    {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const int weights_of[6][3] = {{6, 0, 0}, {1, 1, 1},  {1, -1, 1},
                                     {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};

/* Those of kind (i, j) are as large as can be, in the first tile and in all weights. */
static void make_largest(const struct images *s, int i, int j, bool negative)
{
    const struct conv_problem *c = s->c;
    for (int p = 0; p < 36; p++) {
        const bool high = (pixels_of[i][p / 6] * pixels_of[j][p % 6] > 0) != negative;
        memset(s->x + (p / 6 * c->in[1] + p % 6) * c->in_channels, high ? 255 : 0,
               (size_t)c->in_channels);
    }
    for (int64_t k = 0; k < c->out_channels * c->in_channels * 9; k++) {
        const int at = (int)(k % 9), sign = weights_of[i][at / 3] * weights_of[j][at % 3];
        s->w[k] = sign < 0 ? INT8_MAX : (uint8_t)INT8_MIN;
    }
}

/* The numbers' products are summed up modulo 2^32, many times around. */
static void test_largest_numbers(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2 * 36; kind++) {
        struct library_problem problem;
        struct images s;
        float factors[48];
        struct library_quantizer q = {factors, TSSA_UINT8, 0, MOST_SUM_OF(48 * 9, 255)};
        open_winograd(&problem, 48, 48, 14, 14);
        problem.dtype = TSSA_UINT8;
        problem.conv.batch = problem.conv.x_last = 1;
        problem.conv.x_zero = kind % 3 ? 0 : 255;
        problem.conv.w_zero = kind % 4 ? 0 : INT8_MIN;
        for (int i = 0; i < 2; i++) {
            problem.conv.pad_begin[i] = problem.conv.pad_end[i] = 0;
            problem.conv.out[i] = 12;
        }
        for (int i = 0; i < 48; i++)
            factors[i] = (i % 2 ? 1 : -1) * 1e-5F;
        problem.conv.quantizer = (intptr_t)&q;
        make_images(&problem, false, &s);
        make_largest(&s, kind % 36 / 6, kind % 6, kind >= 36);
        check_images(&problem, &s, &q);
        free_images(&s);
    }
}

/* What it is not for. */
static void test_declined(void **state)
{
    struct library_problem problem;
    (void)state;
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_CONV;
    problem.dtype = TSSA_UINT8;
    problem.threads = 1;
    const struct conv_problem conv = {.rank = 1,
                                      .batch = 1,
                                      .groups = 1,
                                      .in_channels = 1,
                                      .out_channels = 1,
                                      .in = {1},
                                      .out = {1},
                                      .kernel = {1},
                                      .stride = {1},
                                      .dilation = {1}};
    problem.conv = conv;
    struct library_primitive *made = bytes_make(&problem);
    assert_non_null(made);
    made->table->release(made);
    problem.dtype = TSSA_FLOAT;
    assert_null(bytes_make(&problem));
    problem.dtype = TSSA_UINT8;
    problem.conv.turned = 1;
    assert_null(bytes_make(&problem));
    problem.conv = conv;
    problem.conv.biased = 1; /* without a quantizer */
    assert_null(bytes_make(&problem));
    problem.conv = conv;
    problem.conv.rank = 4;
    assert_null(bytes_make(&problem));
    problem.kind = LIBRARY_MATMUL;
    problem.matmul = (struct matmul_problem){.batch = 2, .m = 1, .n = 1, .k = 1};
    assert_null(bytes_make(&problem));
    problem.matmul = (struct matmul_problem){.batch = 1, .m = 1, .n = 1};
    assert_null(bytes_make(&problem));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_large),           cmocka_unit_test(test_lines),
        cmocka_unit_test(test_winograd),        cmocka_unit_test(test_winograd_stretches),
        cmocka_unit_test(test_largest_numbers), cmocka_unit_test(test_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
