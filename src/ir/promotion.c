/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/promotion.h"

#include "ir/infer.h"
#include "ir/scalar.h"

/* What elements of one type are computed in by a row. */
static tssa_dtype alone(const struct ir_op_info *info, tssa_dtype dtype)
{
    if (info->ew->result == EW_WHERE)
        return dtype;
    if (dtype_is_float(dtype))
        return computed_in(dtype);
    return dtype_is_integer(dtype) && scalar_has_float_params(info->ew) ? TSSA_DOUBLE : dtype;
}

/* One operand more. False: it cannot be of this type behind those before. */
static bool add_operand(struct promotion *p, const struct ir_op_info *info, uint32_t index,
                        tssa_dtype dtype)
{
    const enum ew_result result = info->ew->result;
    p->wrong = index;
    if (dtype == TSSA_UNDEFINED)
        return true;
    if (result == EW_WHERE && index == 0)
        return dtype == TSSA_BOOL;
    if (!dtype_in(info->types, dtype))
        return false;
    if (p->operand == TSSA_UNDEFINED && (result != EW_FIRST || index == 0)) {
        p->operand = dtype;
        p->alone = p->compute = alone(info, dtype);
    } else if (dtype != p->operand) {
        p->compute = dtype_is_float(dtype) || dtype_is_float(p->compute) ? TSSA_DOUBLE : TSSA_INT64;
        return result == EW_FIRST;
    }
    return true;
}

/* Is it of the type of the one before, and of the same kind? Then nothing is new. */
static bool is_like_before(const struct ir_op_info *info, const tssa_dtype *operands,
                           uint32_t index)
{
    return index > 0 && operands[index] == operands[index - 1] &&
           (info->ew->result != EW_WHERE || index > 1);
}

static void set_result(struct promotion *p, const struct ir_op_info *info)
{
    p->result = info->ew->result == EW_BOOL ? TSSA_BOOL : p->operand;
}

bool promote_types(const struct ir_op_info *info, uint32_t n, const tssa_dtype *operands,
                   struct promotion *promotion)
{
    *promotion = (struct promotion){.operand = TSSA_UNDEFINED};
    for (uint32_t i = 0; i < n; i++)
        if (!is_like_before(info, operands, i) && !add_operand(promotion, info, i, operands[i]))
            return false;
    set_result(promotion, info);
    return true;
}

bool promote_op(const struct ir_op *op, struct promotion *promotion)
{
    *promotion = (struct promotion){.operand = TSSA_UNDEFINED};
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!add_operand(promotion, op->info, i, infer_dtype(op, i)))
            return false;
    set_result(promotion, op->info);
    return true;
}

bool promotes_nothing(const struct ir_op *op)
{
    struct promotion promotion;
    return promote_op(op, &promotion) && promotion.compute == promotion.operand;
}
