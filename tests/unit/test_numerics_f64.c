/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of double in ir/scalar against the C library's in long double: how far off each is
 * at most, what it gives for special values, and that every instruction set gives the same bits.
 * docs/numerics.md has the figures.
 *
 * A sample of 200,000 arguments by default; TSSA_FLOAT_STRIDE=1 (`make nightly`) makes it 10^8.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clones.h"
#include "common/op_run.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_inverse.h"
#include "ir/scalar/f64_log.h"
#include "ir/scalar/f64_pow.h"
#include "ir/scalar/f64_trig.h"

/* long double has to have more digits than double. */
_Static_assert(LDBL_MANT_DIG >= 64, "the references are in long double");

/* ---- The functions --------------------------------------------------------------------------- */

/* FUNCTION(name, ulps): the largest error that was seen in 10^8 arguments, rounded up. */
#define FUNCTIONS                                                                                  \
    FUNCTION(exp, 1.1)                                                                             \
    FUNCTION(sigmoid, 2.5)                                                                         \
    FUNCTION(expm1, 1.8)                                                                           \
    FUNCTION(log, 0.9)                                                                             \
    FUNCTION(log1p, 1.5)                                                                           \
    FUNCTION(erf, 1.6)                                                                             \
    FUNCTION(tanh, 1.6)                                                                            \
    FUNCTION(sin, 1.0)                                                                             \
    FUNCTION(cos, 1.0)                                                                             \
    FUNCTION(tan, 1.4)                                                                             \
    FUNCTION(asin, 0.7)                                                                            \
    FUNCTION(acos, 1.2)                                                                            \
    FUNCTION(atan, 0.9)                                                                            \
    FUNCTION(sinh, 1.8)                                                                            \
    FUNCTION(cosh, 1.6)                                                                            \
    FUNCTION(asinh, 1.9)                                                                           \
    FUNCTION(acosh, 1.9)                                                                           \
    FUNCTION(atanh, 1.9)

/* The C library has none. */
static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}

#define FUNCTION(name, ulps)                                                                       \
    VECTOR_PROCEDURE(apply_##name, (const double *x, double *y, int n), (x, y, n))                 \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = f64_##name(x[i]);                                                               \
    }
FUNCTIONS
#undef FUNCTION

VECTOR_PROCEDURE(apply_pow, (const double *x, const double *y, double *z, int n), (x, y, z, n))
{
    for (int i = 0; i < n; i++)
        z[i] = f64_pow(x[i], y[i]);
}
#define POW_ULPS 1.4

typedef void (*apply)(const double *x, double *y, int n);

