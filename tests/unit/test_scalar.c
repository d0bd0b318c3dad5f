/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of element-wise rows, which code generators read: well-formed, and what the kernels
 * compute. They are run here by an interpreter of a few lines in double and in INT64.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/ew_table.h"
#include "ir/reduction.h"
#include "ir/scalar.h"
#include "ir/scalar/f32_fmod.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_inverse.h"
#include "ir/scalar/f64_log.h"
#include "ir/scalar/f64_pow.h"
#include "ir/scalar/f64_trig.h"

/* ---- Well-formed ----------------------------------------------------------------------------- */

/* What is on the stack: a truth value, or an element. In BOOL rows operands may be either. */
enum sort { ELEMENT, FLAG, OPERAND };

#define BAD(info, code, why)                                                                       \
    fail_msg("%s: %s at code %d, %s", (info)->name, why, (int)((code) - (info)->ew->program),      \
             scalar_info((code)->id)->name)

static void check_index(const struct ir_op_info *info, const struct scalar_code *code)
{
    int count = 0;
    while (info->ew->params[count].name)
        count++;
    if ((code->id == SCALAR_P || code->id == SCALAR_WHEN) && code->index >= count)
        BAD(info, code, "no such parameter");
    if (code->id >= SCALAR_X && code->id <= SCALAR_Z && info->max_operands <= code->id - SCALAR_X)
        BAD(info, code, "no such operand");
    /* An operand that may be absent is asked for by its own name. */
    if (code->id == SCALAR_OPT && code[-2].id != SCALAR_X + code->index)
        BAD(info, code, "another operand");
}

static enum sort sort_of(const struct ir_op_info *info, const struct scalar_code *code,
                         const enum sort *in)
{
    const struct scalar_info *scalar = scalar_info(code->id);
    enum sort wanted = scalar->kind == SCALAR_KIND_TRUTH ? FLAG : ELEMENT;
    if (scalar->kind == SCALAR_KIND_MIXED) {
        bool selects = code->id == SCALAR_SEL;
        if (scalar->operands == 0)
            return OPERAND;
        if (selects && in[0] == ELEMENT)
            BAD(info, code, "no truth value");
        if (in[selects] != in[selects + 1] && in[selects] != OPERAND && in[selects + 1] != OPERAND)
            BAD(info, code, "two sorts");
        return in[selects];
    }
    for (int i = 0; i < scalar->operands; i++)
        if (in[i] != wanted && in[i] != OPERAND)
            BAD(info, code, "the wrong sort of operand");
    return scalar->kind == SCALAR_KIND_VALUE ? ELEMENT : FLAG;
}

static enum sort check_program(const struct ir_op_info *info, bool *used)
{
    enum sort stack[SCALAR_MAX_STACK];
    int n = 0;
    const struct scalar_code *code = info->ew->program;
    for (; code->id != SCALAR_END; code++) {
        check_index(info, code);
        used[code->id] = true;
        n -= scalar_info(code->id)->operands;
        if (n < 0 || n == SCALAR_MAX_STACK)
            BAD(info, code, "the stack does not hold that");
        stack[n] = sort_of(info, code, stack + n);
        n++;
    }
    assert_int_equal(n, 1);
    assert_true(code - info->ew->program < SCALAR_MAX_CODES);
    return stack[0];
}

/* Programs of reductions are run in test_reduction.c. */
static void note_used(const struct scalar_code *code, bool *used)
{
    for (; code->id != SCALAR_END; code++)
        used[code->id] = true;
}

static void rows_are_programs(void **state)
{
    (void)state;
    bool used[SCALAR_COUNT_OF_IDS] = {[SCALAR_END] = true};
    int rows = 0;
    for (int id = 0; id < IR_OP_COUNT; id++) {
        const struct ir_op_info *info = ir_op_info((enum ir_op_id)id);
        if (!info->ew)
            continue;
        rows++;
        enum sort sort = check_program(info, used);
        bool truth = info->ew->result == EW_BOOL || info->types == T_BOOL;
        if (sort != OPERAND && (sort == FLAG) != truth)
            fail_msg("%s: the wrong sort of result", info->name);
    }
    assert_int_equal(rows, EW_COUNT);
    for (int row = 0; row < REDUCTION_ROWS; row++) {
        const struct reduction_info *info = &reduction_table[row];
        note_used(info->identity, used);
        note_used(info->before, used);
        note_used(info->after, used);
    }
    for (int i = 0; i < SCALAR_COUNT_OF_IDS; i++)
        if (!used[i])
            fail_msg("no row uses %s", scalar_info((enum scalar_id)i)->name);
}

