/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that sum products give the bits of their order, written out here: products rounded
 * each, summed as an axis that is not the innermost one, or for some products of a matrix and a
 * vector as the innermost one; or terms added by fused multiply-adds. For any float type and number
 * of threads.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/op_numbers.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f64_exp.h"

enum { TERMS = 9000 };

static double terms[TERMS];

static double product(tssa_dtype dtype, double a, double b)
{
    return op_rounded(dtype, a * b);
}

static tssa_dtype some_dtype(struct random *random)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT16, TSSA_BFLOAT16, TSSA_DOUBLE};
    return dtypes[random_int(random, 0, 2)];
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* In so many lanes, as up to 64 steps of an innermost axis. */
#define LANES 32
static double sum_of_lanes(int64_t n)
{
    double lanes[LANES];
    for (int64_t lane = 0; lane < LANES; lane++) {
        lanes[lane] = 0;
        for (int64_t i = lane; i < n; i += LANES)
            lanes[lane] = op_rounded(TSSA_FLOAT, lanes[lane] + terms[i]);
    }
    for (int64_t half = LANES / 2; half > 0; half /= 2)
        for (int64_t lane = 0; lane < half; lane++)
            lanes[lane] = op_rounded(TSSA_FLOAT, lanes[lane] + lanes[lane + half]);
    return lanes[0];
}

/* Of float32, and of what is computed in it: are terms summed in lanes, since they lie side by
 * side? */
static bool is_of_lanes(int64_t m, int64_t n, int64_t k, bool turned)
{
    const bool side_by_side = n == 1 || (m == 1 && turned);
    return side_by_side && k % 8 == 0 && k >= LANES && k <= 2048 && m * n * k >= 2048 &&
           m * n * k < 8192;
}

/* Of float32, and of what is computed in it: few rows by what is large (gemm_streams.h)? */
static bool is_streamed(int64_t m, int64_t n, int64_t k, bool turned)
{
    const int64_t most = isa_level() == ISA_V4 ? 16 : isa_level() == ISA_V3 ? 8 : 0;
    return m <= most && !turned && n * k >= 524288;
}

/* Of it, the sum of up to 64 terms is made by fused multiply-adds, those of more as they always
 * are. */
static double sum_of_fused(const double *a, const double *b, int64_t n)
{
    static double sums[(TERMS + 63) / 64];
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += i % 64 == 0;
        const float before = i % 64 == 0 ? 0 : (float)sums[count - 1];
        sums[count - 1] = (double)fmaf((float)a[i], (float)b[i], before);
    }
    return op_sum(TSSA_FLOAT, sums, count);
}

/* Whether no library is asked: of products of few elements, of a row by what is not large, of
 * lanes, and of few rows by what is large. */
static bool is_own(int64_t m, int64_t n, int64_t k, bool turned)
{
    return is_streamed(m, n, k, turned) || m * n * k < (m == 1 && !turned ? 32768 : 2048) ||
           is_of_lanes(m, n, k, turned);
}

/* Element `at` of a product of {m, n, k}. */
static double expected(tssa_dtype dtype, const int64_t *shape, bool turned, const struct tensor *a,
                       const struct tensor *b, int64_t at)
{
    static double left[TERMS], right[TERMS];
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    for (int64_t x = 0; x < k; x++) {
        left[x] = op_number(a, at / n * k + x);
        right[x] = op_number(b, turned ? at % n * k + x : x * n + at % n);
        terms[x] = product(dtype, left[x], right[x]);
    }
    if (dtype != TSSA_DOUBLE && is_streamed(m, n, k, turned))
        return sum_of_fused(left, right, k);
    return dtype != TSSA_DOUBLE && is_of_lanes(m, n, k, turned) ? op_rounded(dtype, sum_of_lanes(k))
                                                                : op_sum(dtype, terms, k);
}

