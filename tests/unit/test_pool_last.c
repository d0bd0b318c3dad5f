/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool and AveragePool of images whose channels are last give the bits of their definition,
 * written out here: the larger one of a window's numbers in row-major order, from -inf on, and a
 * NaN where there is one; sums of each row of a window, from 0 on, and then of its rows. For random
 * windows, of more rows than are looked at together, and any number of channels. MaxPool of bytes,
 * too.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/op_run.h"

#define PROGRAMS 400
#define MOST_RANK 3

struct shape {
    bool averages, counts_pads;
    tssa_dtype dtype;
    int rank; /* spatial axes */
    int64_t batch, channels;
    int64_t in[MOST_RANK], out[MOST_RANK], kernel[MOST_RANK], stride[MOST_RANK],
        dilation[MOST_RANK], pads[2 * MOST_RANK];
};

/* No pad is as large as the kernel's reach, so that no window is empty. */
static void pick_axis(struct random *random, struct shape *s, int i)
{
    s->kernel[i] = random_int(random, 1, s->rank == 3 ? 4 : 11);
    s->dilation[i] = random_int(random, 1, 2);
    s->stride[i] = random_int(random, 1, 3);
    const int64_t reach = (s->kernel[i] - 1) * s->dilation[i];
    s->pads[i] = random_int(random, 0, reach / 2);
    s->pads[s->rank + i] = random_int(random, 0, reach / 2);
    s->in[i] = reach + 1 + random_int(random, 0, 6);
    s->out[i] = (s->in[i] + s->pads[i] + s->pads[s->rank + i] - reach - 1) / s->stride[i] + 1;
}

static void pick_shape(struct random *random, struct shape *s)
{
    static const int64_t channels[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 48, 70};
    s->rank = (int)random_int(random, 1, MOST_RANK);
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_UINT8, TSSA_INT8};
    s->dtype = dtypes[random_int(random, 0, 3)];
    s->averages = s->dtype == TSSA_FLOAT && random_chance(random, 50);
    s->counts_pads = random_chance(random, 50);
    s->batch = random_int(random, 1, 2);
    s->channels = channels[random_int(random, 0, sizeof channels / sizeof *channels - 1)];
    for (int i = 0; i < s->rank; i++)
        pick_axis(random, s, i);
}

