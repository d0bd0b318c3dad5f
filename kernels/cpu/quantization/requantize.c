/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/quantization/requantize.h"

#include <inttypes.h>
#include <math.h>

#include "base/clones.h"

tssa_status *requantize_scalar(const struct kernel_args *args, uint32_t index, double fallback,
                               double *value)
{
    const struct tensor *tensor;
    TRY(kernel_optional_tensor(args, index, &tensor));
    *value = fallback;
    return tensor ? kernel_scalar_double(args, index, value) : NULL;
}

tssa_status *requantize_vector(struct kernel_args *args, uint32_t index, int64_t count,
                               double fallback, struct buffer **values)
{
    const struct tensor *tensor;
    size_t elements, bytes;
    TRY(kernel_optional_tensor(args, index, &tensor));
    int64_t have = tensor ? (int64_t)tensor_count(tensor) : 0;
    if (tensor && have != 1 && have != count)
        return ERROR(TSSA_RUNTIME,
                     "operand %" PRIu32 " has %" PRId64 " elements where 1 or %" PRId64
                     " are needed",
                     index, have, count);
    TRY(tensor_layout(TSSA_DOUBLE, 1, &count, &elements, &bytes));
    TRY(kernel_scratch(args, bytes, values));
    size_t width = tensor ? tssa_dtype_size(tensor->dtype) : 0;
    for (int64_t i = 0; i < count; i++)
        ((double *)(*values)->data)[i] =
            tensor ? dtype_load_double(tensor->dtype, (const char *)tensor->data +
                                                          (have == 1 ? 0 : (size_t)i * width))
                   : fallback;
    return NULL;
}

static const float *factors_of(const struct requantize *r)
{
    return r->factors->data;
}

static tssa_status *open_factors(struct kernel_args *args, uint32_t a_scale, uint32_t b_scale,
                                 uint32_t y_scale, int64_t channels, struct requantize *r)
{
    struct buffer *scales = NULL;
    double a, y;
    TRY(kernel_scalar_double(args, a_scale, &a));
    TRY(kernel_scalar_double(args, y_scale, &y));
    TRY(kernel_scratch(args, (size_t)channels * sizeof(float), &r->factors));
    TRY(requantize_vector(args, b_scale, channels, 1, &scales));
    const double *b = scales->data;
    float *factors = r->factors->data;
    for (int64_t i = 0; i < channels; i++)
        factors[i] = requantize_factor((float)a, (float)b[i], (float)y);
    buffer_release(scales);
    return NULL;
}

tssa_status *requantize_check(const struct tensor *zero)
{
    if (!dtype_in(T_I8U8, zero->dtype))
        return ERROR(TSSA_RUNTIME, "the result cannot be %s", tssa_dtype_name(zero->dtype));
    return NULL;
}

tssa_status *requantize_open(struct kernel_args *args, uint32_t a_scale, uint32_t b_scale,
                             uint32_t y_scale, uint32_t y_zero, int64_t channels,
                             struct requantize *r)
{
    const struct tensor *zero;
    TRY(kernel_tensor(args, y_zero, &zero));
    TRY(requantize_check(zero));
    r->dtype = zero->dtype;
    r->low = r->dtype == TSSA_INT8 ? -128 : 0;
    r->high = r->dtype == TSSA_INT8 ? 127 : 255;
    double number;
    TRY(kernel_scalar_double(args, y_zero, &number));
    r->zero = (float)number;
    return open_factors(args, a_scale, b_scale, y_scale, channels, r);
}

void requantize_close(struct requantize *r)
{
    buffer_release(r->factors);
}

/* NaN becomes the lowest. Beyond the type's range zero is lost in the sum, which does not matter;
 * the low bits of a signed byte are the same. */
static inline uint8_t quantize(const struct requantize *r, float sum, float factor)
{
    float value = rintf(sum * factor) + r->zero;
    value = value > r->low ? value : r->low;
    return (uint8_t)(int32_t)(value < r->high ? value : r->high);
}

void requantize_row(const struct requantize *r, int64_t channel, const double *sums, int64_t count,
                    void *out)
{
    uint8_t *bytes = out;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = quantize(r, (float)sums[i], factors_of(r)[channel]);
}

void requantize_channels(const struct requantize *r, const double *sums, int64_t count, void *out)
{
    uint8_t *bytes = out;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = quantize(r, (float)sums[i], factors_of(r)[i]);
}

/* The bias as a double, in which the sum is exact. */
VECTOR_PROCEDURE(row_i32,
                 (struct requantize r, float factor, double bias, const int32_t *sums, int64_t n,
                  uint8_t *bytes),
                 (r, factor, bias, sums, n, bytes))
{
    for (int64_t i = 0; i < n; i++)
        bytes[i] = quantize(&r, (float)((double)sums[i] + bias), factor);
}

VECTOR_PROCEDURE(channels_i32,
                 (struct requantize r, const float *factors, const int32_t *sums, int64_t n,
                  uint8_t *bytes),
                 (r, factors, sums, n, bytes))
{
    for (int64_t i = 0; i < n; i++)
        bytes[i] = quantize(&r, (float)sums[i], factors[i]);
}

void requantize_row_i32(const struct requantize *r, int64_t channel, int32_t bias,
                        const int32_t *sums, int64_t count, void *out)
{
    row_i32(*r, factors_of(r)[channel], bias, sums, count, out);
}

VECTOR_PROCEDURE(biased_i32,
                 (struct requantize r, const float *factors, const int32_t *biases,
                  const int32_t *sums, int64_t n, uint8_t *bytes),
                 (r, factors, biases, sums, n, bytes))
{
    for (int64_t i = 0; i < n; i++)
        bytes[i] = quantize(&r, (float)((double)sums[i] + (double)biases[i]), factors[i]);
}

void requantize_channels_i32(const struct requantize *r, const int32_t *biases, const int32_t *sums,
                             int64_t count, void *out)
{
    if (biases)
        biased_i32(*r, factors_of(r), biases, sums, count, out);
    else
        channels_i32(*r, factors_of(r), sums, count, out);
}
