/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of ir/scalar against the C library's in double: how far off each is at most, what
 * it gives for special values, and that every instruction set gives the same bits. docs/numerics.md
 * has the figures.
 *
 * A sample of the floats by default. TSSA_FLOAT_STRIDE=1 takes them all, with a thread per core
 * (`make nightly`).
 */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clones.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "common/op_run.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_log.h"
#include "ir/scalar/f32_trig.h"
#include "ir/scalar/f32_wide.h"

/* ---- The functions --------------------------------------------------------------------------- */

/* FUNCTION(name, operator, ulps): the largest error over all floats, a little rounded up. */
#define FUNCTIONS                                                                                  \
    FUNCTION(exp, Exp, 0.9)                                                                        \
    FUNCTION(sigmoid, Sigmoid, 2.5)                                                                \
    FUNCTION(expm1, COUNT, 1.5)                                                                    \
    FUNCTION(log, Log, 0.9)                                                                        \
    FUNCTION(log1p, COUNT, 1.7)                                                                    \
    FUNCTION(erf, Erf, 1.7)                                                                        \
    FUNCTION(tanh, Tanh, 1.95)                                                                     \
    FUNCTION(sin, Sin, 1.1)                                                                        \
    FUNCTION(cos, Cos, 1.1)                                                                        \
    FUNCTION(tan, Tan, 0.501)                                                                      \
    FUNCTION(asin, Asin, 0.501)                                                                    \
    FUNCTION(acos, Acos, 0.501)                                                                    \
    FUNCTION(atan, Atan, 0.501)                                                                    \
    FUNCTION(sinh, Sinh, 0.501)                                                                    \
    FUNCTION(cosh, Cosh, 0.501)                                                                    \
    FUNCTION(asinh, Asinh, 0.501)                                                                  \
    FUNCTION(acosh, Acosh, 0.501)                                                                  \
    FUNCTION(atanh, Atanh, 0.501)

/* The C library has none. */
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

#define FUNCTION(name, op, ulps)                                                                   \
    VECTOR_PROCEDURE(apply_##name, (const float *x, float *y, int n), (x, y, n))                   \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = f32_##name(x[i]);                                                               \
    }
FUNCTIONS
#undef FUNCTION

static const struct function {
    const char *name;
    void (*apply)(const float *x, float *y, int n);
    double (*reference)(double x);
    double ulps;
    /* that is this function alone, of operands below 0 at least; or IR_OP_COUNT */
    enum ir_op_id op;
} functions[] = {
#define FUNCTION(name, op, ulps) {#name, apply_##name, name, ulps, IR_OP_##op},
    FUNCTIONS
#undef FUNCTION
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

/*
 * The distance of `got` from `wanted` in units of the last of `digits` binary digits, where the
 * exponents of normal numbers begin with `lowest`; infinity where one is a special value that the
 * other is not.
 */
static double ulps_of(double got, double wanted, int digits, int lowest)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got) ? 0 : (double)INFINITY;
    if (wanted == 0 || isinf(wanted))
        return got == wanted && !signbit(got) == !signbit(wanted) ? 0 : (double)INFINITY;
    int exponent;
    frexp(wanted, &exponent);
    double unit = ldexp(1, (exponent - 1 < lowest ? lowest : exponent - 1) + 1 - digits);
    /* Infinity stands for the number after the largest one. */
    double largest = lowest == -14 ? 65536.0 : 0x1p128;
    double bounded = fabs(wanted) > largest ? copysign(largest, wanted) : wanted;
    return fabs((isinf(got) ? copysign(largest, got) : got) - bounded) / unit;
}

/* ---- All floats, or a sample of them --------------------------------------------------------- */

#define BLOCK 4096
#define MOST_THREADS 64

struct search {
    const struct function *function;
    uint64_t first, step; /* every step-th bit pattern from `first` on */
    double worst;
    float at;
};

static void *find_worst(void *context)
{
    struct search *s = context;
    float x[BLOCK], y[BLOCK];
    for (uint64_t bits = s->first; bits <= UINT32_MAX;) {
        int n = 0;
        for (; n < BLOCK && bits <= UINT32_MAX; bits += s->step)
            x[n++] = f32_of((uint32_t)bits);
        s->function->apply(x, y, n);
        for (int i = 0; i < n; i++) {
            double ulps =
                ulps_of((double)y[i], s->function->reference((double)x[i]), FLT_MANT_DIG, -126);
            if (ulps > s->worst) {
                s->worst = ulps;
                s->at = x[i];
            }
        }
    }
    return NULL;
}

static uint64_t stride(void)
{
    const char *wanted = getenv("TSSA_FLOAT_STRIDE");
    uint64_t given = wanted ? strtoull(wanted, NULL, 10) : 0;
    return given
               ? given
               : 4999; /* an odd one meets all exponents, both signs, and many fractions of each */
}

