/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized values, as passes of sessions see them. */
#ifndef TSSA_PASSES_LOWER_QUANTIZED_H
#define TSSA_PASSES_LOWER_QUANTIZED_H

#include "passes/pass.h"

/* A DequantizeLinear of a constant of what is quantized, bytes and narrower numbers among it:
 * weights, which others than fold_constants take care of. */
static inline bool quantized_is_weight(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0);
    const struct tensor *constant =
        ir_op_is(op, IR_OP_DequantizeLinear) && x ? ir_value_constant(x) : NULL;
    return constant && dtype_in(T_QUANTIZED, constant->dtype);
}

#endif