static void test_matrices(void **state)
{
    static const int64_t shapes[][3] = {
        {3, 5, 7},      {1, 130, 9},    {2, 3, 300},    {9, 4, 50},    {17, 1, 100},
        {1, 1, 2000},   {3, 2, 64},     {20, 200, 150}, {3, 9, 4200},  {9, 2, 8200},
        {1, 3, 65},     {7, 8, 130},    {6, 21, 64},    {13, 33, 9},   {8, 13, 8300},
        {1, 64, 64},    {1, 125, 257},  {1, 8, 4095},   {1, 63, 500},  {5, 57, 70},
        {50, 1, 64},    {1, 50, 64},    {63, 1, 40},    {1, 150, 48},  {4, 1, 2040},
        {3, 1, 2048},   {1, 1, 2048},   {1, 7, 312},    {64, 1, 32},   {1, 255, 32},
        {70, 1, 33},    {128, 1, 64},   {11, 40, 130},  {9, 19, 8300}, {8, 19, 4200},
        {4, 701, 750},  {1, 130, 4200}, {7, 10000, 53}, {9, 701, 750}, {13, 131, 4100},
        {16, 8209, 65}, {8, 129, 4100}, {2, 70, 8300},  {5, 64, 8300}, {3, 8193, 65},
        {6, 257, 2050}};
    struct random random = {31};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int round = 0; round < 4; round++) {
            const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            const bool turned = round / 2;
            const tssa_dtype dtype = !is_own(m, n, k, turned) ? TSSA_DOUBLE
                                     : round % 2              ? TSSA_FLOAT
                                                              : some_dtype(&random);
            struct team team;
            struct op_run t;
            op_begin(&t, turned ? IR_OP_Gemm : IR_OP_MatMul, 0);
            op_int(&t, "transB", turned);
            const struct tensor *a = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){m, k});
            const struct tensor *b = op_add_numbers(
                &t, &random, dtype, 2, turned ? (const int64_t[]){n, k} : (const int64_t[]){k, n});
            op_threads(&t, &team, round % 3 + 1);
            op_go(&t);
            for (int64_t at = 0; at < m * n; at++)
                op_expect_number(&t.outputs[0].tensor, at,
                                 expected(dtype, (const int64_t[]){m, n, k}, turned, a, b, at));
            op_close(&t);
        }
}

/* alpha * product + beta * c: of two-byte floats as of the others rounded once, at the end. */
static void test_scaled(void **state)
{
    struct random random = {33};
    (void)state;
    for (int round = 0; round < 8; round++) {
        const int64_t m = 3, n = 5, k = 100;
        const tssa_dtype dtype = round % 4 ? some_dtype(&random) : TSSA_FLOAT;
        const double alpha = round / 4 ? 0.375 : 1, beta = round / 4 ? -3 : 1;
        struct op_run t;
        op_begin(&t, IR_OP_Gemm, 0);
        op_float(&t, "alpha", (float)alpha);
        op_float(&t, "beta", (float)beta);
        const struct tensor *a = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){m, k});
        const struct tensor *b = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){k, n});
        const struct tensor *c = op_add_numbers(&t, &random, dtype, 1, &n);
        op_go(&t);
        for (int64_t at = 0; at < m * n; at++) {
            for (int64_t x = 0; x < k; x++)
                terms[x] =
                    product(dtype, op_number(a, at / n * k + x), op_number(b, x * n + at % n));
            op_expect_number(&t.outputs[0].tensor, at,
                             op_rounded(dtype, product(dtype, alpha, op_sum(dtype, terms, k)) +
                                                   product(dtype, beta, op_number(c, at % n))));
        }
        op_close(&t);
    }
}

/* ---- Einsum ---------------------------------------------------------------------------------- */

/* Three operands in pairs: over j, where no library is asked, then over k and l; in between there
 * are no narrow floats. */