static void errors(void **state)
{
    (void)state;
    uint64_t step = stride();
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = step > 1 || cores < 1  ? 1
                     : cores < MOST_THREADS ? (size_t)cores
                                            : MOST_THREADS;
    for (size_t f = 0; f < N_FUNCTIONS; f++) {
        struct search parts[MOST_THREADS], *worst = &parts[0];
        pthread_t ids[MOST_THREADS];
        for (size_t i = 0; i < threads; i++) {
            parts[i] = (struct search){&functions[f], i * step, threads * step, 0, 0};
            assert_int_equal(pthread_create(&ids[i], NULL, find_worst, &parts[i]), 0);
        }
        for (size_t i = 0; i < threads; i++) {
            assert_int_equal(pthread_join(ids[i], NULL), 0);
            worst = parts[i].worst > worst->worst ? &parts[i] : worst;
        }
        if (step == 1)
            print_message("%-6s %.4f ulp at %a\n", functions[f].name, worst->worst,
                          (double)worst->at);
        if (!(worst->worst > 0 && worst->worst <= functions[f].ulps))
            fail_msg("%s(%a) is %g units off, not at most %g", functions[f].name, (double)worst->at,
                     worst->worst, functions[f].ulps);
    }
}

/* Around zero, one, the largest and smallest numbers, where functions end, and half circles. */
static const float special[] = {0,
                                1,
                                0.5f,
                                2,
                                3,
                                INFINITY,
                                NAN,
                                FLT_MAX,
                                FLT_MIN,
                                FLT_TRUE_MIN,
                                0x1p-127f,
                                0x1.fffffep-1f,
                                0x1.000002p+0f,
                                0x1p-25f,
                                0x1.fffffep-26f,
                                0x1p-24f,
                                0x1p-12f,
                                0x1.62e42ep+6f,
                                0x1.62e430p+6f,
                                0x1.9fe36ap+6f,
                                0x1.9fe368p+6f,
                                0x1.5d58ap+6f,
                                86.0f,
                                87.0f,
                                89.0f,
                                104.0f,
                                18.0f,
                                9.02f,
                                9.1f,
                                3.93f,
                                4.0f,
                                0.55f,
                                0x1.921fb6p+0f,
                                0x1.921fb6p+1f,
                                0x1.921fb6p-1f,
                                0x1p+17f,
                                0x1.fffffep+16f,
                                0x1p+23f,
                                0x1p+24f,
                                0x1.f3ebbp+7f,
                                1e10f,
                                1e30f,
                                0x1.d038fep+30f,
                                0x1.a40c4ep+36f,
                                0x1p-9f,
                                0x1.fffffep-10f,
                                0x1.6a09e6p-1f,
                                0x1.5555p-1f,
                                0x1.5556p+0f};
#define N_SPECIAL (sizeof special / sizeof *special)

static void special_values(void **state)
{
    (void)state;
    float x[2 * N_SPECIAL], y[2 * N_SPECIAL];
    for (size_t i = 0; i < N_SPECIAL; i++) {
        x[2 * i] = special[i];
        x[2 * i + 1] = -special[i];
    }
    for (size_t f = 0; f < N_FUNCTIONS; f++) {
        functions[f].apply(x, y, 2 * N_SPECIAL);
        for (size_t i = 0; i < 2 * N_SPECIAL; i++) {
            double wanted = functions[f].reference((double)x[i]);
            if (!(ulps_of((double)y[i], wanted, FLT_MANT_DIG, -126) <= functions[f].ulps))
                fail_msg("%s(%a) is %a, not %a", functions[f].name, (double)x[i], (double)y[i],
                         wanted);
        }
    }
}

/* Near 0, some functions have a shorter form of the same bits. */
#define NEAR_FUNCTION(name)                                                                        \
    VECTOR_PROCEDURE(apply_##name##_near, (const float *x, float *y, int n), (x, y, n))            \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = f32_##name##_near(x[i]);                                                        \
    }
NEAR_FUNCTION(exp)
NEAR_FUNCTION(sigmoid)
NEAR_FUNCTION(sin)
NEAR_FUNCTION(cos)
NEAR_FUNCTION(tan)

static void check_near(void (*apply)(const float *x, float *y, int n),
                       void (*apply_near)(const float *x, float *y, int n), uint32_t farthest)
{
    float x[BLOCK], y[BLOCK], z[BLOCK];
    uint64_t step = stride() > 1 ? 97 : 1;
    for (uint64_t bits = 0; bits <= farthest;) {
        int n = 0;
        for (; n < BLOCK; bits += step, n += 2) {
            x[n] = f32_of(bits < farthest ? (uint32_t)bits : farthest);
            x[n + 1] = -x[n];
        }
        apply(x, y, BLOCK);
        apply_near(x, z, BLOCK);
        assert_memory_equal(y, z, sizeof y);
    }
}

