/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 1x1 in groups as products: against plain loops in double, images that do and do
 * not fill vectors, in memory that ends where they end, and the same bits on several threads.
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
#include "base/team.h"
#include "common/op_run.h"
#include "kernels/cpu/contraction/conv_products.h"

struct shape {
    int64_t batch, groups, in, out, pixels; /* in, out: channels of a group */
    bool biased;
    enum convolve_after after;
};

static const struct shape shapes[] = {
    {1, 2, 1, 2, 16, false, AFTER_NOTHING}, {1, 4, 136, 136, 49, true, AFTER_relu},
    {2, 3, 7, 5, 17, true, AFTER_NOTHING},  {1, 2, 68, 13, 24, false, AFTER_relu},
    {3, 2, 3, 1, 25, true, AFTER_clip},     {2, 5, 65, 6, 127, true, AFTER_NOTHING},
    {1, 2, 130, 23, 121, false, AFTER_clip}};

#define N_SHAPES (sizeof shapes / sizeof *shapes)

struct products {
    struct tensor x, w, bias;
    struct conv_job job;
    float *y;
    size_t count;
};

static void make_tensor(struct tensor *tensor, int rank, const int64_t *dims, uint32_t seed)
{
    *tensor = (struct tensor){.dtype = TSSA_FLOAT, .rank = rank};
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    tensor->data = malloc(tensor_count(tensor) * sizeof(float));
    assert_non_null(tensor->data);
    random_floats(tensor->data, tensor_count(tensor), seed);
}

static void products_open(struct products *p, const struct shape *s)
{
    const int64_t in = s->groups * s->in, out = s->groups * s->out;
    make_tensor(&p->x, 3, (int64_t[]){s->batch, in, s->pixels}, 1);
    make_tensor(&p->w, 3, (int64_t[]){out, s->in, 1}, 2);
    make_tensor(&p->bias, 1, &out, 3);
    p->job = (struct conv_job){.window = {.rank = 1,
                                          .in = {s->pixels},
                                          .out = {s->pixels},
                                          .kernel = {1},
                                          .stride = {1},
                                          .dilation = {1},
                                          .in_count = s->pixels,
                                          .out_count = s->pixels,
                                          .kernel_count = 1},
                               .batch = s->batch,
                               .groups = s->groups,
                               .in_channels = in,
                               .out_channels = out,
                               .x = &p->x,
                               .w = &p->w,
                               .bias = s->biased ? &p->bias : NULL,
                               .after = s->after,
                               .a = -0.25F,
                               .b = 0.5F};
    p->count = (size_t)(s->batch * out * s->pixels);
    p->y = malloc(p->count * sizeof *p->y);
    assert_non_null(p->y);
}

static void products_close(struct products *p)
{
    free(p->x.data);
    free(p->w.data);
    free(p->bias.data);
    free(p->y);
}

static double expected_at(const struct products *p, const struct shape *s, int64_t row, int64_t i)
{
    const int64_t channel = row % p->job.out_channels, group = row / s->out;
    const float *x = (const float *)p->x.data + group * s->in * s->pixels + i;
    const float *w = (const float *)p->w.data + channel * s->in;
    double sum = s->biased ? (double)((const float *)p->bias.data)[channel] : 0;
    for (int64_t k = 0; k < s->in; k++)
        sum += (double)w[k] * (double)x[k * s->pixels];
    return s->after == AFTER_relu   ? fmax(sum, 0)
           : s->after == AFTER_clip ? fmin(fmax(sum, -0.25), 0.5)
                                    : sum;
}

static void test_sums(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHAPES; k++) {
        const struct shape *s = &shapes[k];
        struct products p;
        products_open(&p, s);
        conv_products(NULL, &p.job, p.y);
        for (size_t i = 0; i < p.count; i++)
            expect_close((double)p.y[i],
                         expected_at(&p, s, (int64_t)i / s->pixels, (int64_t)i % s->pixels), 1e-4,
                         "y", i);
        products_close(&p);
    }
}

static void test_threads(void **state)
{
    (void)state;
    for (int threads = 2; threads <= 4; threads++)
        for (size_t k = 0; k < N_SHAPES; k++) {
            struct team team;
            struct products p;
            team_open(&team, threads);
            products_open(&p, &shapes[k]);
            float *alone = malloc(p.count * sizeof *alone);
            assert_non_null(alone);
            conv_products(NULL, &p.job, alone);
            conv_products(&team, &p.job, p.y);
            assert_memory_equal(alone, p.y, p.count * sizeof *alone);
            free(alone);
            products_close(&p);
        }
}

/* What else there is goes to the library. */
static void test_taken(void **state)
{
    (void)state;
    struct products p;
    products_open(&p, &shapes[1]);
    struct conv_job other = p.job;
    assert_int_equal(conv_products_takes(&other), isa_level() == ISA_V3);
    other.groups = 1;
    assert_false(conv_products_takes(&other));
    other = p.job;
    other.groups = other.in_channels;
    assert_false(conv_products_takes(&other));
    other = p.job;
    other.x_last = true;
    assert_false(conv_products_takes(&other));
    other = p.job;
    other.window.stride[0] = 2;
    assert_false(conv_products_takes(&other));
    other = p.job;
    other.window.pad_begin[0] = 1;
    assert_false(conv_products_takes(&other));
    other = p.job;
    other.window.out_count = 15;
    assert_false(conv_products_takes(&other));
    other.window.out_count = 128;
    assert_false(conv_products_takes(&other));
    products_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
