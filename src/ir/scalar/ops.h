/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalar operations of ir/scalar.def in C, for one element type: functions with the names that
 * the rows of ir/ops and ir/reduction.def use. A file that includes this has defined
 *
 *     T            the C type of an element
 *     one of T_IS_FLOAT, T_IS_SIGNED, T_IS_UNSIGNED; for integers T_LOWEST, T_HIGHEST
 *     T_IS_FLOAT32 for float: its own functions of ir/scalar; other types take those of double
 *     T_WIDE       for integers: an unsigned type of 32 bits at least and T's width at least
 */
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_fmod.h"
#include "ir/scalar/f32_log.h"
#include "ir/scalar/f32_trig.h"
#include "ir/scalar/f32_wide.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_inverse.h"
#include "ir/scalar/f64_log.h"
#include "ir/scalar/f64_pow.h"
#include "ir/scalar/f64_trig.h"

#define INLINE SCALAR_FN
#define UNARY(NAME, expression)                                                                    \
    INLINE T NAME(T a)                                                                             \
    {                                                                                              \
        return (T)(expression);                                                                    \
    }
#define BINARY(NAME, expression)                                                                   \
    INLINE T NAME(T a, T b)                                                                        \
    {                                                                                              \
        return (T)(expression);                                                                    \
    }
#define TEST(NAME, expression)                                                                     \
    INLINE bool NAME(T a, T b)                                                                     \
    {                                                                                              \
        return (expression);                                                                       \
    }
#define TRUTH(NAME, expression)                                                                    \
    INLINE bool NAME(bool a, bool b)                                                               \
    {                                                                                              \
        return (expression);                                                                       \
    }

/* ---- What the types share -------------------------------------------------------------------- */

#define K(constant) ((T)(constant))
#define SEL(truth, a, b) ((truth) ? (a) : (b))

TEST(LT, a < b)
TEST(LE, a <= b)
TEST(GT, a > b)
TEST(GE, a >= b)
TEST(EQ, a == b)
TRUTH(AND, (int)a &(int)b)
TRUTH(OR, (int)a | (int)b)
TRUTH(XOR, a != b)
INLINE bool NOT(bool a)
{
    return !a;
}

/* ---- Floats ---------------------------------------------------------------------------------- */

#if defined(T_IS_FLOAT)

#define LOWEST ((T)-INFINITY)
#define HIGHEST ((T)INFINITY)
/*
 * Below this magnitude a float can have a fraction; adding and subtracting it rounds to an integer.
 */
#define INTEGERS_FROM ((T)(sizeof(T) == 4 ? 8388608.0 : 4503599627370496.0))
#define MAGNITUDE(a) (sizeof(T) == 4 ? (T)fabsf((float)(a)) : (T)fabs((double)(a)))
#define WITH_SIGN(a, b)                                                                            \
    (sizeof(T) == 4 ? (T)copysignf((float)(a), (float)(b)) : (T)copysign((double)(a), (double)(b)))

