/* SPDX-License-Identifier: Apache-2.0 */
/* DFT and STFT against sums written out; window functions; MelWeightMatrix. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "kernels/cpu/signal/fft.h"

#define PI 3.14159265358979323846

/* Element k of the transform of n complex numbers, `step` apart. */
static void naive(const float *x, int64_t n, int64_t step, int64_t k, double sign, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t j = 0; j < n; j++) {
        double angle = sign * 2 * PI * (double)(j * k % n) / (double)n;
        double re = (double)x[2 * j * step], im = (double)x[2 * j * step + 1];
        out[0] += re * cos(angle) - im * sin(angle);
        out[1] += re * sin(angle) + im * cos(angle);
    }
}

static void check_length(int64_t n)
{
    size_t table_size, scratch_size;
    struct fft fft;
    assert_true(fft_sizes(n, &table_size, &scratch_size));
    double *tables = malloc(table_size * sizeof *tables);
    double *scratch = malloc((scratch_size + 1) * sizeof *scratch);
    double *values = malloc(2 * (size_t)n * sizeof *values);
    float *x = malloc(2 * (size_t)n * sizeof *x);
    assert_true(tables && scratch && values && x);
    random_floats(x, 2 * (size_t)n, (uint32_t)n);
    fft_init(&fft, n, tables);
    for (int inverse = 0; inverse < 2; inverse++) {
        for (int64_t i = 0; i < 2 * n; i++)
            values[i] = (double)x[i];
        fft_run(&fft, values, scratch, inverse);
        for (int64_t k = 0; k < n; k++) {
            double expected[2];
            naive(x, n, 1, k, inverse ? 1 : -1, expected);
            for (int p = 0; p < 2; p++)
                expect_close(values[2 * k + p], expected[p] / (double)(inverse ? n : 1), 1e-12, "X",
                             (size_t)k);
        }
    }
    free(tables);
    free(scratch);
    free(values);
    free(x);
}

static void test_lengths(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 40; n++)
        check_length(n);
    check_length(128);
    check_length(243);
    check_length(257);
    size_t tables, scratch;
    assert_false(fft_sizes(0, &tables, &scratch));
    assert_false(fft_sizes(INT64_MAX, &tables, &scratch));
}

/* ---- DFT ------------------------------------------------------------------------------------- */

enum { OUTER = 2, LENGTH = 6, INNER = 3 };

static void dft(struct op_run *t, const int64_t *length, const int64_t *axis, int64_t parts,
                const float *x)
{
    op_add(t, TSSA_FLOAT, 4, (const int64_t[]){OUTER, LENGTH, INNER, parts}, x);
    if (length)
        op_add(t, TSSA_INT64, 0, NULL, length);
    else
        op_absent(t);
    op_add(t, TSSA_INT64, 0, NULL, axis);
}

/* Cut off or filled up to `length`, along axis 1. */
static void check_dft(int64_t length)
{
    const int64_t axis = 1;
    float x[OUTER * LENGTH * INNER * 2], line[2 * 16] = {0};
    random_floats(x, sizeof x / sizeof *x, 9);
    struct op_run t;
    op_begin(&t, IR_OP_DFT, 0);
    dft(&t, &length, &axis, 2, x);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[1], length);
    const float *y = t.outputs[0].tensor.data;
    for (int64_t o = 0; o < OUTER; o++)
        for (int64_t i = 0; i < INNER; i++) {
            for (int64_t j = 0; j < LENGTH && j < length; j++)
                for (int64_t p = 0; p < 2; p++)
                    line[2 * j + p] = x[((o * LENGTH + j) * INNER + i) * 2 + p];
            for (int64_t k = 0; k < length; k++) {
                double expected[2];
                naive(line, length, 1, k, -1, expected);
                for (int64_t p = 0; p < 2; p++)
                    expect_close((double)y[((o * length + k) * INNER + i) * 2 + p], expected[p],
                                 1e-6, "y", (size_t)k);
            }
        }
    op_close(&t);
}

static void test_dft(void **state)
{
    (void)state;
    check_dft(6);
    check_dft(4);
    check_dft(9);
}

/* A real signal's one-sided transform, and back. */
static void test_one_sided(void **state)
{
    (void)state;
    const int64_t axis = -3;
    float x[OUTER * LENGTH * INNER];
    random_floats(x, sizeof x / sizeof *x, 10);
    struct op_run t, back;
    op_begin(&t, IR_OP_DFT, 0);
    op_int(&t, "onesided", 1);
    dft(&t, NULL, &axis, 1, x);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[1], LENGTH / 2 + 1);
    op_begin(&back, IR_OP_DFT, 0);
    op_int(&back, "onesided", 1);
    op_int(&back, "inverse", 1);
    op_add(&back, TSSA_FLOAT, 4, t.outputs[0].tensor.dims, t.outputs[0].tensor.data);
    op_absent(&back);
    op_add(&back, TSSA_INT64, 0, NULL, &axis);
    op_go(&back);
    assert_int_equal(back.outputs[0].tensor.dims[3], 1);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        expect_close((double)((const float *)back.outputs[0].tensor.data)[i], (double)x[i], 1e-6,
                     "x", i);
    op_close(&back);
    op_close(&t);
}

static void dft_refused(int64_t length, int64_t axis, int64_t parts)
{
    float x[OUTER * LENGTH * INNER * 3] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_DFT, 0);
    dft(&t, &length, &axis, parts, x);
    op_fails(&t, "");
    op_close(&t);
}

static void test_dft_refuses(void **state)
{
    (void)state;
    dft_refused(0, 1, 2);
    dft_refused(-4, 1, 2);
    dft_refused(INT64_MAX, 1, 2);
    dft_refused(4, 3, 2);
    dft_refused(4, -5, 2);
    dft_refused(4, 1, 3);
}

