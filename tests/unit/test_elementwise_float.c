/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise functions of floats against formulas in long double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "kernels/cpu/elementwise/elementwise.h"

/* ---- Functions of one float ------------------------------------------------------------------ */

typedef long double real;

static real sigmoid(real x)
{
    return 1 / (1 + expl(-x));
}
static real softplus(real x)
{
    return x > 40 ? x : log1pl(expl(x));
}
static real ref_reciprocal(real x)
{
    return 1 / x;
}
static real ref_neg(real x)
{
    return -x;
}
static real ref_sign(real x)
{
    return (x > 0) - (x < 0);
}
static real ref_relu(real x)
{
    return x > 0 ? x : 0;
}
static real ref_leaky_relu(real x)
{
    return x < 0 ? (real)0.01f * x : x;
}
static real ref_thresholded_relu(real x)
{
    return x > 1 ? x : 0;
}
static real ref_elu(real x)
{
    return x < 0 ? expm1l(x) : x;
}
static real ref_selu(real x)
{
    return 1.05070102214813232421875L * (x < 0 ? 1.67326319217681884765625L * expm1l(x) : x);
}
static real ref_hard_sigmoid(real x)
{
    return fmaxl(0, fminl(1, (real)0.2f * x + 0.5L));
}
static real ref_hard_swish(real x)
{
    return x * fmaxl(0, fminl(1, x / 6 + 0.5L));
}
static real ref_swish(real x)
{
    return x * sigmoid(x);
}
static real ref_softsign(real x)
{
    return x / (1 + fabsl(x));
}
static real ref_mish(real x)
{
    return x * tanhl(softplus(x));
}
static real ref_gelu(real x)
{
    return x * erfcl(-x * sqrtl(0.5L)) / 2;
}
static real ref_shrink(real x)
{
    return fabsl(x) > 0.5L ? x : 0;
}
static real ref_round(real x)
{
    return rintl(x);
}

/* `ulps` of the result, plus `absolute` where the expression cancels. */
struct unary_case {
    enum ir_op_id id;
    real (*reference)(real x);
    double low, high; /* the range of arguments */
    double ulps, absolute;
};

static const struct unary_case unary_cases[] = {
    {IR_OP_Abs, fabsl, -9, 9, 0, 0},
    {IR_OP_Neg, ref_neg, -9, 9, 0, 0},
    {IR_OP_Sign, ref_sign, -9, 9, 0, 0},
    {IR_OP_Reciprocal, ref_reciprocal, -9, 9, 0.5, 0},
    {IR_OP_Floor, floorl, -9, 9, 0, 0},
    {IR_OP_Ceil, ceill, -9, 9, 0, 0},
    {IR_OP_Round, ref_round, -9, 9, 0, 0},
    {IR_OP_Sqrt, sqrtl, 0, 9, 0.5, 0},
    {IR_OP_Exp, expl, -80, 80, 1, 0},
    {IR_OP_Log, logl, 0, 100, 1, 0},
    {IR_OP_Erf, erfl, -4, 4, 1.6, 0},
    {IR_OP_Sin, sinl, -50, 50, 1, 0},
    {IR_OP_Cos, cosl, -50, 50, 1, 0},
    {IR_OP_Tan, tanl, -1.5, 1.5, 0.6, 0},
    {IR_OP_Asin, asinl, -1, 1, 0.6, 0},
    {IR_OP_Acos, acosl, -1, 1, 0.6, 0},
    {IR_OP_Atan, atanl, -50, 50, 0.6, 0},
    {IR_OP_Sinh, sinhl, -20, 20, 0.6, 0},
    {IR_OP_Cosh, coshl, -20, 20, 0.6, 0},
    {IR_OP_Tanh, tanhl, -20, 20, 1.95, 0},
    {IR_OP_Asinh, asinhl, -50, 50, 0.6, 0},
    {IR_OP_Acosh, acoshl, 1, 50, 0.6, 0},
    {IR_OP_Atanh, atanhl, -1, 1, 0.6, 0},
    {IR_OP_Relu, ref_relu, -9, 9, 0, 0},
    {IR_OP_LeakyRelu, ref_leaky_relu, -9, 9, 0.5, 0},
    {IR_OP_ThresholdedRelu, ref_thresholded_relu, -9, 9, 0, 0},
    {IR_OP_Elu, ref_elu, -20, 20, 1.1, 0},
    {IR_OP_Celu, ref_elu, -20, 20, 1.1, 0},
    {IR_OP_Selu, ref_selu, -20, 20, 2.1, 0},
    {IR_OP_Sigmoid, sigmoid, -80, 80, 2.5, 0},
    {IR_OP_HardSigmoid, ref_hard_sigmoid, -9, 9, 1, 1e-7},
    {IR_OP_HardSwish, ref_hard_swish, -9, 9, 2, 1e-6},
    {IR_OP_Swish, ref_swish, -50, 50, 3, 0},
    {IR_OP_Softplus, softplus, -50, 50, 2, 0},
    {IR_OP_Softsign, ref_softsign, -50, 50, 2, 0},
    {IR_OP_Mish, ref_mish, -50, 50, 3, 0},
    {IR_OP_Gelu, ref_gelu, -6, 6, 3, 3e-7},
    {IR_OP_Shrink, ref_shrink, -2, 2, 0, 0},
};

