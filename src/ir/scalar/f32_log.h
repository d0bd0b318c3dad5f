/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logarithms of float32: log and log1p, by log(2^e (1 + f)) = e ln(2) + log(1 + f), -1/3 <= f <
 * 1/3. Errors are in docs/numerics.md; tests/unit/test_numerics.c holds them.
 */
#ifndef TSSA_IR_SCALAR_F32_LOG_H
#define TSSA_IR_SCALAR_F32_LOG_H

#include "ir/scalar/exact.h"

/* e ln(2) + log(1 + f) */
SCALAR_FN float f32_log_reduced(float e, float f)
{
    float p = f32_fma(f, 0x1.e97cd8p-4f, -0x1.06d2f2p-3f);
    p = f32_fma(p, f, 0x1.b9347p-4f);
    p = f32_fma(p, f, -0x1.f3a83ap-4f);
    p = f32_fma(p, f, 0x1.24ea8cp-3f);
    p = f32_fma(p, f, -0x1.5597dcp-3f);
    p = f32_fma(p, f, 0x1.9997f4p-3f);
    p = f32_fma(p, f, -0x1.ffff16p-3f);
    p = f32_fma(p, f, 0x1.555556p-2f);
    p = f32_fma(p, f, -0.5f);
    float tail = f32_fma(e, -0x1.05c61p-29f, f * f * p);
    return f32_fma(e, 0x1.62e43p-1f, f + tail);
}

/* An integer of at most 23 bits, exactly. */
SCALAR_FN float f32_of_int(int32_t i)
{
    return (float)i;
}

SCALAR_FN float f32_log(float x)
{
    int tiny = x < 0x1p-126f;
    float normal = tiny ? x * 0x1p+23f : x;
    uint32_t bits = f32_bits(normal), above = bits - 0x3f2aaaab; /* 2/3 */
    int32_t e = (int32_t)above >> 23;
    float f = f32_of(bits - ((uint32_t)e << 23)) - 1.0f;
    float y = f32_log_reduced(f32_of_int(e) - (tiny ? 23.0f : 0.0f), f);
    y = x < INFINITY ? y : x;
    y = x < 0.0f ? NAN : y;
    return x == 0.0f ? -INFINITY : y;
}

/* f = (1 + x) 2^-e - 1 = x 2^-e + (2^-e - 1): exact but for one rounding, however small x is. */
SCALAR_FN float f32_log1p(float x)
{
    float sum = 1.0f + x;
    uint32_t above = f32_bits(sum) - 0x3f2aaaab;
    int32_t e = (int32_t)above >> 23;
    /* 2^-e is a normal number but for e = 127 and 128. */
    float quarter = f32_of((uint32_t)(127 + 2 - e) << 23); /* 2^(2-e) */
    float f = f32_fma(0.25f, quarter, -1.0f) + 0.25f * quarter * x;
    float y = f32_log_reduced(f32_of_int(e), f);
    y = f32_abs(x) < 0x1p-25f ? x : y;
    y = x < INFINITY ? y : x;
    y = x < -1.0f ? NAN : y;
    return x == -1.0f ? -INFINITY : y;
}

#endif
