/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of ir/reduction.def as data, which code generators read: the programs and the operation
 * that combines give the bits of the CPU kernels' loops, in each of the types that these have. They
 * are run here by an interpreter of a few lines.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/reduction.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_log.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_log.h"
#include "kernels/cpu/lib/reduce.h"

/* A number of one of the types: floats in d, integers (modulo 2^64) and truth values in i. */
struct number {
    double d;
    uint64_t i;
};

/* What the leaves are. */
struct leaves {
    struct number x, a, s;
    int64_t count;
};

static bool is_float(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT || dtype == TSSA_DOUBLE;
}

/* Of the type: an operation of doubles, rounded again, is that of floats; that of 64 bits, cut off,
 * that of 32. */
static struct number of_type(tssa_dtype dtype, struct number n)
{
    if (dtype == TSSA_FLOAT)
        n.d = (double)(float)n.d;
    if (dtype == TSSA_INT32)
        n.i = (uint64_t)(int64_t)(int32_t)(uint32_t)n.i;
    return n;
}

static struct number whole(tssa_dtype dtype, double value)
{
    return of_type(dtype, (struct number){value, (uint64_t)(int64_t)value});
}

static struct number limit(tssa_dtype dtype, bool highest)
{
    struct number n = {highest ? INFINITY : -INFINITY, 0};
    if (dtype == TSSA_UINT64)
        n.i = highest ? UINT64_MAX : 0;
    else if (dtype == TSSA_INT32)
        n.i = (uint64_t)(highest ? (int64_t)INT32_MAX : (int64_t)INT32_MIN);
    else
        n.i = (uint64_t)(highest ? INT64_MAX : INT64_MIN);
    return n;
}

static bool less(tssa_dtype dtype, struct number a, struct number b)
{
    if (is_float(dtype))
        return a.d < b.d;
    return dtype == TSSA_UINT64 ? a.i < b.i : (int64_t)a.i < (int64_t)b.i;
}

static struct number quotient(tssa_dtype dtype, struct number a, struct number b)
{
    struct number n = {a.d / b.d, 0};
    if (dtype == TSSA_UINT64)
        n.i = b.i ? a.i / b.i : 0;
    else if (!is_float(dtype))
        n.i = b.i == 0 ? 0 : b.i == UINT64_MAX ? 0 - a.i : (uint64_t)((int64_t)a.i / (int64_t)b.i);
    return n;
}

/* One code; the stack's top is at in. */
static struct number step(tssa_dtype dtype, enum scalar_id id, const struct number *in)
{
    struct number a = in[0], b = in[1];
    bool narrow = dtype == TSSA_FLOAT;
    switch (id) {
    case SCALAR_ADD:
        return (struct number){a.d + b.d, a.i + b.i};
    case SCALAR_SUB:
        return (struct number){a.d - b.d, a.i - b.i};
    case SCALAR_MUL:
        return (struct number){a.d * b.d, a.i * b.i};
    case SCALAR_DIV:
        return quotient(dtype, a, b);
    case SCALAR_MAX:
        return isnan(b.d) || less(dtype, a, b) ? b : a;
    case SCALAR_MIN:
        return isnan(b.d) || less(dtype, b, a) ? b : a;
    case SCALAR_ABS:
        return (struct number){fabs(a.d), dtype != TSSA_UINT64 && (int64_t)a.i < 0 ? 0 - a.i : a.i};
    case SCALAR_SQRT:
        return (struct number){sqrt(a.d), 0};
    case SCALAR_EXP:
        return (struct number){narrow ? (double)f32_exp((float)a.d) : f64_exp(a.d), 0};
    case SCALAR_LOG:
        return (struct number){narrow ? (double)f32_log((float)a.d) : f64_log(a.d), 0};
    case SCALAR_LT:
        return (struct number){0, less(dtype, a, b)};
    case SCALAR_SEL:
        return a.i ? in[1] : in[2];
    default:
        fail_msg("%s is not run by this test", scalar_info(id)->name);
        return a;
    }
}

static struct number run(tssa_dtype dtype, const struct scalar_code *code,
                         const struct leaves *leaves)
{
    struct number stack[SCALAR_MAX_STACK + 2] = {{0}};
    int n = 0;
    for (; code->id != SCALAR_END; code++, n++) {
        struct number *in = stack + (n -= scalar_info(code->id)->operands);
        assert_in_range(n, 0, SCALAR_MAX_STACK - 1);
        switch (code->id) {
        case SCALAR_X:
            *in = leaves->x;
            break;
        case SCALAR_A:
            *in = leaves->a;
            break;
        case SCALAR_S:
            *in = leaves->s;
            break;
        case SCALAR_COUNT:
            *in = whole(dtype, (double)leaves->count);
            break;
        case SCALAR_K:
            *in = whole(dtype, code->number);
            break;
        case SCALAR_LOWEST:
        case SCALAR_HIGHEST:
            *in = limit(dtype, code->id == SCALAR_HIGHEST);
            break;
        default:
            *in = of_type(dtype, step(dtype, code->id, in));
        }
    }
    assert_int_equal(n, 1);
    return stack[0];
}

/* ---- Against the loops ----------------------------------------------------------------------- */