/* The distance between neighbours at `x`. */
static double ulp_of(tssa_dtype dtype, double x)
{
    int bits = dtype == TSSA_FLOAT ? 24 : dtype == TSSA_FLOAT16 ? 11 : 8;
    int lowest = dtype == TSSA_FLOAT16 ? -14 : -126, exponent;
    if (x == 0)
        return ldexp(1, lowest + 1 - bits);
    frexp(x, &exponent);
    exponent = exponent - 1 < lowest ? lowest : exponent - 1;
    return ldexp(1, exponent + 1 - bits);
}

static void check_unary(const struct unary_case *c, tssa_dtype dtype)
{
    struct op_run run;
    struct random random = {c->id + 1u};
    const int64_t n = 500;
    op_open(&run, c->id, 1, 1);
    char *x = op_input(&run, 0, dtype, 1, &n)->data;
    size_t size = dtype_info(dtype)->size;
    for (int64_t i = 0; i < n; i++)
        dtype_store_double(dtype, x + (size_t)i * size,
                           c->low + (c->high - c->low) * (double)random_int(&random, 0, 1 << 30) /
                                        (1 << 30));
    op_go(&run);
    const char *y = op_output(&run, 0, dtype, 1, &n)->data;
    for (int64_t i = 0; i < n; i++) {
        double argument = dtype_load_double(dtype, x + (size_t)i * size);
        double got = dtype_load_double(dtype, y + (size_t)i * size);
        double wanted = (double)c->reference(argument);
        /* Narrow types are computed in float, so only the last rounding counts. */
        double ulps = dtype == TSSA_FLOAT ? c->ulps : 0.51;
        uint64_t rounded = 0;
        dtype_store_double(dtype, &rounded, wanted);
        if (fabs(got - wanted) > ulps * ulp_of(dtype, wanted) + c->absolute &&
            got != dtype_load_double(dtype, &rounded))
            fail_msg("%s %s(%.9g) is %.9g, not %.9g", run.op->info->name,
                     dtype_info(dtype)->ir_name, argument, got, wanted);
    }
    op_close(&run);
}

static void functions_of_one_float(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unary_cases / sizeof *unary_cases; i++) {
        check_unary(&unary_cases[i], TSSA_FLOAT);
        if (unary_cases[i].id == IR_OP_Celu)
            continue; /* FLOAT alone until opset 28, but computed for all */
        check_unary(&unary_cases[i], TSSA_FLOAT16);
        check_unary(&unary_cases[i], TSSA_BFLOAT16);
    }
}

/* Doubles: the same formulas, to a relative error. */
static void functions_of_one_double(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof unary_cases / sizeof *unary_cases; k++) {
        const struct unary_case *c = &unary_cases[k];
        struct op_run run;
        const int64_t n = 101;
        op_open(&run, c->id, 1, 1);
        double *x = op_input(&run, 0, TSSA_DOUBLE, 1, &n)->data;
        for (int64_t i = 0; i < n; i++)
            x[i] = c->low + (c->high - c->low) * (double)(i + 1) / 103;
        op_go(&run);
        const double *y = op_output(&run, 0, TSSA_DOUBLE, 1, &n)->data;
        for (int64_t i = 0; i < n; i++) {
            double wanted = (double)c->reference(x[i]);
            if (fabs(y[i] - wanted) > 1e-15 + 4e-15 * fabs(wanted))
                fail_msg("%s(%.17g) is %.17g, not %.17g", run.op->info->name, x[i], y[i], wanted);
        }
        op_close(&run);
    }
}