static void test_einsum(void **state)
{
    struct random random = {37};
    (void)state;
    for (int round = 0; round < 40; round++) {
        const int64_t n = random_int(&random, 1, 5), j = random_int(&random, 1, 20);
        const int64_t k = random_int(&random, 1, 20), l = random_int(&random, 1, 20);
        const tssa_dtype dtype =
            round % 2 && n * j * k * l < 2048 ? TSSA_FLOAT : some_dtype(&random);
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_Einsum, 0);
        op_string(&t, "equation", "ij,jkl,lk->i");
        const struct tensor *a = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){n, j});
        const struct tensor *b = op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){j, k, l});
        const struct tensor *c = op_add_numbers(&t, &random, dtype, 2, (const int64_t[]){l, k});
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        for (int64_t i = 0; i < n; i++) {
            double sums[400];
            for (int64_t x = 0; x < k * l; x++) {
                for (int64_t y = 0; y < j; y++)
                    terms[y] = product(dtype, op_number(a, i * j + y), op_number(b, y * k * l + x));
                sums[x] = product(dtype, op_sum(dtype, terms, j), op_number(c, x % l * k + x / l));
            }
            op_expect_number(&t.outputs[0].tensor, i, op_sum(dtype, sums, k * l));
        }
        op_close(&t);
    }
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

enum { AXES = 4 };

struct conv {
    int rank;
    int64_t groups, in_channels, out_channels; /* channels of a group */
    int64_t in[AXES], out[AXES], kernel[AXES], strides[AXES], dilations[AXES], pads[2 * AXES];
};

static void some_conv(struct random *random, int rank, struct conv *c)
{
    *c = (struct conv){.rank = rank,
                       .groups = random_int(random, 1, 2),
                       .in_channels = random_int(random, 1, 9),
                       .out_channels = random_int(random, 1, 3)};
    for (int i = 0; i < rank; i++) {
        c->kernel[i] = random_int(random, 1, 3);
        c->strides[i] = random_int(random, 1, 3);
        c->dilations[i] = random_int(random, 1, 2);
        int64_t extent = (c->kernel[i] - 1) * c->dilations[i] + 1;
        c->pads[i] = random_int(random, 0, extent - 1);
        c->pads[rank + i] = random_int(random, 0, extent - 1);
        c->in[i] = extent + random_int(random, 0, i < rank - 1 ? 2 : rank > 2 ? 9 : 24);
        c->out[i] = (c->in[i] + c->pads[i] + c->pads[rank + i] - extent) / c->strides[i] + 1;
    }
}

/* Of images that are one pixel. */
static void some_pixel(struct random *random, int rank, struct conv *c)
{
    *c = (struct conv){.rank = rank,
                       .groups = 1,
                       .in_channels = random_int(random, 1, 200),
                       .out_channels = random_int(random, 1, 20)};
    for (int i = 0; i < rank; i++)
        c->in[i] = c->out[i] = c->kernel[i] = c->strides[i] = c->dilations[i] = 1;
}

static int64_t product_of(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

static void begin_conv(struct op_run *t, enum ir_op_id id, const struct conv *c)
{
    const size_t rank = (size_t)c->rank;
    op_begin(t, id, 0);
    op_int(t, "group", c->groups);
    op_ints(t, "strides", rank, c->strides);
    op_ints(t, "dilations", rank, c->dilations);
    op_ints(t, "pads", 2 * rank, c->pads);
}

/* The element that kernel position k of output `at` reads in its plane; -1: padding. */
static int64_t reads(const struct conv *c, int64_t at, int64_t k)
{
    int64_t o[AXES], position[AXES], x[AXES];
    unflatten(c->rank, c->out, at, o);
    unflatten(c->rank, c->kernel, k, position);
    for (int i = 0; i < c->rank; i++) {
        x[i] = o[i] * c->strides[i] + position[i] * c->dilations[i] - c->pads[i];
        if (x[i] < 0 || x[i] >= c->in[i])
            return -1;
    }
    return flat_index(c->rank, c->in, x);
}

/* As many spatial axes as no library takes. */
static void test_conv(void **state)
{
    struct random random = {41};
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct conv c;
        struct team team;
        struct op_run t;
        const tssa_dtype dtype = round % 2 ? TSSA_FLOAT : some_dtype(&random);
        if (round % 4 < 3)
            some_conv(&random, AXES, &c);
        else
            some_pixel(&random, AXES, &c);
        const int64_t channels = c.groups * c.out_channels;
        int64_t x_dims[2 + AXES] = {2, c.groups * c.in_channels};
        int64_t w_dims[2 + AXES] = {channels, c.in_channels};
        for (int i = 0; i < AXES; i++) {
            x_dims[2 + i] = c.in[i];
            w_dims[2 + i] = c.kernel[i];
        }
        begin_conv(&t, IR_OP_Conv, &c);
        const struct tensor *x = op_add_numbers(&t, &random, dtype, 2 + AXES, x_dims);
        const struct tensor *w = op_add_numbers(&t, &random, dtype, 2 + AXES, w_dims);
        const struct tensor *bias = NULL;
        if (round % 3)
            bias = op_add_numbers(&t, &random, dtype, 1, &channels);
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        const int64_t taps = product_of(AXES, c.kernel), size = product_of(AXES, c.out);
        const int64_t n = c.in_channels * taps, plane = product_of(AXES, c.in);
        for (int64_t i = 0; i < 2 * channels * size; i++) {
            const int64_t channel = i / size % channels, item = i / size / channels;
            const int64_t first = (item * c.groups + channel / c.out_channels) * c.in_channels;
            for (int64_t k = 0; k < n; k++) {
                int64_t at = reads(&c, i % size, k % taps);
                terms[k] = at < 0 ? 0
                                  : product(dtype, op_number(w, channel * n + k),
                                            op_number(x, (first + k / taps) * plane + at));
            }
            double sum = op_sum(dtype, terms, n);
            op_expect_number(&t.outputs[0].tensor, i,
                             bias ? op_rounded(dtype, sum + op_number(bias, channel)) : sum);
        }
        op_close(&t);
    }
}

