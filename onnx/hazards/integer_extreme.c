/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of one number every runtime makes what the standard says; of several ONNX Runtime compares the
 * lower halves. So an operator that takes the place of as many as there are iterations chooses by
 * comparisons, which are right.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/bounds.h"

static const struct ir_value *choose(struct hazard_rewrite *rewrite, enum ir_op_id compare,
                                     const struct ir_value *a, const struct ir_value *b)
{
    const struct ir_value *const sides[] = {a, b};
    const struct ir_value *first = hazard_emit(rewrite, compare, TSSA_BOOL, 2, sides);
    const struct ir_value *const operands[] = {first, a, b};
    return hazard_emit(rewrite, IR_OP_Where, TSSA_INT64, 3, operands);
}

/* The larger one of two and then of the others; or the smaller. */
static void extreme(struct hazard_rewrite *rewrite, const struct ir_op *op, enum ir_op_id compare)
{
    const struct ir_value *value = ir_operand(op, 0);
    for (uint32_t i = 1; i < op->n_operands; i++)
        value = choose(rewrite, compare, value, ir_operand(op, i));
}

static void clip(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_value *value = ir_operand(op, 0), *low = ir_operand(op, 1),
                          *high = ir_operand(op, 2);
    if (low)
        value = choose(rewrite, IR_OP_Greater, value, low);
    if (high)
        choose(rewrite, IR_OP_Less, value, high);
}

static void sign(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_value *const sides[] = {ir_operand(op, 0), hazard_int(rewrite, 0, 0)};
    const struct ir_value *positive = hazard_emit(rewrite, IR_OP_Greater, TSSA_BOOL, 2, sides);
    const struct ir_value *negative = hazard_emit(rewrite, IR_OP_Less, TSSA_BOOL, 2, sides);
    const struct ir_value *const first[] = {positive, hazard_int(rewrite, 0, 1), sides[1]};
    const struct ir_value *value = hazard_emit(rewrite, IR_OP_Where, TSSA_INT64, 3, first);
    const struct ir_value *const second[] = {negative, hazard_int(rewrite, 0, -1), value};
    hazard_emit(rewrite, IR_OP_Where, TSSA_INT64, 3, second);
}

static bool are_small(const struct ir_op *op)
{
    bool small = true;
    for (uint32_t i = 0; i < op->n_operands && small; i++) {
        struct range range =
            ir_operand(op, i) ? hazard_bounds(ir_operand(op, i)) : (struct range){0, 0};
        small = range.low >= INT32_MIN && range.high <= INT32_MAX;
    }
    return small;
}

void hazard_integer_extreme(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    if (type->kind != TYPE_TENSOR || type->dtype != TSSA_INT64 || are_small(op))
        return;
    if (ir_op_is(op, IR_OP_Max))
        extreme(rewrite, op, IR_OP_Greater);
    else if (ir_op_is(op, IR_OP_Min))
        extreme(rewrite, op, IR_OP_Less);
    else if (ir_op_is(op, IR_OP_Clip))
        clip(rewrite, op);
    else if (ir_op_is(op, IR_OP_Sign))
        sign(rewrite, op);
    else if (ir_op_is(op, IR_OP_Relu))
        choose(rewrite, IR_OP_Greater, ir_operand(op, 0), hazard_int(rewrite, 0, 0));
}