/* One float through one op, with attributes set before. */
static float one(struct op_run *run, float x)
{
    *(float *)op_input(run, 0, TSSA_FLOAT, 0, NULL)->data = x;
    op_go(run);
    return *(const float *)op_output(run, 0, TSSA_FLOAT, 0, NULL)->data;
}

static float apply(enum ir_op_id id, float x)
{
    struct op_run run;
    op_open(&run, id, 1, 1);
    float y = one(&run, x);
    op_close(&run);
    return y;
}

/* The same number, sign of zero included, or both NaN. */
#define assert_same(a, b) check_same(#a, a, b)

static void check_same(const char *what, float a, float b)
{
    bool same = isnan(b) ? isnan(a) : a == b && !signbit(a) == !signbit(b);
    if (!same)
        fail_msg("%s is %.9g, not %.9g", what, (double)a, (double)b);
}

/* ---- Parts of long rows ---------------------------------------------------------------------- */

/*
 * exp of a long row is computed in parts, of which those without an argument far from 0 take fewer
 * operations: the bits are those of each element alone, also in place.
 */
static void exp_in_parts(void **state)
{
    (void)state;
    enum { N = 5 * 1024 + 17 };
    static float x[N], y[N], in_place[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 1001 - 500) * 0.17f;
    x[1024] = 88.5f, x[3 * 1024 - 1] = NAN, x[3 * 1024 + 5] = -INFINITY, x[N - 1] = -103.5f;
    const struct ew_uniform uniform = {.last = true};
    const int64_t step[] = {1};
    for (int k = 0; k < 2; k++) {
        const ew_loop loop = ew_loops_f32[k ? IR_OP_Sigmoid : IR_OP_Exp];
        memcpy(in_place, x, sizeof x);
        loop(&uniform, N, y, 1, (const void *const[]){x}, step);
        loop(&uniform, N, in_place, 1, (const void *const[]){in_place}, step);
        for (int i = 0; i < N; i++) {
            float alone;
            loop(&uniform, 1, &alone, 1, (const void *const[]){x + i}, step);
            assert_same(y[i], alone);
            assert_same(in_place[i], alone);
        }
    }
}

static void special_values(void **state)
{
    (void)state;
    static const float halves[][2] = {{0.5f, 0},
                                      {1.5f, 2},
                                      {2.5f, 2},
                                      {-0.5f, -0.0f},
                                      {-1.5f, -2},
                                      {-2.5f, -2},
                                      {8388607.5f, 8388608},
                                      {1e30f, 1e30f}};
    for (size_t i = 0; i < 8; i++)
        assert_same(apply(IR_OP_Round, halves[i][0]), halves[i][1]);
    static const enum ir_op_id keep_nan[] = {
        IR_OP_Sign,    IR_OP_Relu, IR_OP_Floor,    IR_OP_Ceil,        IR_OP_Round,
        IR_OP_Sigmoid, IR_OP_Elu,  IR_OP_Softplus, IR_OP_HardSigmoid, IR_OP_HardSwish,
        IR_OP_Clip,    IR_OP_Gelu, IR_OP_Celu,     IR_OP_LeakyRelu,   IR_OP_Mish,
        IR_OP_Abs,     IR_OP_Neg,  IR_OP_Selu,     IR_OP_Max,         IR_OP_Mean};
    for (size_t i = 0; i < sizeof keep_nan / sizeof *keep_nan; i++)
        if (!isnan(apply(keep_nan[i], NAN)))
            fail_msg("%s(NaN) is a number", ir_op_info(keep_nan[i])->name);
    assert_same(apply(IR_OP_Floor, -0.0f), -0.0f);
    assert_same(apply(IR_OP_Floor, 0.7f), 0.0f);
    assert_same(apply(IR_OP_Ceil, -0.7f), -0.0f);
    assert_same(apply(IR_OP_Floor, -INFINITY), -INFINITY);
    assert_same(apply(IR_OP_Ceil, 0x1p-149f), 1);
    assert_same(apply(IR_OP_Neg, 0.0f), -0.0f);
    assert_same(apply(IR_OP_Reciprocal, -0.0f), -INFINITY);
    assert_same(apply(IR_OP_Sqrt, -0.0f), -0.0f);
    assert_true(isnan(apply(IR_OP_Sqrt, -1)));
    assert_same(apply(IR_OP_Log, 0), -INFINITY);
    assert_same(apply(IR_OP_Exp, 100), INFINITY);
    assert_same(apply(IR_OP_Exp, -100), 3.783505853677006e-44f); /* a denormal */
    assert_same(apply(IR_OP_Sigmoid, -INFINITY), 0);
    assert_same(apply(IR_OP_Sigmoid, INFINITY), 1);
    assert_same(apply(IR_OP_Softplus, 1000), 1000);
    assert_same(apply(IR_OP_Mish, 1000), 1000);
    assert_same(apply(IR_OP_Swish, -1000), -0.0f);
    assert_same(apply(IR_OP_Celu, 1000), 1000);
    assert_same(apply(IR_OP_Relu, -INFINITY), 0);
    assert_same(apply(IR_OP_Clip, -INFINITY), -INFINITY); /* no bounds at all */
}