/* What Conv of `out` to `in` reads, ConvTranspose and Col2Im write to: ConvTranspose the sums over
 * its channels. */
static void test_transposed(void **state)
{
    struct random random = {43};
    (void)state;
    for (int round = 0; round < 80; round++) {
        struct conv c;
        struct team team;
        struct op_run t;
        const bool is_col2im = round % 4 == 3;
        const int rank = 1 + round % 3;
        some_conv(&random, rank, &c);
        const int64_t channels = c.groups * c.out_channels, plane = product_of(rank, c.in);
        const int64_t taps = product_of(rank, c.kernel), size = product_of(rank, c.out);
        const bool asks_library = c.out_channels * taps * size * c.in_channels >= 2048;
        const tssa_dtype dtype =
            round % 2 && (is_col2im || !asks_library) ? TSSA_FLOAT : some_dtype(&random);
        int64_t dims[2 + AXES] = {1, c.groups * c.in_channels};
        const struct tensor *x, *w = NULL, *bias = NULL;
        begin_conv(&t, is_col2im ? IR_OP_Col2Im : IR_OP_ConvTranspose, &c);
        if (is_col2im) {
            x = op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, channels * taps, size});
            op_add(&t, TSSA_INT64, 1, (const int64_t[]){rank}, c.in);
            op_add(&t, TSSA_INT64, 1, (const int64_t[]){rank}, c.kernel);
        } else {
            int64_t padding[AXES];
            for (int i = 0; i < rank; i++) { /* what the stride leaves over */
                dims[2 + i] = c.out[i];
                padding[i] = (c.in[i] + c.pads[i] + c.pads[rank + i] -
                              ((c.kernel[i] - 1) * c.dilations[i] + 1)) %
                             c.strides[i];
            }
            op_ints(&t, "output_padding", (size_t)rank, padding);
            x = op_add_numbers(&t, &random, dtype, 2 + rank, dims);
            dims[0] = dims[1];
            dims[1] = c.out_channels;
            for (int i = 0; i < rank; i++)
                dims[2 + i] = c.kernel[i];
            w = op_add_numbers(&t, &random, dtype, 2 + rank, dims);
            bias = op_add_numbers(&t, &random, dtype, 1, &channels);
        }
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        assert_int_equal(tensor_count(&t.outputs[0].tensor), channels * plane);
        for (int64_t i = 0; i < channels * plane; i++) {
            const int64_t channel = i / plane, group = channel / c.out_channels;
            double columns[64];
            for (int64_t k = 0; k < taps; k++) {
                columns[k] = 0;
                for (int64_t o = 0; o < size; o++) {
                    if (reads(&c, o, k) != i % plane)
                        continue;
                    for (int64_t in = 0; in < c.in_channels && !is_col2im; in++) {
                        const int64_t from = group * c.in_channels + in;
                        const int64_t to = from * c.out_channels + channel % c.out_channels;
                        terms[in] = product(dtype, op_number(x, from * size + o),
                                            op_number(w, to * taps + k));
                    }
                    columns[k] = is_col2im ? op_number(x, (channel * taps + k) * size + o)
                                           : op_sum(dtype, terms, c.in_channels);
                }
            }
            double sum = op_sum(dtype, columns, taps);
            op_expect_number(&t.outputs[0].tensor, i,
                             bias ? op_rounded(dtype, sum + op_number(bias, channel)) : sum);
        }
        op_close(&t);
    }
}

