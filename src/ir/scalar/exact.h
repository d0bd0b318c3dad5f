/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions of f32_*.h and wide.h are made of: operations that are exact everywhere, that
 * is, whose result IEEE 754 or integer arithmetic leaves no choice about. Add, subtract, multiply,
 * divide, square root, fused multiply-add, comparison, choice, conversion that loses nothing, and
 * bits. A function made of them gives the same bits in each compiler's vectors of any width, in the
 * interpreter and on every device.
 *
 * No branch, no call, no table but the digits of 2/pi: a loop over such a function becomes vectors.
 * Choices are conditional expressions whose two sides are both computed. Compilers must not fuse or
 * reorder (see cmake/TssaCompiler.cmake); fused is what is written so.
 */
#ifndef TSSA_IR_SCALAR_EXACT_H
#define TSSA_IR_SCALAR_EXACT_H

/* Generated code (codegen/clike) may have these of its own, and no headers. */
#ifndef SCALAR_FN
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SCALAR_FN static inline __attribute__((always_inline, unused))
#define SCALAR_TABLE static const __attribute__((unused))

SCALAR_FN uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

SCALAR_FN float f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SCALAR_FN uint64_t f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

SCALAR_FN double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a * b + c, rounded once: an instruction from x86-64-v3 on, before it libm's, which is exact and
 * slow. */
SCALAR_FN float f32_fma(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

SCALAR_FN double f64_fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

#endif

SCALAR_FN float f32_abs(float x)
{
    return f32_of(f32_bits(x) & 0x7fffffff);
}

/* The magnitude of a with the sign of b. */
SCALAR_FN float f32_with_sign(float a, float b)
{
    return f32_of((f32_bits(a) & 0x7fffffff) | (f32_bits(b) & 0x80000000));
}

/* All bits, or none. */
SCALAR_FN uint32_t f32_mask(int truth)
{
    return truth ? UINT32_MAX : 0;
}

/* The bits of a where the mask has them set, else those of b. */
SCALAR_FN uint32_t f32_choose(uint32_t mask, uint32_t a, uint32_t b)
{
    return (a & mask) | (b & ~mask);
}

SCALAR_FN double f64_abs(double x)
{
    return f64_of(f64_bits(x) & 0x7fffffffffffffff);
}

SCALAR_FN double f64_with_sign(double a, double b)
{
    return f64_of((f64_bits(a) & 0x7fffffffffffffff) | (f64_bits(b) & 0x8000000000000000));
}

#endif