static void float_attributes(void **state)
{
    (void)state;
    struct op_run run;
    op_open(&run, IR_OP_LeakyRelu, 1, 1);
    op_float(&run, "alpha", 0.25f);
    assert_same(one(&run, -8), -2);
    op_close(&run);
    op_open(&run, IR_OP_Elu, 1, 1);
    op_float(&run, "alpha", 2);
    assert_same(one(&run, -1), 2 * (float)expm1(-1));
    op_close(&run);
    op_open(&run, IR_OP_Celu, 1, 1);
    op_float(&run, "alpha", 2);
    assert_same(one(&run, -1), 2 * (float)expm1(-0.5));
    op_close(&run);
    op_open(&run, IR_OP_Selu, 1, 1);
    op_float(&run, "alpha", 2);
    op_float(&run, "gamma", 3);
    assert_same(one(&run, -1), 3 * (2 * (float)expm1(-1)));
    assert_same(one(&run, 1), 3);
    op_close(&run);
    op_open(&run, IR_OP_HardSigmoid, 1, 1);
    op_float(&run, "alpha", 0.5f);
    op_float(&run, "beta", 0.25f);
    assert_same(one(&run, 1), 0.75f);
    op_close(&run);
    op_open(&run, IR_OP_Swish, 1, 1);
    op_float(&run, "alpha", 0);
    assert_same(one(&run, 3), 1.5f);
    op_close(&run);
    op_open(&run, IR_OP_ThresholdedRelu, 1, 1);
    op_float(&run, "alpha", 2);
    assert_same(one(&run, 2), 0);
    assert_same(one(&run, 2.5f), 2.5f);
    op_close(&run);
    op_open(&run, IR_OP_Shrink, 1, 1);
    op_float(&run, "lambd", 1.5f);
    op_float(&run, "bias", 1);
    assert_same(one(&run, -2), -1);
    assert_same(one(&run, 2), 1);
    assert_same(one(&run, 1.5f), 0);
    op_close(&run);
    op_open(&run, IR_OP_Gelu, 1, 1);
    op_string(&run, "approximate", "tanh");
    assert_float_equal(one(&run, 1), 0.841192f, 1e-6);
    op_string(&run, "approximate", "sine");
    op_fails(&run, "\"approximate\" is \"sine\"");
    op_close(&run);
}

/* Integers go through double where a parameter is a float. */
static void shrink_of_integers(void **state)
{
    (void)state;
    struct op_run run;
    static const int64_t x[] = {0, 1, 2, 3, 200}, wanted[] = {0, 0, 1, 2, 199}, n = 5;
    op_open(&run, IR_OP_Shrink, 1, 1);
    op_float(&run, "lambd", 1.5f);
    op_float(&run, "bias", 1);
    op_input_ints(&run, 0, TSSA_UINT8, 1, 5, x);
    op_go(&run);
    op_expect_ints(&run, 0, 1, &n, wanted);
    op_close(&run);
}