/* ---- States ---------------------------------------------------------------------------------- */

static double exp_of(tssa_dtype dtype, double x)
{
    return dtype == TSSA_DOUBLE ? f64_exp(x) : (double)f32_exp((float)x);
}

/* What came before, then the input; kernels of more than 64 elements, too. */
static void test_causal_conv(void **state)
{
    enum { CHANNELS = 3, LENGTH = 40 };
    struct random random = {47};
    (void)state;
    for (int round = 0; round < 20; round++) {
        const tssa_dtype dtype = round % 2 ? TSSA_FLOAT : some_dtype(&random);
        const int64_t kernel = round % 5 ? random_int(&random, 1, 5) : 130, before = kernel - 1;
        const int64_t channels = CHANNELS;
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_CausalConvWithState, 0);
        op_string(&t, "activation", round % 3 ? "silu" : "none");
        const struct tensor *x =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, CHANNELS, LENGTH});
        const struct tensor *w =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){CHANNELS, 1, kernel});
        const struct tensor *bias = op_add_numbers(&t, &random, dtype, 1, &channels);
        const struct tensor *past =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, CHANNELS, before});
        op_outputs(&t, 2);
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        for (int64_t i = 0; i < CHANNELS * LENGTH; i++) {
            const int64_t channel = i / LENGTH;
            for (int64_t k = 0; k < kernel; k++) {
                const int64_t at = i % LENGTH + k - before;
                terms[k] = product(dtype, op_number(w, channel * kernel + k),
                                   at < 0 ? op_number(past, channel * before + before + at)
                                          : op_number(x, channel * LENGTH + at));
            }
            double sum = op_sum(dtype, terms, kernel);
            sum = op_rounded(dtype, sum + op_number(bias, channel));
            if (round % 3)
                sum = op_rounded(dtype, sum / op_rounded(dtype, 1 + exp_of(dtype, -sum)));
            op_expect_number(&t.outputs[0].tensor, i, sum);
        }
        op_close(&t);
    }
}

/* The rows of a state, each times its weight. */
static double recalled(tssa_dtype dtype, const double *memory, const double *weights, int64_t rows,
                       int64_t n, int64_t m)
{
    for (int64_t d = 0; d < rows; d++)
        terms[d] = product(dtype, weights[d], memory[d * n + m]);
    return op_sum(dtype, terms, rows);
}

