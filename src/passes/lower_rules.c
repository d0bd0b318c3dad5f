/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns accesses and assigns into ONNX's operators, the cheapest that say the same: one Gather, Slice,
 * Transpose, ... for a step of a read; Concat, Where or ScatterND for a write.
 *
 *   needs   types, known elements
 *   keeps   types; results' bits
 *   breaks  nothing; shape arithmetic that it makes may be folded, constants may be there twice
 *
 * Afterwards no access or assign is left, but where the rank of the base is unknown and its rule asks
 * for it.
 */
#include "passes/lower.h"

static bool is_read(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access);
}

/* The same sizes, under the symbols that other types already use. */
static void take_over(struct ir_value *old, struct ir_value *new)
{
    if (old->type->kind == TYPE_TENSOR && old->type->rank >= 0)
        new->type = old->type;
    ir_value_replace(old, new);
    if (!new->name) {
        new->name = old->name;
        old->name = NULL;
    }
}

static tssa_status *simplified(const struct ir_op *op, const struct rule **rule)
{
    const struct rule *own = rule_of(op);
    TRY(rule_simplify(op->parent->graph, ir_operand(op, 0)->type, own, rule));
    if (!*rule)
        *rule = own;
    return NULL;
}

static tssa_status *lower(struct pass_context *pass, struct region_space *space, struct ir_op *op)
{
    struct lowering l = {.pass = pass, .graph = pass->graph, .space = space, .op = op};
    struct ir_value *params[IR_VARIADIC], *x = ir_operand(op, 0), *y;
    const struct rule *rule;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(simplified(op, &rule));
    y = is_read(op) ? lower_access(&l, x, rule, params)
                    : lower_assign(&l, x, ir_operand(op, 1), rule, params);
    if (l.status)
        return l.status;
    if (!y)
        return pass_remark(pass, TSSA_REMARK_MISSED, op,
                           "cannot be said in ONNX: the rank of its operand is not known");
    take_over(&op->results[0], y);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

struct visitor {
    struct pass_context *pass;
    struct region_space space;
};

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct visitor *visitor = context;
    if (!is_read(op) && !ir_op_is(op, IR_OP_assign))
        return NULL;
    return lower(visitor->pass, &visitor->space, op);
}

tssa_status *pass_lower_rules(struct pass_context *pass)
{
    struct visitor visitor = {.pass = pass};
    region_space_init(&visitor.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &visitor);
    region_space_free(&visitor.space);
    return status;
}