BINARY(ADD, a + b)
BINARY(SUB, a - b)
BINARY(MUL, a *b)
BINARY(DIV, a / b)
/* NaN if one is. Written so that gcc makes vectors of one in another, where that is a. */
BINARY(MIN, b != b ? b : a > b ? b : a)
BINARY(MAX, b != b ? b : a < b ? b : a)
#if defined(T_IS_FLOAT32)
BINARY(FMOD, f32_fmod(a, b))
BINARY(POW, f32_pow(a, b))
#else
BINARY(FMOD, fmod((double)a, (double)b))
BINARY(POW, f64_pow((double)a, (double)b))
#endif
INLINE T MOD(T a, T b)
{
    T r = FMOD(a, b);
    if (r == 0)
        return WITH_SIGN(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}
UNARY(NEG, -a)
UNARY(ABS, MAGNITUDE(a))
UNARY(SIGN, a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a)
INLINE T ROUND(T a)
{
    T magnitude = MAGNITUDE(a);
    T rounded = (magnitude + INTEGERS_FROM) - INTEGERS_FROM;
    return magnitude < INTEGERS_FROM ? WITH_SIGN(rounded, a) : a;
}
INLINE T FLOOR(T a)
{
    T r = ROUND(a);
    return WITH_SIGN(r > a ? r - 1 : r, a);
}
INLINE T CEIL(T a)
{
    T r = ROUND(a);
    return WITH_SIGN(r < a ? r + 1 : r, a);
}
INLINE bool ISNAN(T a)
{
    return a != a;
}
#define FUNCTION(NAME, f) UNARY(NAME, f((double)a))
UNARY(SQRT, sizeof(T) == 4 ? (T)sqrtf((float)a) : (T)sqrt((double)a))

/* No row applies these to floats. */
BINARY(BAND, 0 * a * b)
BINARY(BOR, 0 * a * b)
BINARY(BXOR, 0 * a * b)
UNARY(BNOT, 0 * a)
BINARY(SHL, 0 * a * b)
BINARY(SHR, 0 * a * b)

#else

/* ---- Integers -------------------------------------------------------------------------------- */

#define LOWEST ((T)T_LOWEST)
#define HIGHEST ((T)T_HIGHEST)
#define T_BITS (8 * sizeof(T))

BINARY(ADD, (T_WIDE)a + (T_WIDE)b)
BINARY(SUB, (T_WIDE)a - (T_WIDE)b)
BINARY(MUL, (T_WIDE)a *(T_WIDE)b)
BINARY(MIN, a <= b ? a : b)
BINARY(MAX, a >= b ? a : b)
BINARY(BAND, a &b)
BINARY(BOR, a | b)
BINARY(BXOR, a ^ b)
UNARY(BNOT, ~a)
BINARY(SHL, (uint64_t)b < T_BITS ? (T_WIDE)a << b : 0)
BINARY(SHR, (uint64_t)b < T_BITS ? a >> b : 0)
UNARY(NEG, 0 - (T_WIDE)a)
UNARY(FLOOR, a)
UNARY(CEIL, a)
UNARY(ROUND, a)
INLINE bool ISNAN(T a)
{
    return (void)a, false;
}

#if defined(T_IS_SIGNED)
UNARY(ABS, a < 0 ? 0 - (T_WIDE)a : (T_WIDE)a)
UNARY(SIGN, (a > 0) - (a < 0))
/* The lowest value divided by -1 is the one quotient that does not fit. */
BINARY(DIV, b == 0 ? 0 : b == -1 ? NEG(a) : a / b)
BINARY(FMOD, b == 0 || b == -1 ? 0 : a % b)
INLINE T MOD(T a, T b)
{
    T r = FMOD(a, b);
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
#else
UNARY(ABS, a)
UNARY(SIGN, a > 0)
BINARY(DIV, b == 0 ? 0 : a / b)
BINARY(FMOD, b == 0 ? 0 : a % b)
BINARY(MOD, b == 0 ? 0 : a % b)
#endif

INLINE T POW(T a, T b)
{
#if defined(T_IS_SIGNED)
    if (b < 0)
        return (T)(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
#endif
    T_WIDE result = 1, base = (T_WIDE)a;
    for (uint64_t exponent = (uint64_t)b; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (T)result;
}

INLINE T from_double(double value)
{
    if (!(value > (double)T_LOWEST))
        return LOWEST;
    return value < (double)T_HIGHEST ? (T)value : HIGHEST;
}
#define FUNCTION(NAME, f) UNARY(NAME, from_double(f((double)a)))
FUNCTION(SQRT, sqrt)

#endif

/* ---- Functions ------------------------------------------------------------------------------- */

#if defined(T_IS_FLOAT32)
#define OWN(NAME, name) UNARY(NAME, f32_##name(a))
#else
#define OWN(NAME, name) FUNCTION(NAME, f64_##name)
#endif
OWN(EXP, exp)
OWN(EXPM1, expm1)
OWN(LOG, log)
OWN(LOG1P, log1p)
OWN(ERF, erf)
OWN(SIN, sin)
OWN(COS, cos)
OWN(TAN, tan)
OWN(ASIN, asin)
OWN(ACOS, acos)
OWN(ATAN, atan)
OWN(SINH, sinh)
OWN(COSH, cosh)
OWN(TANH, tanh)
OWN(ASINH, asinh)
OWN(ACOSH, acosh)
OWN(ATANH, atanh)
OWN(SIGMOID, sigmoid)