#define SAMPLES 12

static const double floats[SAMPLES] = {0,    -0.0, 1,        -1,        2.5, -3.25,
                                       1e-3, 7,    INFINITY, -INFINITY, NAN, 1e30};
static const int64_t integers[SAMPLES] = {
    0, 1, -1, 2, 7, -7, 3, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1000000007};

static struct number sample(tssa_dtype dtype, int i)
{
    return of_type(dtype, (struct number){is_float(dtype) ? floats[i] : 0, (uint64_t)integers[i]});
}

/* As an element in memory, and back. */
static void store(tssa_dtype dtype, struct number n, void *to)
{
    float narrow = (float)n.d;
    int32_t half = (int32_t)(uint32_t)n.i;
    if (dtype == TSSA_FLOAT)
        memcpy(to, &narrow, sizeof narrow);
    else if (dtype == TSSA_INT32)
        memcpy(to, &half, sizeof half);
    else if (dtype == TSSA_DOUBLE)
        memcpy(to, &n.d, sizeof n.d);
    else
        memcpy(to, &n.i, sizeof n.i);
}

static void expect_same(tssa_dtype dtype, const void *got, struct number wanted,
                        const struct reduction_info *row, const char *what)
{
    char bytes[8];
    float narrow;
    double number = 0;
    store(dtype, wanted, bytes);
    if (dtype == TSSA_FLOAT) {
        memcpy(&narrow, got, sizeof narrow);
        number = (double)narrow;
    } else if (dtype == TSSA_DOUBLE) {
        memcpy(&number, got, sizeof number);
    }
    bool same = memcmp(got, bytes, tssa_dtype_size(dtype)) == 0 ||
                (is_float(dtype) && isnan(number) && isnan(wanted.d));
    if (!same)
        fail_msg("%s of %s, %s: the program gives other bits than the loops", row->name,
                 tssa_dtype_name(dtype), what);
}

static void check_pair(const struct reduction_info *row, const struct reduce_loops *loops,
                       tssa_dtype dtype, int i, int k)
{
    _Alignas(8) char a[8], b[8], shift[8];
    struct leaves leaves = {sample(dtype, k), sample(dtype, i), sample(dtype, k), 3};
    const void *s = shift;
    struct number in[2] = {leaves.a, leaves.x};
    if (row->shift == REDUCTION_SHIFT_NONE) {
        s = NULL;
        leaves.s = whole(dtype, 0);
    }
    store(dtype, leaves.s, shift);
    loops->fill(a, 1);
    expect_same(dtype, a, run(dtype, row->identity, &leaves), row, "identity");
    store(dtype, leaves.a, a);
    store(dtype, leaves.x, b);
    loops->join(a, b, 1);
    expect_same(dtype, a, of_type(dtype, step(dtype, row->combine, in)), row, "combine");
    store(dtype, leaves.a, a);
    loops->finish(a, 1, leaves.count, s);
    expect_same(dtype, a, run(dtype, row->after, &leaves), row, "after");
    store(dtype, leaves.a, a);
    leaves.s = row->shift == REDUCTION_SHIFT_NONE ? leaves.s : sample(dtype, i);
    store(dtype, leaves.s, shift);
    in[1] = run(dtype, row->before, &leaves);
    loops->rows(a, b, 1, 1, 1, s);
    expect_same(dtype, a, of_type(dtype, step(dtype, row->combine, in)), row, "before");
}

static void programs_are_loops(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_INT32, TSSA_INT64,
                                        TSSA_UINT64};
    (void)state;
    for (int row = 0; row < REDUCTION_ROWS; row++)
        for (int d = 0; d < 5; d++) {
            const struct reduction_info *info = &reduction_table[row];
            assert_int_equal(info->row, row);
            /* Other types have loops that nothing asks for. */
            if (reduction_type(info->row, dtypes[d]) != dtypes[d])
                continue;
            for (int i = 0; i < SAMPLES * SAMPLES; i++)
                check_pair(info, reduce_loops_of(info->row, dtypes[d]), dtypes[d], i / SAMPLES,
                           i % SAMPLES);
        }
}

static void types_are_computed_in(void **state)
{
    (void)state;
    assert_int_equal(reduction_type(REDUCTION_Sum, TSSA_FLOAT16), TSSA_FLOAT);
    assert_int_equal(reduction_type(REDUCTION_Sum, TSSA_INT8), TSSA_INT64);
    assert_int_equal(reduction_type(REDUCTION_Sum, TSSA_INT32), TSSA_INT32);
    assert_int_equal(reduction_type(REDUCTION_Mean, TSSA_INT32), TSSA_INT64);
    assert_int_equal(reduction_type(REDUCTION_L2, TSSA_INT32), TSSA_DOUBLE);
    assert_int_equal(reduction_table[REDUCTION_LogSumExp].shift, REDUCTION_Max);
    /* An operator has its row. */
    assert_ptr_equal(ir_op_info(IR_OP_ReduceL2)->reduction, &reduction_table[REDUCTION_L2]);
    assert_null(ir_op_info(IR_OP_ArgMax)->reduction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_loops),
        cmocka_unit_test(types_are_computed_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