static int64_t count_of(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

/* Where in the image element `k` of the kernel is for window `o`; -1: outside. */
static int64_t pixel_of(const struct shape *s, const int64_t *o, const int64_t *k)
{
    int64_t pixel = 0;
    for (int i = 0; i < s->rank; i++) {
        const int64_t at = o[i] * s->stride[i] - s->pads[i] + k[i] * s->dilation[i];
        if (at < 0 || at >= s->in[i])
            return -1;
        pixel = pixel * s->in[i] + at;
    }
    return pixel;
}

static float mean(const struct shape *s, const float *x, const int64_t *o, int64_t channel)
{
    const int64_t columns = s->kernel[s->rank - 1];
    float sum = 0, row = 0;
    int64_t count = 0;
    for (int64_t n = 0; n < count_of(s->rank, s->kernel); n++) {
        int64_t k[MOST_RANK];
        unflatten(s->rank, s->kernel, n, k);
        const int64_t pixel = pixel_of(s, o, k);
        if (pixel >= 0) {
            row += x[pixel * s->channels + channel];
            count++;
        }
        if (n % columns == columns - 1) {
            sum += row;
            row = 0;
        }
    }
    return sum / (float)(s->counts_pads ? count_of(s->rank, s->kernel) : count);
}

static float largest(const struct shape *s, const float *x, const int64_t *o, int64_t channel)
{
    float y = -INFINITY;
    for (int64_t n = 0; n < count_of(s->rank, s->kernel); n++) {
        int64_t k[MOST_RANK];
        unflatten(s->rank, s->kernel, n, k);
        const int64_t pixel = pixel_of(s, o, k);
        const float value = pixel < 0 ? 0 : x[pixel * s->channels + channel];
        if (pixel >= 0 && (value > y || value != value))
            y = value;
    }
    return y;
}

static uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void check_bits(const struct shape *s, const float *x, const float *y)
{
    const int64_t pixels = count_of(s->rank, s->in), windows = count_of(s->rank, s->out);
    for (int64_t i = 0; i < s->batch * windows * s->channels; i++) {
        const int64_t channel = i % s->channels, window = i / s->channels % windows,
                      image = i / s->channels / windows;
        int64_t o[MOST_RANK];
        unflatten(s->rank, s->out, window, o);
        const float want =
            (s->averages ? mean : largest)(s, x + image * pixels * s->channels, o, channel);
        /* Which of two NaNs a sum is, is nobody's promise. */
        const bool both = s->averages && isnan(want) && isnan(y[i]);
        if (!both && bits_of(want) != bits_of(y[i]))
            fail_msg("element %d is %g, not %g", (int)i, (double)y[i], (double)want);
    }
}

static int number_at(tssa_dtype dtype, const void *bytes, int64_t i)
{
    return dtype == TSSA_INT8 ? ((const int8_t *)bytes)[i] : ((const uint8_t *)bytes)[i];
}

static int largest_byte(const struct shape *s, const char *x, const int64_t *o, int64_t channel)
{
    int y = s->dtype == TSSA_INT8 ? INT8_MIN : 0;
    for (int64_t n = 0; n < count_of(s->rank, s->kernel); n++) {
        int64_t k[MOST_RANK];
        unflatten(s->rank, s->kernel, n, k);
        const int64_t pixel = pixel_of(s, o, k);
        const int value = pixel < 0 ? y : number_at(s->dtype, x, pixel * s->channels + channel);
        y = value > y ? value : y;
    }
    return y;
}

static void check_bytes(const struct shape *s, const char *x, const void *y)
{
    const int64_t pixels = count_of(s->rank, s->in), windows = count_of(s->rank, s->out);
    for (int64_t i = 0; i < s->batch * windows * s->channels; i++) {
        int64_t o[MOST_RANK];
        unflatten(s->rank, s->out, i / s->channels % windows, o);
        assert_int_equal(number_at(s->dtype, y, i),
                         largest_byte(s, x + i / s->channels / windows * pixels * s->channels, o,
                                      i % s->channels));
    }
}

/* Some are what comparisons treat otherwise. */
static void fill(struct random *random, float *x, int64_t n)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F};
    const bool any = random_chance(random, 50);
    random_floats(x, (size_t)n, (uint32_t)random_bits(random));
    for (int64_t i = 0; any && i < n; i++)
        if (random_chance(random, 10))
            x[i] = special[random_int(random, 0, 4)];
}

static void check(struct random *random)
{
    struct shape s;
    struct op_run run;
    pick_shape(random, &s);
    int64_t dims[MOST_RANK + 2] = {s.batch}, result[MOST_RANK + 2] = {s.batch};
    memcpy(dims + 1, s.in, (size_t)s.rank * sizeof *dims);
    memcpy(result + 1, s.out, (size_t)s.rank * sizeof *dims);
    dims[s.rank + 1] = result[s.rank + 1] = s.channels;
    const int64_t n = count_of(s.rank + 2, dims);
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    fill(random, x, n);
    op_begin(&run, s.averages ? IR_OP_AveragePool : IR_OP_MaxPool, 0);
    if (s.averages)
        op_int(&run, "count_include_pad", s.counts_pads);
    op_ints(&run, "kernel_shape", (size_t)s.rank, s.kernel);
    op_ints(&run, "strides", (size_t)s.rank, s.stride);
    op_ints(&run, "dilations", (size_t)s.rank, s.dilation);
    op_ints(&run, "pads", 2 * (size_t)s.rank, s.pads);
    op_int(&run, "channels_last", 1);
    op_add(&run, s.dtype, s.rank + 2, dims, x);
    no_error(op_try(&run));
    const void *y = op_output(&run, 0, s.dtype, s.rank + 2, result)->data;
    if (s.dtype == TSSA_FLOAT)
        check_bits(&s, x, y);
    else
        check_bytes(&s, (const char *)x, y);
    op_close(&run);
    free(x);
}

static void test_windows(void **state)
{
    struct random random = {.state = 7};
    (void)state;
    for (int i = 0; i < PROGRAMS; i++)
        check(&random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