/* Two heads of queries to one of keys; all rules at once. */
static void test_linear_attention(void **state)
{
    enum { LENGTH = 5, KEY = 70, VALUE = 9, HEADS = 2 };
    static double memory[KEY * VALUE];
    struct random random = {53};
    (void)state;
    for (int round = 0; round < 8; round++) {
        const tssa_dtype dtype = round % 2 ? TSSA_FLOAT : some_dtype(&random);
        const double scale = op_rounded(dtype, 1 / sqrt((double)KEY));
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_LinearAttention, 0);
        op_int(&t, "q_num_heads", HEADS);
        op_int(&t, "kv_num_heads", 1);
        const struct tensor *query =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, HEADS * KEY});
        const struct tensor *keys =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, KEY});
        const struct tensor *values =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, VALUE});
        const struct tensor *past =
            op_add_numbers(&t, &random, dtype, 4, (const int64_t[]){1, 1, KEY, VALUE});
        const struct tensor *decay =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, KEY});
        const struct tensor *beta =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, 1});
        op_outputs(&t, 2);
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        for (int64_t i = 0; i < KEY * VALUE; i++)
            memory[i] = op_number(past, i);
        for (int64_t p = 0; p < LENGTH; p++) {
            double key[KEY], value[VALUE], q[KEY];
            for (int64_t d = 0; d < KEY; d++) {
                key[d] = op_number(keys, p * KEY + d);
                for (int64_t m = 0; m < VALUE; m++)
                    memory[d * VALUE + m] = product(dtype, memory[d * VALUE + m],
                                                    exp_of(dtype, op_number(decay, p * KEY + d)));
            }
            for (int64_t m = 0; m < VALUE; m++) {
                value[m] = op_number(values, p * VALUE + m);
                value[m] -= recalled(dtype, memory, key, KEY, VALUE, m);
                value[m] = product(dtype, op_number(beta, p), op_rounded(dtype, value[m]));
            }
            for (int64_t i = 0; i < KEY * VALUE; i++)
                memory[i] =
                    op_rounded(dtype, memory[i] + product(dtype, key[i / VALUE], value[i % VALUE]));
            for (int64_t h = 0; h < HEADS; h++) {
                for (int64_t d = 0; d < KEY; d++)
                    q[d] = product(dtype, scale, op_number(query, (p * HEADS + h) * KEY + d));
                for (int64_t m = 0; m < VALUE; m++)
                    op_expect_number(&t.outputs[0].tensor, (p * HEADS + h) * VALUE + m,
                                     recalled(dtype, memory, q, KEY, VALUE, m));
            }
        }
        for (int64_t i = 0; i < KEY * VALUE; i++)
            op_expect_number(&t.outputs[1].tensor, i, memory[i]);
        op_close(&t);
    }
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static void test_rotary(void **state)
{
    enum { HEADS = 3, LENGTH = 4, SIZE = 20, HALF = 7 };
    struct random random = {59};
    (void)state;
    for (int round = 0; round < 8; round++) {
        const tssa_dtype dtype = round % 2 ? TSSA_FLOAT : some_dtype(&random);
        const bool interleaved = round / 2 % 2;
        struct team team;
        struct op_run t;
        op_begin(&t, IR_OP_RotaryEmbedding, 0);
        op_int(&t, "interleaved", interleaved);
        op_int(&t, "rotary_embedding_dim", 2 * HALF);
        const struct tensor *x =
            op_add_numbers(&t, &random, dtype, 4, (const int64_t[]){1, HEADS, LENGTH, SIZE});
        const struct tensor *cosines =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, HALF});
        const struct tensor *sines =
            op_add_numbers(&t, &random, dtype, 3, (const int64_t[]){1, LENGTH, HALF});
        op_threads(&t, &team, round % 3 + 1);
        op_go(&t);
        const struct tensor *y = &t.outputs[0].tensor;
        for (int64_t head = 0; head < HEADS * LENGTH; head++) {
            const int64_t base = head * SIZE, row = head % LENGTH * HALF;
            for (int64_t k = 0; k < HALF; k++) {
                const int64_t first = base + (interleaved ? 2 * k : k);
                const int64_t second = first + (interleaved ? 1 : HALF);
                const double a = op_number(x, first), b = op_number(x, second);
                const double c = op_number(cosines, row + k), s = op_number(sines, row + k);
                op_expect_number(y, first,
                                 op_rounded(dtype, product(dtype, c, a) - product(dtype, s, b)));
                op_expect_number(y, second,
                                 op_rounded(dtype, product(dtype, s, a) + product(dtype, c, b)));
            }
            for (int64_t k = 2 * HALF; k < SIZE; k++)
                op_expect_number(y, base + k, op_number(x, base + k));
        }
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),    cmocka_unit_test(test_einsum),
        cmocka_unit_test(test_scaled),      cmocka_unit_test(test_rotary),
        cmocka_unit_test(test_conv),        cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_causal_conv), cmocka_unit_test(test_linear_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