static const struct function {
    const char *name;
    apply apply;
    long double (*reference)(long double x);
    double ulps;
    apply lower[ISA_V4]; /* by level, NULL where there is none */
} functions[] = {
#if defined(__x86_64__)
#define FUNCTION(name, ulps)                                                                       \
    {#name,                                                                                        \
     apply_##name,                                                                                 \
     name##l,                                                                                      \
     ulps,                                                                                         \
     {[ISA_BASE] = apply_##name##_base, [ISA_V3] = apply_##name##_v3}},
#else
#define FUNCTION(name, ulps) {#name, apply_##name, name##l, ulps, {NULL}},
#endif
    FUNCTIONS
#undef FUNCTION
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

/* Infinity stands for the number after the largest one. */
static long double end_of(long double x)
{
    return fabsl(x) > 0x1p1024L ? copysignl(0x1p1024L, x) : x;
}

static double ulps_of(double got, long double wanted)
{
    double rounded = (double)wanted;
    if (isnan(rounded) || isnan(got))
        return isnan(rounded) && isnan(got) ? 0 : (double)INFINITY;
    if (got == rounded && (got == 0 || isinf(got)))
        return !signbit(got) == !signbit(rounded) ? 0 : (double)INFINITY;
    int exponent = rounded == 0 ? -1022 : isinf(rounded) ? 1023 : ilogb(rounded);
    long double unit = ldexpl(1, (exponent < -1022 ? -1022 : exponent) - 52);
    return (double)(fabsl(end_of((long double)got) - end_of(wanted)) / unit);
}

/* ---- A sample -------------------------------------------------------------------------------- */

#define BLOCK 2000

static int blocks(void)
{
    const char *stride = getenv("TSSA_FLOAT_STRIDE");
    return stride && strcmp(stride, "1") == 0 ? 50000 : 100;
}

/* Any bits, and numbers of moderate size, in turn. */
static double argument(struct random *random, int i)
{
    uint64_t bits = random_bits(random);
    return i & 1 ? f64_of(bits) : ldexp((double)(int64_t)bits, (int)(bits % 24) - 12 - 63);
}

static void check(const struct function *f, const double *x, const double *y, int n)
{
    for (int i = 0; i < n; i++) {
        long double wanted = f->reference((long double)x[i]);
        double ulps = ulps_of(y[i], wanted);
        if (!(ulps <= f->ulps))
            fail_msg("%s(%a) is %a, %g units off %La", f->name, x[i], y[i], ulps, wanted);
    }
}

static void same_bits(const struct function *f, const double *x, const double *y, int n)
{
    double z[BLOCK];
    for (int level = ISA_BASE; level < (int)isa_level(); level++) {
        if (!f->lower[level])
            continue;
        f->lower[level](x, z, n);
        for (int i = 0; i < n; i++)
            if (!(isnan(y[i]) && isnan(z[i])) && f64_bits(y[i]) != f64_bits(z[i]))
                fail_msg("%s(%a) is %a, and %a at level %d", f->name, x[i], y[i], z[i], level);
    }
}

static void errors(void **state)
{
    (void)state;
    struct random random = {3};
    double x[BLOCK], y[BLOCK];
    for (size_t f = 0; f < N_FUNCTIONS; f++)
        for (int block = 0, n = blocks(); block < n; block++) {
            for (int i = 0; i < BLOCK; i++)
                x[i] = argument(&random, i);
            functions[f].apply(x, y, BLOCK);
            check(&functions[f], x, y, BLOCK);
            if (block < 10) /* below v3 libm makes the fused operations, slowly */
                same_bits(&functions[f], x, y, BLOCK);
        }
}

/* Around zero, one, the largest and smallest numbers, where functions end, and near multiples of
 * pi/2. */
static const double special[] = {0,
                                 1,
                                 0.5,
                                 2,
                                 3,
                                 (double)INFINITY,
                                 (double)NAN,
                                 DBL_MAX,
                                 DBL_MIN,
                                 DBL_TRUE_MIN,
                                 0x1p-1060,
                                 0x1.fffffffffffffp-1,
                                 0x1.0000000000001p+0,
                                 0x1p-54,
                                 0x1p-26,
                                 0x1p-27,
                                 0x1.62e42fefa39efp+9,
                                 0x1.62e42fefa39fp+9,
                                 0x1.633ce8fb9f87dp+9,
                                 0x1.633ce8fb9f87ep+9,
                                 0x1.74910d52d3051p+9,
                                 0x1.74910d52d3052p+9,
                                 0x1.6232bdd7abcd2p+9,
                                 19.06,
                                 19.5,
                                 38,
                                 40,
                                 5.9,
                                 6,
                                 0.55,
                                 0x1.a827999fcef32p-2,
                                 0x1.3504f333f9de6p+1,
                                 0x1.6a09e667f3bcdp-1,
                                 0x1.921fb54442d18p+0,
                                 0x1.921fb54442d18p+1,
                                 0x1p+27,
                                 0x1.fffffffffffffp+26,
                                 0x1p+28,
                                 0x1p+52,
                                 0x1p+53,
                                 0x1.0000000000001p+52,
                                 1e22,
                                 1e300,
                                 0x1.6ac5b262ca1ffp+849,
                                 6381956970095103.0 * 0x1p797};
#define N_SPECIAL (sizeof special / sizeof *special)

static void special_values(void **state)
{
    (void)state;
    double x[2 * N_SPECIAL], y[2 * N_SPECIAL];
    for (size_t i = 0; i < N_SPECIAL; i++) {
        x[2 * i] = special[i];
        x[2 * i + 1] = -special[i];
    }
    for (size_t f = 0; f < N_FUNCTIONS; f++) {
        functions[f].apply(x, y, 2 * N_SPECIAL);
        check(&functions[f], x, y, 2 * N_SPECIAL);
        same_bits(&functions[f], x, y, 2 * N_SPECIAL);
    }
}

/* ---- Powers ---------------------------------------------------------------------------------- */

static void check_powers(const double *x, const double *y, int n)
{
    double z[BLOCK];
    apply_pow(x, y, z, n);
    for (int i = 0; i < n; i++) {
        long double wanted = powl((long double)x[i], (long double)y[i]);
        double ulps = ulps_of(z[i], wanted);
        if (!(ulps <= POW_ULPS))
            fail_msg("pow(%a, %a) is %a, %g units off %La", x[i], y[i], z[i], ulps, wanted);
    }
}

static void special_powers(void **state)
{
    (void)state;
    double x[BLOCK], y[BLOCK];
    for (size_t i = 0; i < N_SPECIAL; i++) {
        int n = 0;
        for (size_t k = 0; k < 4 * N_SPECIAL; k++, n++) {
            x[n] = k & 1 ? -special[i] : special[i];
            y[n] = k & 2 ? -special[k / 4] : special[k / 4];
        }
        check_powers(x, y, n);
    }
}

/* Bases of all magnitudes, and near 1, to exponents that lead to all magnitudes. */
static void powers(void **state)
{
    (void)state;
    struct random random = {5};
    double x[BLOCK], y[BLOCK];
    for (int block = 0, n = blocks(); block < n; block++) {
        for (int i = 0; i < BLOCK; i++) {
            uint64_t bits = random_bits(&random);
            x[i] = i & 1 ? f64_of(bits >> 1) : f64_of(0x3fe0000000000000 + (bits >> 11));
            double target = (double)random_int(&random, -750000, 710000) / 1000;
            y[i] = i % 3 ? target / log(x[i]) : rint(target / log(x[i]));
        }
        check_powers(x, y, BLOCK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(special_values),
        cmocka_unit_test(special_powers),
        cmocka_unit_test(powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
