/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/kernels/by_hand.h"

#include <math.h>
#include <string.h>

#include "bench/by_hand/vectors.h"

/* A row is whole vectors and the row's last LANES elements, of which `rest` are new. */
static inline vector load(const float *x)
{
    vector v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void store(float *y, vector v)
{
    memcpy(y, &v, sizeof v);
}

static integers lane_numbers(void)
{
    integers numbers;
    for (int i = 0; i < LANES; i++)
        numbers[i] = i;
    return numbers;
}

/* Which of a row's last LANES elements are in no whole vector. */
static integers lanes_of_rest(int n)
{
    return lane_numbers() >= LANES - n % LANES;
}

/* Half of the lanes is joined with the other half, and so on. */
static float sum_of_lanes(vector v)
{
    float lanes[LANES];
    memcpy(lanes, &v, sizeof v);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static float greatest_lane(vector v)
{
    float lanes[LANES];
    memcpy(lanes, &v, sizeof v);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
    return lanes[0];
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static float greatest_of_row(const float *x, int n)
{
    vector a = load(x), b = load(x + n - LANES);
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a = greater(load(x + i), a);
        b = greater(load(x + i + LANES), b);
    }
    if (i + LANES <= n)
        a = greater(load(x + i), a);
    return greatest_lane(greater(a, b));
}

static void softmax_row(const float *x, int n, integers is_rest, float *y)
{
    const float greatest = greatest_of_row(x, n);
    const vector none = {0};
    vector sum = none, rest = exp_of(load(x + n - LANES) - greatest);
    for (int i = 0; i + LANES <= n; i += LANES) {
        const vector e = exp_of(load(x + i) - greatest);
        sum += e;
        store(y + i, e);
    }
    sum += choose(is_rest, rest, none);
    const float factor = 1.0F / sum_of_lanes(sum);
    for (int i = 0; i + LANES <= n; i += LANES)
        store(y + i, load(y + i) * factor);
    store(y + n - LANES, rest * factor);
}

void softmax_by_hand(const float *x, int rows, int n, float *y)
{
    const integers is_rest = lanes_of_rest(n);
    for (int64_t row = 0; row < rows; row++)
        softmax_row(x + row * n, n, is_rest, y + row * n);
}

/* ---- Layer normalization --------------------------------------------------------------------- */

static float mean_of_row(const float *x, int n, integers is_rest)
{
    const vector none = {0};
    vector a = choose(is_rest, load(x + n - LANES), none), b = none;
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += load(x + i);
        b += load(x + i + LANES);
    }
    if (i + LANES <= n)
        a += load(x + i);
    return sum_of_lanes(a + b) / (float)n;
}

static float variance_of_row(const float *x, int n, integers is_rest, float mean)
{
    const vector none = {0}, rest = load(x + n - LANES) - mean;
    vector a = choose(is_rest, rest * rest, none), b = none;
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vector p = load(x + i) - mean, q = load(x + i + LANES) - mean;
        a += p * p;
        b += q * q;
    }
    if (i + LANES <= n) {
        const vector p = load(x + i) - mean;
        a += p * p;
    }
    return sum_of_lanes(a + b) / (float)n;
}

void layer_norm_by_hand(const float *x, const float *scale, const float *bias, int rows, int n,
                        float *y)
{
    const integers is_rest = lanes_of_rest(n);
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        const float mean = mean_of_row(x, n, is_rest);
        const float factor = 1.0F / sqrtf(variance_of_row(x, n, is_rest, mean) + 1e-5F);
        for (int i = 0; i < n; i += LANES) {
            const int at = i + LANES <= n ? i : n - LANES;
            store(y + at, (load(x + at) - mean) * factor * load(scale + at) + load(bias + at));
        }
    }
}

/* ---- ArgMax ---------------------------------------------------------------------------------- */

static int64_t argmax_row(const float *x, int n, integers lanes)
{
    vector greatest = load(x);
    integers at = lanes;
    for (int i = LANES; i < n; i += LANES) {
        const int from = i + LANES <= n ? i : n - LANES;
        const vector v = load(x + from);
        const integers is_greater = v > greatest;
        greatest = choose(is_greater, v, greatest);
        at = ((lanes + from) & is_greater) | (at & ~is_greater);
    }
    int best = 0;
    for (int i = 1; i < LANES; i++)
        if (greatest[i] > greatest[best] || (greatest[i] == greatest[best] && at[i] < at[best]))
            best = i;
    return at[best];
}

void argmax_by_hand(const float *x, int rows, int n, int64_t *y)
{
    const integers lanes = lane_numbers();
    for (int64_t row = 0; row < rows; row++)
        y[row] = argmax_row(x + row * n, n, lanes);
}