static void near_zero(void **state)
{
    (void)state;
    check_near(apply_exp, apply_exp_near, F32_EXP_NEAR);
    check_near(apply_sigmoid, apply_sigmoid_near, F32_EXP_NEAR);
    check_near(apply_sin, apply_sin_near, F32_TRIG_NEAR);
    check_near(apply_cos, apply_cos_near, F32_TRIG_NEAR);
    check_near(apply_tan, apply_tan_near, F32_TRIG_NEAR);
}

/* Operators choose the form for a part of their elements at a time. */
static void near_parts(void **state)
{
    (void)state;
    static const struct {
        enum ir_op_id op;
        void (*apply)(const float *x, float *y, int n);
        float far;
    } cases[] = {{IR_OP_Exp, apply_exp, -90},
                 {IR_OP_Sigmoid, apply_sigmoid, -90},
                 {IR_OP_Sin, apply_sin, 0x1p+17f},
                 {IR_OP_Cos, apply_cos, -0x1p+18f},
                 {IR_OP_Tan, apply_tan, INFINITY}};
    enum { COUNT = 3 * 1024 + 5 };
    static float x[COUNT], y[COUNT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_floats(x, COUNT, 3);
        x[1500] = cases[i].far;
        cases[i].apply(x, y, COUNT);
        struct op_run run;
        op_begin(&run, cases[i].op, 0);
        op_add(&run, TSSA_FLOAT, 1, (const int64_t[]){COUNT}, x);
        op_go(&run);
        const float *got = run.outputs[0].tensor.data;
        for (int k = 0; k < COUNT; k++)
            assert_true(f32_bits(got[k]) == f32_bits(y[k]) || (isnan(got[k]) && isnan(y[k])));
        op_close(&run);
    }
}

/* ---- Powers ---------------------------------------------------------------------------------- */

VECTOR_PROCEDURE(apply_pow, (const float *x, const float *y, float *z, int n), (x, y, z, n))
{
    for (int i = 0; i < n; i++)
        z[i] = f32_pow(x[i], y[i]);
}

static void check_powers(const float *x, const float *y, int n)
{
    float z[BLOCK];
    apply_pow(x, y, z, n);
    for (int i = 0; i < n; i++) {
        double wanted = pow((double)x[i], (double)y[i]);
        if (!(ulps_of((double)z[i], wanted, FLT_MANT_DIG, -126) <= (y[i] == 3 ? 1 : 0.501)))
            fail_msg("pow(%a, %a) is %a, not %a", (double)x[i], (double)y[i], (double)z[i], wanted);
    }
}

/* All pairs of special values; then bases of all magnitudes to exponents that lead to all
 * magnitudes. */
static void powers(void **state)
{
    (void)state;
    float x[BLOCK], y[BLOCK];
    int n = 0;
    for (size_t i = 0; i < 4 * N_SPECIAL * N_SPECIAL; i++) {
        x[n] = (i & 1 ? -1.0f : 1.0f) * special[i / 4 / N_SPECIAL];
        y[n++] = (i & 2 ? -1.0f : 1.0f) * special[i / 4 % N_SPECIAL];
        if (n == BLOCK || i + 1 == 4 * N_SPECIAL * N_SPECIAL) {
            check_powers(x, y, n);
            n = 0;
        }
    }
    struct random random = {1};
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < BLOCK; i++) {
            x[i] = f32_of((uint32_t)random_bits(&random) & 0x7fffffff);
            double target = (double)random_int(&random, -160000, 140000) / 1000;
            y[i] = (float)(target / log2((double)x[i]));
        }
        check_powers(x, y, BLOCK);
    }
}

/* ---- Half precision: every value ------------------------------------------------------------- */

static void narrow_type(const struct function *f, tssa_dtype dtype, int digits, int lowest)
{
    const int64_t n = 65536;
    struct op_run run;
    op_open(&run, f->op, 1, 1);
    uint16_t *x = op_input(&run, 0, dtype, 1, &n)->data;
    for (int64_t i = 0; i < n; i++)
        x[i] = (uint16_t)i;
    op_go(&run);
    const uint16_t *y = run.outputs[0].tensor.data;
    for (int64_t i = 0; i < n; i++) {
        double argument = dtype_load_double(dtype, &x[i]), got = dtype_load_double(dtype, &y[i]);
        double wanted = f->reference(argument);
        uint16_t rounded;
        dtype_store_double(dtype, &rounded, wanted);
        double rounded_wanted = dtype_load_double(dtype, &rounded);
        bool same = isnan(got) ? isnan(wanted) : got == rounded_wanted;
        if (!same && !(ulps_of(got, wanted, digits, lowest) <= 0.501))
            fail_msg("%s(%a) of %s is %a, not %a", f->name, argument, dtype_info(dtype)->ir_name,
                     got, wanted);
    }
    op_close(&run);
}

