/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/quantization/requantize.h"

#include <inttypes.h>
#include <math.h>

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

tssa_status *requantize_open(struct kernel_args *args, uint32_t a_scale, uint32_t b_scale,
                             uint32_t y_scale, uint32_t y_zero, int64_t channels,
                             struct requantize *r)
{
    const struct tensor *zero;
    double a, y;
    TRY(kernel_tensor(args, y_zero, &zero));
    if (zero->dtype != TSSA_UINT8 && zero->dtype != TSSA_INT8)
        return ERROR(TSSA_RUNTIME, "the result cannot be %s", tssa_dtype_name(zero->dtype));
    r->dtype = zero->dtype;
    r->low = r->dtype == TSSA_INT8 ? -128 : 0;
    r->high = r->dtype == TSSA_INT8 ? 127 : 255;
    TRY(kernel_scalar_double(args, y_zero, &r->zero));
    TRY(kernel_scalar_double(args, a_scale, &a));
    TRY(kernel_scalar_double(args, y_scale, &y));
    TRY(requantize_vector(args, b_scale, channels, 1, &r->factors));
    /* Products and quotient of float scales round as floats do. */
    for (int64_t i = 0; i < channels; i++) {
        double *factor = (double *)r->factors->data + i;
        *factor = (double)((float)a * (float)*factor / (float)y);
    }
    return NULL;
}

void requantize_close(struct requantize *r)
{
    buffer_release(r->factors);
}

static int64_t quantize(const struct requantize *r, double sum, double factor)
{
    double value = rint((double)((float)sum * (float)factor)) + r->zero;
    return (int64_t)(isnan(value)      ? r->low
                     : value < r->low  ? r->low
                     : value > r->high ? r->high
                                       : value);
}

void requantize_row(const struct requantize *r, int64_t channel, const double *sums, int64_t count,
                    void *out)
{
    double factor = ((const double *)r->factors->data)[channel];
    for (int64_t i = 0; i < count; i++)
        dtype_store_int64(r->dtype, (char *)out + i, quantize(r, sums[i], factor));
}

void requantize_channels(const struct requantize *r, const double *sums, int64_t count, void *out)
{
    for (int64_t i = 0; i < count; i++)
        dtype_store_int64(r->dtype, (char *)out + i,
                          quantize(r, sums[i], ((const double *)r->factors->data)[i]));
}
