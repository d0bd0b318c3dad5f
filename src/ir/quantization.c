/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/quantization.h"

#define T_16 (DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_UINT16))

static bool is_number(const struct ir_value *value, int rank)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR &&
           (type->rank == 0 || (type->rank == 1 && rank > 0 && dim_is(type->dims[0], 1)));
}

/* Is the attribute absent, or float32? */
static bool is_float(const struct ir_op *op, const char *name)
{
    return ir_attr_int(op, name, TSSA_UNDEFINED) == TSSA_UNDEFINED ||
           ir_attr_int(op, name, TSSA_UNDEFINED) == TSSA_FLOAT;
}

bool ir_quantizes_elements(const struct ir_op *op)
{
    const bool to_integers = ir_op_is(op, IR_OP_QuantizeLinear);
    if (op->opaque || (!to_integers && !ir_op_is(op, IR_OP_DequantizeLinear)))
        return false;
    const struct ir_value *x = ir_operand(op, 0), *scale = ir_operand(op, 1),
                          *zero = ir_operand(op, 2);
    const struct ir_type *from = x->type, *to = op->results[0].type;
    const struct ir_type *integers = to_integers ? to : from, *floats = to_integers ? from : to;
    const dtype_mask wide = to_integers ? 0 : DTYPE_BIT(TSSA_INT32);
    return from->kind == TYPE_TENSOR && from->rank >= 0 && floats->dtype == TSSA_FLOAT &&
           dtype_in(T_I8U8 | T_16 | wide, integers->dtype) && scale->type->dtype == TSSA_FLOAT &&
           is_number(scale, from->rank) && ir_attr_int(op, "block_size", 0) == 0 &&
           is_float(op, "precision") &&
           (!zero || (is_number(zero, from->rank) && zero->type->dtype == integers->dtype));
}
