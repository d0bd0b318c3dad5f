/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized values, as passes of sessions see them. */
#ifndef TSSA_PASSES_LOWER_QUANTIZED_H
#define TSSA_PASSES_LOWER_QUANTIZED_H

#include "passes/pass.h"

/* A DequantizeLinear of bytes that are a constant: weights, which others than fold_constants take
 * care of. */
static inline bool quantized_is_weight(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0);
    const struct tensor *constant =
        ir_op_is(op, IR_OP_DequantizeLinear) && x ? ir_value_constant(x) : NULL;
    return constant && dtype_in(T_I8U8, constant->dtype);
}

#endif
