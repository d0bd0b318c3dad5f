/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of bytes that are dequantized become constants of floats: what multiplies bytes
 * (multiply_bytes) has taken its own by then, and the others would be dequantized in each run. What
 * reads a part of one, as rows of a table of words, reads the bytes, and dequantizes the part:
 *
 *     Gather(DequantizeLinear(table, s, z), i)   ->   DequantizeLinear(Gather(table, i), s, z)
 *
 * Only in sessions: other runtimes look for these ops (pinned.c).
 *
 *   needs   multiply_bytes, where the session has it; pass->evaluate, or nothing happens
 *   keeps   results' bits
 *   breaks  constants may lose their uses (dead_code)
 */
#include "ir/infer.h"
#include "passes/lower/quantized.h"

static bool is_constant(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !ir_value_constant(ir_operand(op, i)))
            return false;
    return true;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static int64_t known_count(const struct ir_type *type)
{
    int64_t count = 1, dim;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || !i64_mul(count, dim, &count))
            return -1;
    return type->rank < 0 ? -1 : count;
}

/* Does the user read single elements of it, and, as far as anybody knows, fewer than there are? */
static bool reads_part(const struct ir_use *use, const struct ir_op *dequantize)
{
    const struct ir_op *op = use->user;
    const struct ir_value *whole = ir_operand(dequantize, 0);
    const struct tensor *scale = ir_value_constant(ir_operand(dequantize, 1));
    if ((!ir_op_is(op, IR_OP_Gather) && !ir_op_is(op, IR_OP_access)) || use != &op->operands[0] ||
        tensor_count(scale) != 1)
        return false;
    const int64_t part = known_count(op->results[0].type);
    return part < (int64_t)tensor_count(ir_value_constant(whole));
}

static tssa_status *copy_op(struct ir_graph *graph, const struct ir_op *op, struct ir_op **copy)
{
    *copy = ir_op_create(graph, op->info, op->n_operands, op->n_results);
    TRY_ALLOC(*copy);
    (*copy)->version = op->version;
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(*copy, i, ir_operand(op, i));
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!ir_op_set_attr(graph, *copy, &op->attrs[i]))
            return status_out_of_memory();
    return NULL;
}

static tssa_status *dequantize_part(struct pass_context *pass, const struct ir_op *dequantize,
                                    struct ir_op *op)
{
    struct ir_op *part, *after;
    TRY(copy_op(pass->graph, op, &part));
    ir_op_set_operand(part, 0, ir_operand(dequantize, 0));
    TRY(pass_insert(part, op));
    TRY(copy_op(pass->graph, dequantize, &after));
    ir_op_set_operand(after, 0, &part->results[0]);
    return pass_replace(pass, op, after);
}

static tssa_status *dequantize_parts(struct pass_context *pass, struct ir_op *op)
{
    struct ir_use *use = op->results[0].uses;
    while (use) {
        struct ir_use *next = use->next;
        if (reads_part(use, op))
            TRY(dequantize_part(pass, op, use->user));
        use = next;
    }
    return NULL;
}

/* ---- Wholes ---------------------------------------------------------------------------------- */

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct tensor *result = NULL;
    if (!quantized_is_weight(op) || !is_constant(op))
        return NULL;
    TRY(dequantize_parts(pass, op));
    if (!op->results[0].uses)
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
