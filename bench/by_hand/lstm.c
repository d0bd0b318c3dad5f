/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 10-layer LSTM of models/programs/lstm.py as one would write it by hand for a batch of one:
 * layer by layer, so that the weights of one are read from a cache by all steps; the products with
 * a layer's inputs for all steps at once; then step by step the product with the state, block by
 * block of units, with their gates on top while the sums are in registers. Weights are packed in
 * the order in which they are read, before anything is timed.
 *
 * Usage: lstm [RUNS], where data.py has written ./data.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vectors.h"

enum { LAYERS = 10, STEPS = 50, UNITS = 256, GATES = 4 };
/* Sums are kept in registers: of 32 or 16, 16 or 8 of a block's gates, 20 or 10 of a product. */
enum { VECTORS = LANES / 4, BLOCK = VECTORS * LANES, BLOCKS = UNITS / BLOCK, ROWS = 5 };

/* Blocks of units: weights of the input [gate][UNITS], of the state [UNITS][gate], of vectors. */
struct layer {
    vector input[BLOCKS][GATES][UNITS][VECTORS];
    vector state[BLOCKS][UNITS][GATES][VECTORS];
    vector bias[BLOCKS][GATES][VECTORS];
};

static struct layer layers[LAYERS];
static vector sums[STEPS][BLOCKS][GATES][VECTORS];
static _Alignas(64) float sequence[STEPS][UNITS];
static const float zeros[UNITS];

/* ---- The layers ------------------------------------------------------------------------------ */

/* What one gate of one block has of the inputs of so many steps. */
static void multiply_rows(const vector weights[UNITS][VECTORS], const vector *bias, int t,
                          int block, int gate)
{
    vector sum[ROWS][VECTORS];
    for (int row = 0; row < ROWS; row++)
        memcpy(sum[row], bias, sizeof sum[row]);
    for (int i = 0; i < UNITS; i++) {
#pragma GCC unroll 20
        for (int k = 0; k < ROWS * VECTORS; k++)
            sum[k / VECTORS][k % VECTORS] += sequence[t + k / VECTORS][i] * weights[i][k % VECTORS];
    }
    for (int row = 0; row < ROWS; row++)
        memcpy(sums[t + row][block][gate], sum[row], sizeof sum[row]);
}

static void multiply_inputs(const struct layer *layer)
{
    for (int block = 0; block < BLOCKS; block++)
        for (int gate = 0; gate < GATES; gate++)
            for (int t = 0; t < STEPS; t += ROWS)
                multiply_rows(layer->input[block][gate], layer->bias[block][gate], t, block, gate);
}

/* A block of a step's new state. */
static void step(const vector weights[UNITS][GATES][VECTORS], vector sum_of_inputs[GATES][VECTORS],
                 const float *h, vector *c, float *new_h)
{
    vector sum[GATES][VECTORS];
    memcpy(sum, sum_of_inputs, sizeof sum);
    for (int i = 0; i < UNITS; i++) {
#pragma GCC unroll 16
        for (int k = 0; k < GATES * VECTORS; k++)
            sum[k / VECTORS][k % VECTORS] += h[i] * weights[i][k / VECTORS][k % VECTORS];
    }
    for (int v = 0; v < VECTORS; v++) {
        c[v] = sigmoid_of(sum[1][v]) * c[v] + sigmoid_of(sum[0][v]) * tanh_of(sum[2][v]);
        const vector h_of_block = sigmoid_of(sum[3][v]) * tanh_of(c[v]);
        memcpy(new_h + v * LANES, &h_of_block, sizeof h_of_block);
    }
}

/* The sequence of its inputs becomes that of its outputs. */
static void run_layer(const struct layer *layer)
{
    vector c[BLOCKS][VECTORS] = {0};
    const float *h = zeros;
    multiply_inputs(layer);
    for (int t = 0; t < STEPS; t++) {
        /* Every second step backwards: the last block is still in the second-level cache. */
        for (int k = 0; k < BLOCKS; k++) {
            const int block = t % 2 ? BLOCKS - 1 - k : k;
            step(layer->state[block], sums[t][block], h, c[block], sequence[t] + block * BLOCK);
        }
        h = sequence[t];
    }
}

static void run(const float *x)
{
    memcpy(sequence, x, sizeof sequence);
    for (int j = 0; j < LAYERS; j++)
        run_layer(&layers[j]);
}

/* ---- Data, times ----------------------------------------------------------------------------- */

static float *read_floats(const char *name, int layer, size_t count)
{
    char path[64];
    float *data = malloc(count * sizeof *data);
    snprintf(path, sizeof path, layer < 0 ? "data/lstm/%s.bin" : "data/lstm/%s_%d.bin", name,
             layer);
    FILE *file = fopen(path, "rb");
    if (!file || !data || fread(data, sizeof *data, count, file) != count) {
        fprintf(stderr, "lstm: cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return data;
}

/* From [gate][input][unit]. */
static void pack(struct layer *layer, int j)
{
    float *input = read_floats("w_ih", j, GATES * UNITS * UNITS);
    float *state = read_floats("w_hh", j, GATES * UNITS * UNITS);
    float *b_ih = read_floats("b_ih", j, GATES * UNITS),
          *b_hh = read_floats("b_hh", j, GATES * UNITS);
    for (int gate = 0; gate < GATES; gate++)
        for (int unit = 0; unit < UNITS; unit++) {
            const int block = unit / BLOCK, v = unit % BLOCK / LANES, lane = unit % LANES;
            const int row = gate * UNITS + unit;
            layer->bias[block][gate][v][lane] = b_ih[row] + b_hh[row];
            for (int i = 0; i < UNITS; i++) {
                const int from = (gate * UNITS + i) * UNITS + unit;
                layer->input[block][gate][i][v][lane] = input[from];
                layer->state[block][i][gate][v][lane] = state[from];
            }
        }
    free(input);
    free(state);
    free(b_ih);
    free(b_hh);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(const float *x, int runs)
{
    double *times = malloc((size_t)runs * sizeof *times);
    for (int i = -3; i < runs; i++) {
        const double start = now();
        run(x);
        if (i >= 0)
            times[i] = now() - start;
    }
    qsort(times, (size_t)runs, sizeof *times, by_value);
    printf("RES lstm fused min_us %.2f med_us %.2f n %d\n", times[0], times[runs / 2], runs);
    free(times);
}

int main(int argc, char **argv)
{
    float *x = read_floats("input_0", -1, STEPS * UNITS),
          *expected = read_floats("output_0", -1, UNITS);
    for (int j = 0; j < LAYERS; j++)
        pack(&layers[j], j);
    run(x);
    for (int i = 0; i < UNITS; i++)
        if (!(fabsf(sequence[STEPS - 1][i] - expected[i]) <= 1e-5F + 1e-3F * fabsf(expected[i]))) {
            fprintf(stderr, "lstm: output %d is %g, not %g\n", i, sequence[STEPS - 1][i],
                    expected[i]);
            return 1;
        }
    measure(x, argc > 1 ? atoi(argv[1]) : 100);
    free(x);
    free(expected);
    return 0;
}
