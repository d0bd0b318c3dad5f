/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise arithmetic of integers against values computed in __int128. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static wide floor_mod(wide a, wide b)
{
    wide r = b ? a % b : 0;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static wide power(wide a, wide b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    wide result = 1;
    for (wide i = 0; i < b; i++)
        result = (wide)(int64_t)(uint64_t)((unsigned_wide)result * (unsigned_wide)a);
    return result;
}

/* Before wrapping. `bits` is the width. */
static wide integer_reference(enum ir_op_id id, int64_t parameter, wide a, wide b, int bits)
{
    switch (id) {
    case IR_OP_Add:
        return a + b;
    case IR_OP_Sub:
        return a - b;
    case IR_OP_Mul:
        return (wide)((unsigned_wide)a * (unsigned_wide)b);
    case IR_OP_Div:
        return b ? a / b : 0;
    case IR_OP_Mod:
        return parameter ? (b ? a % b : 0) : floor_mod(a, b);
    case IR_OP_Pow:
        return power(a, b);
    case IR_OP_Max:
        return a > b ? a : b;
    case IR_OP_Min:
        return a < b ? a : b;
    case IR_OP_PRelu:
        return a < 0 ? a * b : a;
    case IR_OP_BitwiseAnd:
        return a & b;
    case IR_OP_BitwiseOr:
        return a | b;
    case IR_OP_BitwiseXor:
        return a ^ b;
    case IR_OP_BitShift:
        return b >= bits ? 0 : parameter ? a << b : a >> b;
    case IR_OP_Less:
        return a < b;
    case IR_OP_LessOrEqual:
        return a <= b;
    case IR_OP_Greater:
        return a > b;
    case IR_OP_GreaterOrEqual:
        return a >= b;
    case IR_OP_Equal:
        return a == b;
    default:
        fail_msg("no reference");
        return 0;
    }
}

static wide wrap(tssa_dtype dtype, wide value)
{
    int bits = 8 * (int)dtype_info(dtype)->size;
    wide modulus = (wide)1 << bits, r = value % modulus;
    if (r < 0)
        r += modulus;
    bool negative = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED && r >= modulus / 2;
    return negative ? r - modulus : r;
}

static wide load(tssa_dtype dtype, const void *data, int64_t i)
{
    int64_t value =
        dtype_load_int64(dtype, (const char *)data + (size_t)i * dtype_info(dtype)->size);
    return dtype == TSSA_UINT64 ? (wide)(uint64_t)value : value;
}

static void check_integers(enum ir_op_id id, int64_t parameter, tssa_dtype dtype)
{
    struct op_run run;
    struct random random = {99};
    const struct ir_op_info *info = ir_op_info(id);
    const int64_t n = 4096;
    op_open(&run, id, 2, 1);
    if (id == IR_OP_Mod)
        op_int(&run, "fmod", parameter);
    if (id == IR_OP_BitShift)
        op_string(&run, "direction", parameter ? "LEFT" : "RIGHT");
    struct tensor *x = op_random(&run, 0, &random, dtype, 1, &n);
    struct tensor *y = op_random(&run, 1, &random, dtype, 1, &n);
    /* Small numbers and the ends of the range, beside arbitrary ones. */
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            int64_t kind = random_int(&random, 0, 9);
            int bits = 8 * (int)dtype_info(dtype)->size;
            int64_t value =
                kind < 5 ? random_int(&random, -10, 10) : (int64_t)(UINT64_C(1) << (bits - 1));
            if (kind < 6 || id == IR_OP_Pow)
                dtype_store_int64(dtype,
                                  (char *)(k ? y : x)->data + (size_t)i * dtype_info(dtype)->size,
                                  id == IR_OP_Pow && k ? random_int(&random, -3, 20) & 127 : value);
        }
    op_go(&run);
    tssa_dtype out = info->ew->result == EW_BOOL ? TSSA_BOOL : dtype;
    const void *z = op_output(&run, 0, out, 1, &n)->data;
    for (int64_t i = 0; i < n; i++) {
        wide a = load(dtype, x->data, i), b = load(dtype, y->data, i);
        wide wanted = integer_reference(id, parameter, a, b, 8 * (int)dtype_info(dtype)->size);
        wanted = out == TSSA_BOOL ? wanted : wrap(dtype, wanted);
        if (load(out, z, i) != wanted)
            fail_msg("%s %s %lld, %lld is %lld, not %lld", info->name, dtype_info(dtype)->ir_name,
                     (long long)a, (long long)b, (long long)load(out, z, i), (long long)wanted);
    }
    op_close(&run);
}

static void integer_arithmetic(void **state)
{
    (void)state;
    static const tssa_dtype types[] = {TSSA_INT8,  TSSA_INT16,  TSSA_INT32,  TSSA_INT64,
                                       TSSA_UINT8, TSSA_UINT16, TSSA_UINT32, TSSA_UINT64};
    static const enum ir_op_id ops[] = {IR_OP_Add,
                                        IR_OP_Sub,
                                        IR_OP_Mul,
                                        IR_OP_Div,
                                        IR_OP_Mod,
                                        IR_OP_Pow,
                                        IR_OP_Max,
                                        IR_OP_Min,
                                        IR_OP_PRelu,
                                        IR_OP_BitwiseAnd,
                                        IR_OP_BitwiseOr,
                                        IR_OP_BitwiseXor,
                                        IR_OP_BitShift,
                                        IR_OP_Less,
                                        IR_OP_LessOrEqual,
                                        IR_OP_Greater,
                                        IR_OP_GreaterOrEqual,
                                        IR_OP_Equal};
    for (size_t t = 0; t < 8; t++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            if (!dtype_in(ir_op_info(ops[i])->types, types[t]))
                continue;
            check_integers(ops[i], 0, types[t]);
            if (ops[i] == IR_OP_Mod || ops[i] == IR_OP_BitShift)
                check_integers(ops[i], 1, types[t]);
        }
}

static void integers_of_one(void **state)
{
    (void)state;
    static const int64_t x[] = {INT32_MIN, -7, 0, 7, INT32_MAX}, n = 5;
    static const struct {
        enum ir_op_id id;
        int64_t wanted[5];
    } cases[] = {
        {IR_OP_Neg, {INT32_MIN, 7, 0, -7, -INT32_MAX}},
        {IR_OP_Abs, {INT32_MIN, 7, 0, 7, INT32_MAX}},
        {IR_OP_Sign, {-1, -1, 0, 1, 1}},
        {IR_OP_Relu, {0, 0, 0, 7, INT32_MAX}},
        {IR_OP_BitwiseNot, {INT32_MAX, 6, -1, -8, INT32_MIN}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run run;
        op_open(&run, cases[i].id, 1, 1);
        op_input_ints(&run, 0, TSSA_INT32, 1, n, x);
        op_go(&run);
        op_expect_ints(&run, 0, 1, &n, cases[i].wanted);
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_arithmetic),
        cmocka_unit_test(integers_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