/* ---- Two floats ------------------------------------------------------------------------------ */

static float apply2(enum ir_op_id id, float x, float y)
{
    struct op_run run;
    op_open(&run, id, 2, 1);
    if (id == IR_OP_Mod)
        op_int(&run, "fmod", 1);
    *(float *)op_input(&run, 1, TSSA_FLOAT, 0, NULL)->data = y;
    float z = one(&run, x);
    op_close(&run);
    return z;
}

static void two_floats(void **state)
{
    (void)state;
    assert_same(apply2(IR_OP_Add, 0.1f, 0.2f), 0.1f + 0.2f);
    assert_same(apply2(IR_OP_Div, 1, -0.0f), -INFINITY);
    assert_true(isnan(apply2(IR_OP_Div, 0, 0)));
    assert_same(apply2(IR_OP_Mul, 0x1p-149f, 0.5f), 0); /* ties to even */
    assert_same(apply2(IR_OP_Mul, 0x1p-100f, 0x1p-40f), 0x1p-140f);
    assert_true(isnan(apply2(IR_OP_Max, 1, NAN)) && isnan(apply2(IR_OP_Max, NAN, 1)));
    assert_true(isnan(apply2(IR_OP_Min, 1, NAN)) && isnan(apply2(IR_OP_Min, NAN, 1)));
    assert_same(apply2(IR_OP_Max, -1, INFINITY), INFINITY);
    assert_same(apply2(IR_OP_Min, -INFINITY, 2), -INFINITY);
    assert_same(apply2(IR_OP_Mod, -5.5f, 2), -1.5f);
    assert_same(apply2(IR_OP_Mod, 5.5f, -2), 1.5f);
    assert_same(apply2(IR_OP_Pow, -2, 3), -8);
    assert_same(apply2(IR_OP_Pow, 2, 0.5f), sqrtf(2));
    assert_true(isnan(apply2(IR_OP_Pow, -2, 0.5f)));
    assert_same(apply2(IR_OP_PRelu, -2, 0.25f), -0.5f);
    assert_same(apply2(IR_OP_PRelu, 2, 0.25f), 2);
    assert_same(apply2(IR_OP_Mean, 1, 4), 2.5f);
    /* fmod = 0 is not legal for floats; they get numpy's remainder. */
    struct op_run run;
    op_open(&run, IR_OP_Mod, 2, 1);
    *(float *)op_input(&run, 1, TSSA_FLOAT, 0, NULL)->data = 2;
    assert_same(one(&run, -5.5f), 0.5f);
    op_close(&run);
}

