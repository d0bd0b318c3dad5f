/* SPDX-License-Identifier: Apache-2.0 */
/* ir/promotion.h: what the types of operands come to, for each kind of row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/promotion.h"

struct expected {
    enum ir_op_id id;
    tssa_dtype operands[3];
    tssa_dtype alone, compute, result;
};

static void types_go_together(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {IR_OP_Add, {TSSA_FLOAT, TSSA_FLOAT}, TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT},
        {IR_OP_Add, {TSSA_DOUBLE, TSSA_DOUBLE}, TSSA_DOUBLE, TSSA_DOUBLE, TSSA_DOUBLE},
        {IR_OP_Add, {TSSA_FLOAT16, TSSA_FLOAT16}, TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT16},
        {IR_OP_Add, {TSSA_UINT8, TSSA_UINT8}, TSSA_UINT8, TSSA_UINT8, TSSA_UINT8},
        {IR_OP_Less, {TSSA_BFLOAT16, TSSA_BFLOAT16}, TSSA_FLOAT, TSSA_FLOAT, TSSA_BOOL},
        {IR_OP_IsNaN, {TSSA_FLOAT8E5M2}, TSSA_FLOAT, TSSA_FLOAT, TSSA_BOOL},
        {IR_OP_Equal, {TSSA_STRING, TSSA_STRING}, TSSA_STRING, TSSA_STRING, TSSA_BOOL},
        {IR_OP_And, {TSSA_BOOL, TSSA_BOOL}, TSSA_BOOL, TSSA_BOOL, TSSA_BOOL},
        {IR_OP_Shrink, {TSSA_INT32}, TSSA_DOUBLE, TSSA_DOUBLE, TSSA_INT32},
        {IR_OP_Shrink, {TSSA_FLOAT}, TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT},
        {IR_OP_Pow, {TSSA_FLOAT, TSSA_FLOAT}, TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT},
        {IR_OP_Pow, {TSSA_FLOAT, TSSA_INT64}, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT},
        {IR_OP_Pow, {TSSA_INT32, TSSA_FLOAT16}, TSSA_INT32, TSSA_DOUBLE, TSSA_INT32},
        {IR_OP_Pow, {TSSA_INT32, TSSA_UINT8}, TSSA_INT32, TSSA_INT64, TSSA_INT32},
        {IR_OP_Where,
         {TSSA_BOOL, TSSA_FLOAT16, TSSA_FLOAT16},
         TSSA_FLOAT16,
         TSSA_FLOAT16,
         TSSA_FLOAT16},
        /* What is absent, or not known, says nothing. */
        {IR_OP_Clip, {TSSA_INT8, TSSA_UNDEFINED, TSSA_INT8}, TSSA_INT8, TSSA_INT8, TSSA_INT8},
        {IR_OP_Add, {TSSA_UNDEFINED, TSSA_INT64}, TSSA_INT64, TSSA_INT64, TSSA_INT64},
        {IR_OP_Less, {TSSA_UNDEFINED}, TSSA_UNDEFINED, TSSA_UNDEFINED, TSSA_BOOL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct promotion promotion;
        assert_true(promote_types(ir_op_info(rows[i].id), 3, rows[i].operands, &promotion));
        assert_int_equal(promotion.alone, rows[i].alone);
        assert_int_equal(promotion.compute, rows[i].compute);
        assert_int_equal(promotion.result, rows[i].result);
    }
    /* Of a power, operand 1 does not tell the result's type. */
    struct promotion promotion;
    const tssa_dtype power[] = {TSSA_UNDEFINED, TSSA_INT64};
    assert_true(promote_types(ir_op_info(IR_OP_Pow), 2, power, &promotion));
    assert_int_equal(promotion.result, TSSA_UNDEFINED);
}

static void types_do_not(void **state)
{
    (void)state;
    static const struct {
        enum ir_op_id id;
        tssa_dtype operands[3];
        uint32_t wrong;
    } rows[] = {
        {IR_OP_Add, {TSSA_FLOAT, TSSA_INT64}, 1},
        {IR_OP_Add, {TSSA_BOOL, TSSA_FLOAT}, 0},
        {IR_OP_Sqrt, {TSSA_INT32}, 0},
        {IR_OP_Clip, {TSSA_FLOAT, TSSA_UNDEFINED, TSSA_DOUBLE}, 2},
        {IR_OP_Pow, {TSSA_FLOAT, TSSA_BOOL}, 1},
        {IR_OP_Where, {TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT}, 0},
        {IR_OP_Where, {TSSA_BOOL, TSSA_FLOAT, TSSA_INT64}, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct promotion promotion;
        assert_false(promote_types(ir_op_info(rows[i].id), 3, rows[i].operands, &promotion));
        assert_int_equal(promotion.wrong, rows[i].wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_go_together),
        cmocka_unit_test(types_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
