/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of bytes that are dequantized become constants of floats: what multiplies bytes
 * (multiply_bytes) has taken its own by then, and the others would be dequantized in each run. Only
 * in sessions; where these make no kernels, nothing has multiplied bytes, and no more than
 * MAX_GROWTH is added, as fold_constants does.
 *
 *   needs   multiply_bytes, where the session has it; pass->evaluate, or nothing happens
 *   keeps   results' bits
 *   breaks  constants may lose their uses (dead_code)
 */
#include "ir/infer.h"
#include "passes/lower/quantized.h"

#define MAX_GROWTH ((int64_t)4 << 20)

static bool is_constant(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !ir_value_constant(ir_operand(op, i)))
            return false;
    return true;
}

static bool is_affordable(struct pass_context *pass, size_t elements)
{
    const int64_t more = (int64_t)(elements * (sizeof(float) - 1));
    if (!pass->fusion && pass->graph->folded_growth + more > MAX_GROWTH)
        return false;
    pass->graph->folded_growth += more;
    return true;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct tensor *result = NULL;
    if (!quantized_is_weight(op) || !is_constant(op) || !op->results[0].uses ||
        !is_affordable(pass, tensor_count(ir_value_constant(ir_operand(op, 0)))))
        return NULL;
    TRY(pass->evaluate(pass->evaluate_user, pass->graph, op, &result));
    return result ? pass_replace(pass, op, ir_constant_create(pass->graph, result)) : NULL;
}

tssa_status *pass_dequantize_constants(struct pass_context *pass)
{
    if (!pass->evaluate || !pass_is_for_session(pass))
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