static void powers_of_mixed_types(void **state)
{
    (void)state;
    static const struct {
        tssa_dtype x, y;
        double a, b, wanted;
    } cases[] = {
        {TSSA_INT32, TSSA_FLOAT, 9, 0.5, 3},
        {TSSA_INT64, TSSA_FLOAT, 2, 2.5, 5},
        {TSSA_FLOAT, TSSA_INT64, 1.5, 2, 2.25},
        {TSSA_FLOAT, TSSA_UINT64, 1.5, 2, 2.25},
        {TSSA_FLOAT16, TSSA_DOUBLE, 2, 0.5, 1.4140625},
        {TSSA_INT32, TSSA_INT64, -3, 3, -27},
        {TSSA_INT64, TSSA_UINT8, 3, 20, 3486784401.0},
        {TSSA_BFLOAT16, TSSA_INT32, 3, 5, 243},
        {TSSA_DOUBLE, TSSA_FLOAT, 2, -1, 0.5},
        {TSSA_INT32, TSSA_INT32, 2, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run run;
        op_open(&run, IR_OP_Pow, 2, 1);
        dtype_store_double(cases[i].x, op_input(&run, 0, cases[i].x, 0, NULL)->data, cases[i].a);
        dtype_store_double(cases[i].y, op_input(&run, 1, cases[i].y, 0, NULL)->data, cases[i].b);
        op_go(&run);
        double got = dtype_load_double(cases[i].x, op_output(&run, 0, cases[i].x, 0, NULL)->data);
        if (got != cases[i].wanted)
            fail_msg("case %zu is %.9g, not %.9g", i, got, cases[i].wanted);
        op_close(&run);
    }
}

/* One exponent or one per element: the same bits, and of 2 those of the product. */
static void powers_that_are_products(void **state)
{
    (void)state;
    static const double exponents[] = {1, 2, 3, -1, 0.5};
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    const int64_t n = 1000;
    for (size_t i = 0; i < 3 * sizeof exponents / sizeof *exponents; i++) {
        tssa_dtype dtype = dtypes[i % 3];
        double exponent = exponents[i / 3];
        struct random random = {3};
        struct op_run one, each;
        op_open(&one, IR_OP_Pow, 2, 1);
        op_open(&each, IR_OP_Pow, 2, 1);
        const char *x = op_random(&one, 0, &random, dtype, 1, &n)->data;
        dtype_store_double(TSSA_INT64, op_input(&one, 1, TSSA_INT64, 0, NULL)->data, exponent);
        if (exponent == 0.5)
            dtype_store_double(TSSA_FLOAT, op_input(&one, 1, TSSA_FLOAT, 0, NULL)->data, exponent);
        size_t size = dtype_info(dtype)->size;
        memcpy(op_input(&each, 0, dtype, 1, &n)->data, x, (size_t)n * size);
        char *y = op_input(&each, 1, dtype, 1, &n)->data;
        for (int64_t k = 0; k < n; k++)
            dtype_store_double(dtype, y + (size_t)k * size, exponent);
        op_go(&one);
        op_go(&each);
        const char *z = one.outputs[0].tensor.data, *wanted = each.outputs[0].tensor.data;
        for (int64_t k = 0; k < n; k++) {
            double a = dtype_load_double(dtype, x + (size_t)k * size);
            double got = dtype_load_double(dtype, z + (size_t)k * size);
            double other = dtype_load_double(dtype, wanted + (size_t)k * size);
            if (isnan(got) ? !isnan(other) : got != other || signbit(got) != signbit(other))
                fail_msg("pow(%a, %g) is %a and %a", a, exponent, got, other);
            if (exponent == 2 && dtype == TSSA_FLOAT && !isnan(got))
                assert_true(got == (double)((float)a * (float)a));
        }
        op_close(&one);
        op_close(&each);
    }
}

/* Narrow floats are rounded once: the sum of two is the rounded exact sum. */
static void narrow_floats_round_once(void **state)
{
    (void)state;
    struct random random = {7};
    for (int narrow = 0; narrow < 2; narrow++) {
        tssa_dtype dtype = narrow ? TSSA_BFLOAT16 : TSSA_FLOAT16;
        struct op_run run;
        const int64_t n = 3000;
        op_open(&run, IR_OP_Mul, 2, 1);
        const uint16_t *x = op_random(&run, 0, &random, dtype, 1, &n)->data;
        const uint16_t *y = op_random(&run, 1, &random, dtype, 1, &n)->data;
        op_go(&run);
        const uint16_t *z = op_output(&run, 0, dtype, 1, &n)->data;
        for (int64_t i = 0; i < n; i++) {
            uint16_t wanted;
            double product = dtype_load_double(dtype, &x[i]) * dtype_load_double(dtype, &y[i]);
            dtype_store_double(dtype, &wanted, product);
            /* bfloat16 products below float's range are rounded in float first. */
            if (!isnan(product) && fabs(product) > 0x1p-120 && z[i] != wanted)
                fail_msg("%04x * %04x is %04x, not %04x", x[i], y[i], z[i], wanted);
            assert_true(!isnan(product) || isnan(dtype_load_double(dtype, &z[i])));
        }
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one_float),
        cmocka_unit_test(functions_of_one_double),
        cmocka_unit_test(exp_in_parts),
        cmocka_unit_test(special_values),
        cmocka_unit_test(float_attributes),
        cmocka_unit_test(shrink_of_integers),
        cmocka_unit_test(two_floats),
        cmocka_unit_test(powers_of_mixed_types),
        cmocka_unit_test(powers_that_are_products),
        cmocka_unit_test(narrow_floats_round_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