/* ---- STFT ------------------------------------------------------------------------------------ */

static void check_stft(int rank)
{
    enum { BATCH = 2, SIGNAL = 11, FRAME = 4, STEP = 3, FRAMES = 3, KEPT = FRAME / 2 + 1 };
    static const int64_t step = STEP, frame = FRAME;
    static const float window[FRAME] = {0.5f, 1, 1, 0.25f};
    float x[BATCH * SIGNAL];
    random_floats(x, BATCH * SIGNAL, 11);
    struct op_run t;
    op_begin(&t, IR_OP_STFT, 0);
    op_add(&t, TSSA_FLOAT, rank, (const int64_t[]){BATCH, SIGNAL, 1}, x);
    op_add(&t, TSSA_INT64, 0, NULL, &step);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){FRAME}, window);
    op_add(&t, TSSA_INT64, 0, NULL, &frame);
    op_go(&t);
    assert_int_equal(tensor_count(&t.outputs[0].tensor), BATCH * FRAMES * KEPT * 2);
    for (int64_t f = 0; f < BATCH * FRAMES; f++)
        for (int64_t k = 0; k < KEPT; k++) {
            float values[2 * FRAME] = {0};
            double expected[2];
            for (int64_t i = 0; i < FRAME; i++)
                values[2 * i] = window[i] * x[f / FRAMES * SIGNAL + f % FRAMES * STEP + i];
            naive(values, FRAME, 1, k, -1, expected);
            for (int64_t p = 0; p < 2; p++)
                expect_close(
                    (double)((const float *)t.outputs[0].tensor.data)[(f * KEPT + k) * 2 + p],
                    expected[p], 1e-6, "y", (size_t)(f * KEPT + k));
        }
    op_close(&t);
}

/* A real signal may leave out its axis of parts. */
static void test_stft(void **state)
{
    (void)state;
    check_stft(3);
    check_stft(2);
}

static void stft_refused(int64_t step, int64_t length)
{
    float x[8] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_STFT, 0);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 8, 1}, x);
    op_add(&t, TSSA_INT64, 0, NULL, &step);
    op_absent(&t);
    op_add(&t, TSSA_INT64, 0, NULL, &length);
    op_fails(&t, "");
    op_close(&t);
}

static void test_stft_refuses(void **state)
{
    (void)state;
    stft_refused(0, 4);
    stft_refused(-1, 4);
    stft_refused(1, 0);
    stft_refused(1, 9);
}

/* ---- Windows and bands ----------------------------------------------------------------------- */

static void check_window(enum ir_op_id id, int64_t periodic, int64_t size, int64_t at, double value)
{
    struct op_run t;
    op_begin(&t, id, 0);
    op_int(&t, "periodic", periodic);
    op_int(&t, "output_datatype", TSSA_DOUBLE);
    op_add(&t, TSSA_INT64, 0, NULL, &size);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[0], size);
    expect_close(((const double *)t.outputs[0].tensor.data)[at], value, 1e-14, "window",
                 (size_t)at);
    op_close(&t);
}

static void test_windows(void **state)
{
    (void)state;
    check_window(IR_OP_HannWindow, 1, 8, 4, 1);
    check_window(IR_OP_HannWindow, 1, 8, 2, 0.5);
    check_window(IR_OP_HannWindow, 0, 9, 8, 0);
    check_window(IR_OP_HammingWindow, 0, 9, 0, 4.0 / 46);
    check_window(IR_OP_HammingWindow, 1, 8, 2, 25.0 / 46);
    check_window(IR_OP_BlackmanWindow, 1, 8, 2, 0.34);
    check_window(IR_OP_BlackmanWindow, 0, 1, 0, 0);
    const int64_t negative = -1;
    struct op_run t;
    op_begin(&t, IR_OP_HannWindow, 0);
    op_add(&t, TSSA_INT64, 0, NULL, &negative);
    op_fails(&t, "");
    op_close(&t);
}

static void begin_mel(struct op_run *t, const int64_t *sizes, const float *edges)
{
    op_begin(t, IR_OP_MelWeightMatrix, 0);
    for (int i = 0; i < 3; i++)
        op_add(t, TSSA_INT64, 0, NULL, &sizes[i]);
    for (int i = 0; i < 2; i++)
        op_add(t, TSSA_FLOAT, 0, NULL, &edges[i]);
}

/* Every band rises to 1 once and falls; edges beyond the spectrum are refused. */
static void test_mel(void **state)
{
    (void)state;
    const int64_t sizes[3] = {4, 64, 8000};
    const float edges[2] = {100, 3500}, beyond[2] = {100, 1e9f}, below[2] = {-600, 3500};
    struct op_run t;
    begin_mel(&t, sizes, edges);
    op_go(&t);
    const struct tensor *y = &t.outputs[0].tensor;
    assert_int_equal(y->dims[0], 33);
    for (int64_t band = 0; band < 4; band++) {
        int tops = 0;
        for (int64_t row = 0; row < 33; row++) {
            float value = ((const float *)y->data)[row * 4 + band];
            assert_true(value >= 0 && value <= 1);
            tops += value == 1;
        }
        assert_int_equal(tops, 1);
    }
    op_close(&t);
    begin_mel(&t, sizes, beyond);
    op_fails(&t, "");
    op_close(&t);
    begin_mel(&t, sizes, below);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),   cmocka_unit_test(test_dft),
        cmocka_unit_test(test_one_sided), cmocka_unit_test(test_dft_refuses),
        cmocka_unit_test(test_stft),      cmocka_unit_test(test_stft_refuses),
        cmocka_unit_test(test_windows),   cmocka_unit_test(test_mel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