static void narrow_types(void **state)
{
    (void)state;
    for (size_t f = 0; f < N_FUNCTIONS; f++) {
        if (functions[f].op == IR_OP_COUNT)
            continue;
        narrow_type(&functions[f], TSSA_FLOAT16, 11, -14);
        narrow_type(&functions[f], TSSA_BFLOAT16, 8, -126);
    }
}

/* ---- Every instruction set gives the same bits ----------------------------------------------- */

static uint64_t hash_floats(uint64_t hash, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] != y[i] ? NAN : y[i]; /* any NaN equals any NaN */
    return hash_bytes(y, n * sizeof *y, hash);
}

static uint64_t hash_op(uint64_t hash, enum ir_op_id id, const float *x, int64_t n)
{
    struct op_run run;
    op_begin(&run, id, 0);
    op_add(&run, TSSA_FLOAT, 2, (const int64_t[]){n / 37, 37}, x);
    op_go(&run);
    struct tensor *y = &run.outputs[0].tensor;
    hash = hash_floats(hash, y->data, tensor_count(y));
    op_close(&run);
    return hash;
}

/* Along lines, short and long, and across rows. */
static uint64_t hash_reductions(uint64_t hash, const float *x, int64_t n)
{
    static const enum ir_op_id ops[] = {IR_OP_ReduceSum, IR_OP_ReduceProd, IR_OP_ReduceMax,
                                        IR_OP_ReduceL1, IR_OP_ReduceLogSumExp};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int64_t axis = 0; axis < 3; axis++) {
            const int64_t dims[] = {5, n / 5 / 37, 37};
            struct op_run run;
            op_begin(&run, ops[i], 0);
            op_int(&run, "keepdims", 0);
            op_add(&run, TSSA_FLOAT, 3, dims, x);
            op_add(&run, TSSA_INT64, 1, (const int64_t[]){1}, &axis);
            op_go(&run);
            struct tensor *y = &run.outputs[0].tensor;
            hash = hash_floats(hash, y->data, tensor_count(y));
            op_close(&run);
        }
    return hash;
}

/* Of functions and kernels, over numbers of all kinds. */
static uint64_t hash_all(void)
{
    enum { N = 37 * 100 };
    static const enum ir_op_id ops[] = {
        IR_OP_Sigmoid,    IR_OP_Softplus,   IR_OP_Mish,      IR_OP_Gelu,      IR_OP_Selu,
        IR_OP_Elu,        IR_OP_Celu,       IR_OP_HardSwish, IR_OP_Swish,     IR_OP_Softmax,
        IR_OP_LogSoftmax, IR_OP_Reciprocal, IR_OP_Sqrt,      IR_OP_ReduceSum, IR_OP_ReduceL2,
        IR_OP_ReduceMax,  IR_OP_Round,      IR_OP_Floor,
    };
    float x[N], y[N], powers_of[N];
    uint64_t hash = 0;
    struct random random = {7};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            uint32_t bits = (uint32_t)random_bits(&random);
            x[i] = round == 0 ? f32_of(bits) : ((float)(bits >> 8) - 0x1p+23f) * 0x1p-20f;
            powers_of[i] = (float)(bits >> 24) * 0.25f - 32;
        }
        for (size_t f = 0; f < N_FUNCTIONS; f++) {
            functions[f].apply(x, y, N);
            hash = hash_floats(hash, y, N);
        }
        apply_pow(x, powers_of, y, N);
        hash = hash_floats(hash, y, N);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            hash = hash_op(hash, ops[i], x, N);
        hash = hash_reductions(hash, x, N);
    }
    return hash;
}

/* What this program prints about itself when the environment allows a level at most. */
static uint64_t hash_at(const char *program, const char *level, int expected)
{
    char command[512], line[64] = "";
    snprintf(command, sizeof command, "TSSA_ISA=%s '%s' --hash", level, program);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_int_equal(pclose(pipe), 0);
    char *rest;
    assert_int_equal(strtol(line, &rest, 10), expected);
    return strtoull(rest, NULL, 16);
}

static void same_bits(void **state)
{
    (void)state;
    char program[256];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = 0;
    const char *names[] = {"base", "v2", "v3"};
    uint64_t own = hash_all();
    for (int level = ISA_BASE; level < (int)isa_level(); level++)
        assert_int_equal(hash_at(program, names[level], level), own);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--hash") == 0) {
        printf("%d %llx\n", (int)isa_level(), (unsigned long long)hash_all());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),    cmocka_unit_test(special_values),
        cmocka_unit_test(near_zero), cmocka_unit_test(near_parts),
        cmocka_unit_test(powers),    cmocka_unit_test(narrow_types),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
