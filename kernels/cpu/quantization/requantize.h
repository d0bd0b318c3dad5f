/* SPDX-License-Identifier: Apache-2.0 */
/* Exact integer sums to quantized elements: QLinearConv and QLinearMatMul. */
#ifndef TSSA_KERNELS_CPU_QUANTIZATION_REQUANTIZE_H
#define TSSA_KERNELS_CPU_QUANTIZATION_REQUANTIZE_H

#include "device/kernel.h"

struct requantize {
    tssa_dtype dtype;       /* of the result */
    struct buffer *factors; /* per channel: a scale * b scale / y scale, as float */
    float zero, low, high;  /* of the result */
};

/* One number (scale or zero point) at operand `index`; `fallback` when absent. */
tssa_status *requantize_scalar(const struct kernel_args *args, uint32_t index, double fallback,
                               double *value);
/* `count` numbers, from as many elements or from one, as double. */
tssa_status *requantize_vector(struct kernel_args *args, uint32_t index, int64_t count,
                               double fallback, struct buffer **values);
/*
 * From the scales at operands a, b and y, and the result's zero point, whose type is the result's.
 */
tssa_status *requantize_open(struct kernel_args *args, uint32_t a_scale, uint32_t b_scale,
                             uint32_t y_scale, uint32_t y_zero, int64_t channels,
                             struct requantize *r);
void requantize_close(struct requantize *r);
/* Is it a zero point of a result? */
tssa_status *requantize_check(const struct tensor *zero);
/* Products and quotient of float scales round as floats do. */
static inline float requantize_factor(float a, float b, float y)
{
    return a * b / y;
}
/* Sums of one channel. */
void requantize_row(const struct requantize *r, int64_t channel, const double *sums, int64_t count,
                    void *out);
/* One sum each of channels 0 to count - 1. */
void requantize_channels(const struct requantize *r, const double *sums, int64_t count, void *out);

/* The same of sums that are INT32; `bias` is added to each, or biases, one for each channel; NULL:
 * none. */
void requantize_row_i32(const struct requantize *r, int64_t channel, int32_t bias,
                        const int32_t *sums, int64_t count, void *out);
void requantize_channels_i32(const struct requantize *r, const int32_t *biases, const int32_t *sums,
                             int64_t count, void *out);

#endif
