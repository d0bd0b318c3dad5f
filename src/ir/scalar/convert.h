/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions of single elements that C leaves open, or has no types for: floats to integers, which
 * give what x86-64 gives, the lowest INT32 or INT64 for what does not fit; FLOAT16 and BFLOAT16,
 * which are their bits, to float32 (exact) and from it (rounded once, to nearest even).
 */
#ifndef TSSA_IR_SCALAR_CONVERT_H
#define TSSA_IR_SCALAR_CONVERT_H

#include "ir/scalar/exact.h"

SCALAR_FN int32_t i32_of_f64(double x)
{
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}

SCALAR_FN int64_t i64_of_f64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

SCALAR_FN uint64_t u64_of_f64(double x)
{
    if (x >= 0x1p63)
        return (uint64_t)i64_of_f64(x - 0x1p63) ^ (uint64_t)1 << 63;
    return (uint64_t)i64_of_f64(x);
}

/*
 * The same as half_to_float and the like of base/dtype.h, without branches, so that the compiler
 * can do several elements at once. Multiplications by powers of two move exponents, and shift the
 * bits of subnormal numbers; they are exact but for the one addition that rounds. Both sides are
 * computed always: a branch around an operation that could trap stops vectorization.
 */
SCALAR_FN float f32_of_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7fff;
    /* Infinity and NaN come out right too: 112 below the highest exponent, and back. */
    uint32_t normal = f32_bits(f32_of((magnitude << 13) + (224u << 23)) * 0x1p-112f);
    uint32_t subnormal = f32_bits(f32_of(magnitude | 126u << 23) - 0.5f);
    return f32_of(sign | f32_choose(f32_mask(magnitude < 0x400), subnormal, normal));
}

SCALAR_FN uint16_t f16_of_f32(float x)
{
    uint32_t bits = f32_bits(x), magnitude = bits & 0x7fffffff;
    /* Overflows to infinity where a half does, then scales back to four times the value. */
    float scaled = (f32_of(magnitude) * 0x1p112f) * 0x1p-110f;
    /* Adding a power of two 13 bits above the value's leaves a half's 10 bits of it, rounded. */
    uint32_t exponent = magnitude & 0x7f800000;
    exponent = exponent < 0x38800000 ? 0x38800000 : exponent;
    uint32_t rounded = f32_bits(f32_of(exponent + 0x07800000) + scaled);
    uint32_t number = (rounded >> 13 & 0x7c00) + (rounded & 0xfff);
    uint32_t nan = 0x7e00 | (bits >> 13 & 0x3ff);
    return (uint16_t)((bits >> 16 & 0x8000) |
                      f32_choose(f32_mask(magnitude > 0x7f800000), nan, number));
}

SCALAR_FN float f32_of_bf16(uint16_t bits)
{
    return f32_of((uint32_t)bits << 16);
}

SCALAR_FN uint16_t bf16_of_f32(float x)
{
    uint32_t bits = f32_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

#endif
