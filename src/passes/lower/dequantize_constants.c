/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that are dequantized become constants of floats: what multiplies bytes (multiply_bytes)
 * has taken its own by then, and the others would be dequantized in each run, into as much memory.
 * What reads a part of one, as rows of a table of words, reads the bytes, and dequantizes the part:
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

/* A DequantizeLinear of a constant, with constant scales and zero points. */
static bool is_weight(const struct ir_op *op)
{
    bool constant = quantized_is_weight(op);
    for (uint32_t i = 0; constant && i < op->n_operands; i++)
        constant = !ir_operand(op, i) || ir_value_constant(ir_operand(op, i));
    return constant;
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

/* The DequantizeLinear of which the op reads single elements, and, as far as anybody knows, fewer
 * than there are; NULL: there is none. */
static const struct ir_op *part_of(const struct ir_op *op)
{
    const struct ir_value *whole = ir_operand(op, 0);
    const struct ir_op *dequantize = whole ? whole->op : NULL;
    if ((!ir_op_is(op, IR_OP_Gather) && !ir_op_is(op, IR_OP_access)) || !dequantize ||
        !is_weight(dequantize) || ir_attr_int(dequantize, "block_size", 0) != 0 ||
        tensor_count(ir_value_constant(ir_operand(dequantize, 1))) != 1)
        return NULL;
    const size_t all = tensor_count(ir_value_constant(ir_operand(dequantize, 0)));
    return known_count(op->results[0].type) < (int64_t)all ? dequantize : NULL;
}

/* The same op of another first operand. */
static tssa_status *make_of(struct ir_graph *graph, const struct ir_op *op, struct ir_value *value,
                            struct ir_op **made)
{
    *made = ir_op_create(graph, op->info, op->n_operands, 1);
    TRY_ALLOC(*made);
    (*made)->version = op->version;
    ir_op_set_operand(*made, 0, value);
    for (uint32_t i = 1; i < op->n_operands; i++)
        ir_op_set_operand(*made, i, ir_operand(op, i));
    return ir_op_copy_attrs(graph, *made, op) ? NULL : status_out_of_memory();
}

static tssa_status *visit_part(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    const struct ir_op *dequantize = part_of(op);
    struct ir_op *part, *after;
    if (!dequantize)
        return NULL;
    TRY(make_of(pass->graph, op, ir_operand(dequantize, 0), &part));
    TRY(pass_insert(part, op));
    TRY(make_of(pass->graph, dequantize, &part->results[0], &after));
    return pass_replace(pass, op, after);
}

/* ---- Wholes ---------------------------------------------------------------------------------- */

static tssa_status *visit_whole(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct tensor *result = NULL;
    if (!is_weight(op) || !op->results[0].uses)
        return NULL;
    TRY(pass->evaluate(pass->evaluate_user, pass->graph, op, &result));
    return result ? pass_replace(pass, op, ir_constant_create(pass->graph, result)) : NULL;
}

tssa_status *pass_dequantize_constants(struct pass_context *pass)
{
    if (!pass->evaluate || !pass_is_for_session(pass))
        return NULL;
    TRY(ir_block_walk(pass->graph->body, visit_part, pass));
    return ir_block_walk(pass->graph->body, visit_whole, pass);
}
