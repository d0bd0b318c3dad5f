/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Where that takes the place of an If must take the elements that the If would. ONNX Runtime puts
 * what the condition takes of each operand beside zeros, and then takes the first where that is not
 * zero: of a -0.0 in the first it makes 0.0, and of the second it takes all as it is.
 */
#include "ir/zero_sign.h"
#include "onnx/hazard.h"

/* Of a Not, ONNX Runtime makes a Where the other way round. */
static const struct ir_value *negate(struct hazard_rewrite *rewrite,
                                     const struct ir_value *condition)
{
    const struct ir_value *const operands[] = {condition, hazard_bool(rewrite, false)};
    return hazard_emit(rewrite, IR_OP_Equal, TSSA_BOOL, 2, operands);
}

/* As large as the result, if it is not. */
static const struct ir_value *expand(struct hazard_rewrite *rewrite, const struct ir_value *value,
                                     tssa_dtype dtype, const struct ir_value *shape)
{
    const struct ir_value *const operands[] = {value, shape};
    return shape ? hazard_emit(rewrite, IR_OP_Expand, dtype, 2, operands) : value;
}

static const struct ir_value *in_front(struct hazard_rewrite *rewrite, const struct ir_value *value,
                                       tssa_dtype dtype)
{
    const struct ir_value *const operands[] = {value, hazard_int(rewrite, 1, 0)};
    return hazard_emit(rewrite, IR_OP_Unsqueeze, dtype, 2, operands);
}

/* What the operands broadcast to. */
static const struct ir_value *result_shape(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_value *const operands[] = {ir_operand(op, 0), ir_operand(op, 1),
                                               ir_operand(op, 2)};
    const struct ir_value *plain =
        hazard_emit(rewrite, IR_OP_Where, op->results[0].type->dtype, 3, operands);
    return hazard_emit(rewrite, IR_OP_Shape, TSSA_INT64, 1, &plain);
}

static bool same_dims(const struct ir_type *a, const struct ir_type *b)
{
    bool same =
        a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank >= 0 && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* Both operands one above the other, and of each pair of elements the 0th or the 1st. */
static void pick(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_value *condition = ir_operand(op, 0), *a = ir_operand(op, 1),
                          *b = ir_operand(op, 2);
    const struct ir_type *type = op->results[0].type;
    tssa_dtype dtype = type->dtype;
    bool fits = same_dims(a->type, type) && same_dims(b->type, type);
    bool single = fits && condition->type->kind == TYPE_TENSOR && condition->type->rank == 0;
    const struct ir_value *shape =
        fits && (single || same_dims(condition->type, type)) ? NULL : result_shape(rewrite, op);
    const struct ir_value *number = hazard_emit(rewrite, IR_OP_Cast, TSSA_INT64, 1, &condition);
    hazard_set_int(rewrite, "to", TSSA_INT64);
    const struct ir_value *const parts[] = {
        in_front(rewrite, expand(rewrite, b, dtype, shape), dtype),
        in_front(rewrite, expand(rewrite, a, dtype, shape), dtype)};
    const struct ir_value *both = hazard_emit(rewrite, IR_OP_Concat, dtype, 2, parts);
    hazard_set_int(rewrite, "axis", 0);
    if (single) {
        const struct ir_value *const operands[] = {both, number};
        hazard_emit(rewrite, IR_OP_Gather, dtype, 2, operands);
        hazard_set_int(rewrite, "axis", 0);
        return;
    }
    const struct ir_value *const operands[] = {
        both, in_front(rewrite, expand(rewrite, number, TSSA_INT64, shape), TSSA_INT64)};
    const struct ir_value *picked = hazard_emit(rewrite, IR_OP_GatherElements, dtype, 2, operands);
    hazard_set_int(rewrite, "axis", 0);
    const struct ir_value *const squeezed[] = {picked, hazard_int(rewrite, 1, 0)};
    hazard_emit(rewrite, IR_OP_Squeeze, dtype, 2, squeezed);
}

static void choose(struct hazard_rewrite *rewrite, const struct ir_value *condition,
                   const struct ir_value *a, const struct ir_value *b)
{
    const struct ir_value *const operands[] = {condition, a, b};
    hazard_emit(rewrite, IR_OP_Where, rewrite->op->results[0].type->dtype, 3, operands);
}

/* Of a condition that a Not of the model's own made: what it made it of. */
static const struct ir_value *before_not(const struct ir_value *condition)
{
    return condition->op && ir_op_is(condition->op, IR_OP_Not) ? ir_operand(condition->op, 0)
                                                               : NULL;
}

void hazard_where_zero_sign(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    const struct ir_value *condition = ir_operand(op, 0), *a = ir_operand(op, 1),
                          *b = ir_operand(op, 2);
    if (!ir_op_is(op, IR_OP_Where) || type->kind != TYPE_TENSOR || !dtype_is_float(type->dtype))
        return;
    if (never_minus_zero(a)) {
        const struct ir_value *inner = before_not(condition);
        if (inner && !never_minus_zero(b))
            choose(rewrite, negate(rewrite, inner), a, b);
    } else if (never_minus_zero(b)) {
        choose(rewrite, negate(rewrite, condition), b, a);
    } else if (type->rank < TSSA_MAX_RANK) { /* an axis more */
        pick(rewrite, op);
    }
}