/* ---- What kernels compute -------------------------------------------------------------------- */

/* A number of either type, or a truth value (in i). */
union number {
    double d;
    int64_t i;
};

struct machine {
    bool floats;
    const double *params;
    union number in[3];
    bool present[3];
};

static double mod_double(double a, double b)
{
    double r = fmod(a, b);
    if (r == 0)
        return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static bool run_double(enum scalar_id id, const union number *in, union number *out)
{
    double a = in[0].d, b = in[1].d;
    switch (id) {
#define CASE(ID, value)                                                                            \
    case SCALAR_##ID:                                                                              \
        out->d = (value);                                                                          \
        return true;
        CASE(LOWEST, -INFINITY)
        CASE(HIGHEST, INFINITY)
        CASE(ADD, a + b)
        CASE(SUB, a - b)
        CASE(MUL, a * b)
        CASE(DIV, a / b)
        CASE(MOD, mod_double(a, b))
        CASE(FMOD, fmod(a, b))
        CASE(POW, f64_pow(a, b))
        CASE(MIN, isnan(b) || a > b ? b : a)
        CASE(MAX, isnan(b) || a < b ? b : a)
        CASE(NEG, -a)
        CASE(ABS, fabs(a))
        CASE(SIGN, a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a)
        CASE(FLOOR, floor(a))
        CASE(CEIL, ceil(a))
        CASE(ROUND, nearbyint(a))
        CASE(SQRT, sqrt(a))
        CASE(EXP, f64_exp(a))
        CASE(EXPM1, f64_expm1(a))
        CASE(LOG, f64_log(a))
        CASE(LOG1P, f64_log1p(a))
        CASE(ERF, f64_erf(a))
        CASE(SIN, f64_sin(a))
        CASE(COS, f64_cos(a))
        CASE(TAN, f64_tan(a))
        CASE(ASIN, f64_asin(a))
        CASE(ACOS, f64_acos(a))
        CASE(ATAN, f64_atan(a))
        CASE(SINH, f64_sinh(a))
        CASE(COSH, f64_cosh(a))
        CASE(TANH, f64_tanh(a))
        CASE(ASINH, f64_asinh(a))
        CASE(ACOSH, f64_acosh(a))
        CASE(ATANH, f64_atanh(a))
        CASE(SIGMOID, f64_sigmoid(a))
#undef CASE
#define TEST(ID, value)                                                                            \
    case SCALAR_##ID:                                                                              \
        out->i = (value);                                                                          \
        return true;
        TEST(LT, a < b)
        TEST(LE, a <= b)
        TEST(GT, a > b)
        TEST(GE, a >= b)
        TEST(EQ, a == b)
        TEST(ISNAN, isnan(a) != 0)
    default:
        return false;
    }
}

/* Wrapped around. */
static int64_t wrapped(uint64_t bits)
{
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t remainder_of(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? wrapped(0 - (uint64_t)a) : a / b;
}

static int64_t power(int64_t a, int64_t b)
{
    uint64_t result = 1, square = (uint64_t)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b; b >>= 1, square *= square)
        result *= b & 1 ? square : 1;
    return wrapped(result);
}

static bool run_int(enum scalar_id id, const union number *in, union number *out)
{
    int64_t a = in[0].i, b = in[1].i, r = remainder_of(a, b);
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (id) {
        TEST(LOWEST, INT64_MIN)
        TEST(HIGHEST, INT64_MAX)
        TEST(ADD, wrapped(x + y))
        TEST(SUB, wrapped(x - y))
        TEST(MUL, wrapped(x * y))
        TEST(DIV, quotient(a, b))
        TEST(MOD, r != 0 && (r < 0) != (b < 0) ? r + b : r)
        TEST(FMOD, r)
        TEST(POW, power(a, b))
        TEST(MIN, a < b ? a : b)
        TEST(MAX, a > b ? a : b)
        TEST(NEG, wrapped(0 - x))
        TEST(ABS, a < 0 ? wrapped(0 - x) : a)
        TEST(SIGN, (a > 0) - (a < 0))
        TEST(LT, a < b)
        TEST(LE, a <= b)
        TEST(GT, a > b)
        TEST(GE, a >= b)
        TEST(EQ, a == b)
        TEST(AND, a && b)
        TEST(OR, a || b)
        TEST(BAND, a & b)
        TEST(BOR, a | b)
        TEST(BXOR, a ^ b)
        TEST(BNOT, ~a)
#undef TEST
    default:
        return false;
    }
}

/*
 * false: it holds a code that is not run here (functions, whose definition is not the C library's).
 */
static bool run_program(const struct machine *m, const struct scalar_code *code,
                        union number *result)
{
    union number stack[SCALAR_MAX_STACK] = {{0}};
    for (int n = 0; code->id != SCALAR_END; code++, n++) {
        n -= scalar_info(code->id)->operands;
        union number *in = stack + n, out;
        if (code->id >= SCALAR_X && code->id <= SCALAR_Z)
            out = m->in[code->id - SCALAR_X];
        else if (code->id == SCALAR_OPT)
            out = in[m->present[code->index] ? 0 : 1];
        else if (code->id == SCALAR_WHEN)
            out = in[m->params[code->index] != 0 ? 0 : 1];
        else if (code->id == SCALAR_LAST)
            out = in[0];
        else if (code->id == SCALAR_SEL)
            out = in[in[0].i ? 1 : 2];
        else if (code->id == SCALAR_AND || code->id == SCALAR_OR)
            run_int(code->id, in, &out);
        else if (code->id == SCALAR_COUNT)
            out.d = 2;
        else if (code->id == SCALAR_P || code->id == SCALAR_K) {
            double number = code->id == SCALAR_P ? m->params[code->index] : code->number;
            if (m->floats)
                out.d = number;
            else
                out.i = (int64_t)number;
        } else if (!(m->floats ? run_double : run_int)(code->id, in, &out))
            return false;
        stack[n] = out;
    }
    *result = stack[0];
    return true;
}

static const double doubles[] = {0,   -0.0,     1,         -1,  2.5,   -3.5,
                                 0.5, INFINITY, -INFINITY, NAN, 1e300, -7};
static const int64_t integers[] = {0, 1, -1, 2, 7, -7, 3, INT64_MAX, INT64_MIN, -12, 62, 64};

enum { COUNT = sizeof integers / sizeof *integers, PAIRS = COUNT * COUNT };

/* Attributes of either choice, and the program's parameters with them. */
static void set_params(struct op_run *run, const struct ew_info *ew, struct random *random,
                       double *params)
{
    for (int i = 0; ew->params[i].name; i++) {
        bool second = random_bits(random) & 1;
        if (ew->params[i].kind == EW_PARAM_INT)
            op_int(run, ew->params[i].name, second);
        else if (ew->params[i].kind != EW_PARAM_FLOAT)
            op_string(run, ew->params[i].name, second ? ew->params[i].second : ew->params[i].first);
    }
    tssa_status *status = scalar_params(run->op, params);
    assert_null(status);
}

/* All pairs of the numbers; a third operand is the first one turned around. */
static union number sample(bool floats, uint32_t operand, int64_t i)
{
    union number number;
    int64_t at = operand == 0 ? i % COUNT : operand == 1 ? i / COUNT : COUNT - 1 - i % COUNT;
    if (floats)
        number.d = doubles[at];
    else
        number.i = integers[at];
    return number;
}

static bool same(bool floats, const struct tensor *y, int64_t i, union number wanted)
{
    if (y->dtype == TSSA_BOOL)
        return ((const uint8_t *)y->data)[i] == (wanted.i != 0);
    union number got = ((const union number *)y->data)[i];
    return got.i == wanted.i || (floats && isnan(got.d) && isnan(wanted.d));
}

/* false: the row has functions, of integers. */
static bool compare_row(const struct ir_op_info *info, bool floats, struct random *random)
{
    const int64_t n = PAIRS;
    uint32_t operands = info->max_operands == IR_VARIADIC ? 2 : info->max_operands;
    uint32_t given = info->min_operands +
                     (uint32_t)random_int(random, 0, 9) % (operands - info->min_operands + 1);
    bool folds = info->max_operands == IR_VARIADIC;
    double params[EW_MAX_PARAMS] = {0};
    struct op_run run;
    op_open(&run, info->id, folds ? operands : given, 1);
    set_params(&run, info->ew, random, params);
    struct machine machine = {.floats = floats, .params = params};
    for (uint32_t k = 0; k < run.n_inputs; k++) {
        union number *data = op_input(&run, k, floats ? TSSA_DOUBLE : TSSA_INT64, 1, &n)->data;
        machine.present[k] = true;
        for (int64_t i = 0; i < n; i++)
            data[i] = sample(floats, k, i);
    }
    op_go(&run);
    const struct tensor *y = &run.outputs[0].tensor;
    union number wanted;
    bool all = true;
    for (int64_t i = 0; i < n && all; i++) {
        for (uint32_t k = 0; k < run.n_inputs; k++)
            machine.in[k] = sample(floats, k, i);
        all = run_program(&machine, info->ew->program, &wanted);
        if (all && !same(floats, y, i, wanted))
            fail_msg("%s of %s, element %d: the kernel does not compute what the program says",
                     info->name, floats ? "double" : "int64", (int)i);
    }
    op_close(&run);
    return all;
}

static void kernels_compute_programs(void **state)
{
    (void)state;
    struct random random = {11};
    int compared[2] = {0};
    for (int id = 0; id < IR_OP_COUNT; id++)
        for (int floats = 0; floats < 2; floats++) {
            const struct ir_op_info *info = ir_op_info((enum ir_op_id)id);
            if (!info->ew || info->ew->result == EW_WHERE ||
                !dtype_in(info->types, floats ? TSSA_DOUBLE : TSSA_INT64) ||
                (!floats && scalar_has_float_params(info->ew)))
                continue;
            for (int round = 0; round < 6; round++) {
                bool all = compare_row(info, floats, &random);
                if (floats && !all)
                    fail_msg("%s has a function that this test does not", info->name);
                compared[floats] += all && round == 0;
            }
        }
    assert_true(compared[0] >= 20 && compared[1] >= 30);
}

/* ---- fmod ------------------------------------------------------------------------------------ */

static void expect_fmod(float a, float b)
{
    const float ours = f32_fmod(a, b), theirs = fmodf(a, b);
    if (isnan(theirs) ? !isnan(ours) : f32_bits(ours) != f32_bits(theirs))
        fail_msg("fmod(%a, %a) is %a, not %a", (double)a, (double)b, (double)ours, (double)theirs);
}

/* Of any bits; of numbers of similar size; and of what lies beside a multiple. */
static void test_fmod(void **state)
{
    struct random random = {5};
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = random_bits(&random);
        const float a = f32_of((uint32_t)bits), b = f32_of((uint32_t)(bits >> 32));
        const float near = f32_of((f32_bits(b) & 0x807fffff) | (f32_bits(a) & 0x7f800000));
        const float small = ldexpf(near, (int)random_int(&random, -30, 3));
        const float multiple = small * (float)random_int(&random, 1, 1 << 24);
        expect_fmod(a, b);
        expect_fmod(a, near);
        expect_fmod(a, small);
        expect_fmod(multiple, small);
        expect_fmod(nextafterf(multiple, 0), small);
        expect_fmod(nextafterf(multiple, INFINITY), small);
    }
    const float special[] = {0, -0.0F, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149F, 0x1.fffffep127F};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            expect_fmod(special[i], special[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fmod),
        cmocka_unit_test(rows_are_programs),
        cmocka_unit_test(kernels_compute_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
