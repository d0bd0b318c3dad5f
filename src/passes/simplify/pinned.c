/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that stay what and where they are in a file, because the runtimes that read it look for them
 * beside their neighbours and compute both at once: a product between a DequantizeLinear and a
 * QuantizeLinear is one in integers. Where one of them is missing, ONNX Runtime finds no such
 * pattern, or quantises again and rounds differently.
 */
#include "passes/pass.h"

#define MAX_STEPS 8 /* between a QuantizeLinear and its DequantizeLinear */

bool pass_is_for_session(const struct pass_context *pass)
{
    return pass->options && pass->options->target == TSSA_TARGET_SESSION;
}

static bool is_quantizer(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_QuantizeLinear) || ir_op_is(op, IR_OP_DequantizeLinear) ||
           ir_op_is(op, IR_OP_DynamicQuantizeLinear);
}

static bool is_quantized(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && dtype_in(T_QUANTIZED, value->type->dtype);
}

static bool comes_from_quantize(const struct ir_value *value)
{
    for (int i = 0; i < MAX_STEPS && is_quantized(value) && value->op; i++) {
        if (is_quantizer(value->op))
            return true;
        value = ir_operand(value->op, 0);
    }
    return false;
}

static bool goes_to_dequantize(const struct ir_value *value)
{
    for (int i = 0; i < MAX_STEPS && is_quantized(value) && value->uses; i++) {
        if (ir_op_is(value->uses->user, IR_OP_DequantizeLinear))
            return true;
        value = ir_result(value->uses->user, 0);
    }
    return false;
}

bool pass_is_pinned(const struct pass_context *pass, const struct ir_op *op)
{
    if (pass_is_for_session(pass) || op->n_results == 0 || op->n_operands == 0)
        return false;
    return is_quantizer(op) ||
           (comes_from_quantize(ir_operand(op, 0)) && goes_to_dequantize(&op->results[0]));
}
