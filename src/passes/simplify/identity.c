/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes ops that return their first operand unchanged: Identity, and conversions, rearrangements
 * and accesses that convert, rearrange and leave out nothing.
 *
 *   needs   types, known elements
 *   keeps   types, known elements, order; in the body of a Scan or Loop, an Identity of a value
 *           from outside of which less is known than the model says of the result's shape: runtimes
 *           lay results out by it. Moved out of the body (hoist), the op hands what is said to the
 *           value, and goes
 *   breaks  nothing
 */
#include "ir/cost.h"
#include "ir/rebuild.h"
#include "passes/pass.h"

enum condition {
    NEVER,
    ALWAYS,
    SAME_DTYPE,       /* operand and result have one element type */
    SAME_SHAPE,       /* their types are the same, and follow from the operand's alone */
    SAME_KNOWN_SHAPE, /* the same, and operand 1, from which they follow, is known in part */
    UNIT_STEPS,       /* Slice: the same shape, and no step but 1 */
    WHOLE,            /* access: the same shape, and only unit steps along its axes */
    ORDERED,          /* Transpose: the permutation is 0, 1, 2, ... */
    ALONE             /* there is one operand only */
};

static const uint8_t conditions[IR_OP_COUNT] = {
    [IR_OP_Identity] = ALWAYS,
    [IR_OP_Cast] = SAME_DTYPE,
    [IR_OP_CastLike] = SAME_DTYPE,
    [IR_OP_Reshape] = SAME_KNOWN_SHAPE,
    [IR_OP_Expand] = SAME_KNOWN_SHAPE,
    [IR_OP_Tile] = SAME_KNOWN_SHAPE,
    [IR_OP_Squeeze] = SAME_KNOWN_SHAPE,
    [IR_OP_Unsqueeze] = SAME_KNOWN_SHAPE,
    [IR_OP_Flatten] = SAME_SHAPE,
    [IR_OP_Slice] = UNIT_STEPS,
    [IR_OP_Transpose] = ORDERED,
    [IR_OP_Concat] = ALONE,
    [IR_OP_access] = WHOLE,
};

static bool same_dtype(const struct ir_op *op)
{
    const struct ir_type *from = ir_operand(op, 0)->type, *to = op->results[0].type;
    const struct ir_value *like = ir_operand(op, 1); /* of CastLike */
    /* Where inference cannot tell, the model's hint stands in, which is not proof enough. */
    if (like && (like->type->kind != TYPE_TENSOR || like->type->dtype != to->dtype))
        return false;
    return from->kind == TYPE_TENSOR && to->kind == TYPE_TENSOR && from->dtype == to->dtype &&
           from->dtype != TSSA_UNDEFINED;
}

static bool same_shape(const struct ir_op *op)
{
    const struct ir_type *from = ir_operand(op, 0)->type;
    return from == op->results[0].type && from->kind == TYPE_TENSOR && from->rank >= 0;
}

static bool has_unit_steps(const struct ir_op *op)
{
    const struct ir_value *steps = ir_operand(op, 4);
    if (!steps)
        return true;
    for (size_t i = 0; steps->known && i < steps->known->count; i++)
        if (!dim_is(steps->known->elements[i], 1))
            return false;
    return steps->known != NULL;
}

static bool is_ordered(const struct ir_op *op)
{
    size_t n;
    const int64_t *perm = ir_attr_ints(op, "perm", &n);
    const struct ir_type *type = ir_operand(op, 0)->type;
    if (!perm) /* reverses */
        return type->kind == TYPE_TENSOR && (type->rank == 0 || type->rank == 1);
    for (size_t i = 0; i < n; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return true;
}

static bool is_identity(const struct ir_op *op)
{
    const struct ir_value *shape = ir_operand(op, 1);
    switch ((enum condition)conditions[op->info->id]) {
    case ALWAYS:
        return true;
    case SAME_DTYPE:
        return same_dtype(op);
    case SAME_SHAPE:
        return same_shape(op);
    case SAME_KNOWN_SHAPE:
        return same_shape(op) && (!shape || shape->known);
    case UNIT_STEPS:
        return same_shape(op) && has_unit_steps(op);
    case WHOLE:
        return cost_is_view(op);
    case ORDERED:
        return is_ordered(op);
    case ALONE:
        return op->n_operands == 1;
    case NEVER:
        break;
    }
    return false;
}

/* Does the model say a rank, or the size of an axis, that inference does not know? */
static bool says_more(const struct ir_type *said, const struct ir_type *known)
{
    int64_t size;
    bool more = known->rank < 0 && said->rank >= 0;
    for (int i = 0; i < known->rank && known->rank == said->rank && !more; i++)
        more = dim_is_const(said->dims[i], &size) && !dim_is_const(known->dims[i], &size);
    return more;
}

static bool says_shape(const struct ir_op *op, const struct ir_value *from)
{
    const struct ir_type *said = op->results[0].declared;
    const struct ir_op *owner = op->parent->owner;
    const struct ir_block *home = from->op ? from->op->parent : from->block;
    return said && said->kind == TYPE_TENSOR && from->type->kind == TYPE_TENSOR &&
           home != op->parent && owner && ir_op_is_loop(owner) && says_more(said, from->type);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct ir_value *from = ir_operand(op, 0);
    if (!from || op->n_results != 1 || !is_identity(op) || says_shape(op, from))
        return NULL;
    ir_value_replace(&op->results[0], from);
    ir_op_remove(op);
    ((struct pass_context *)context)->changed = true;
    return NULL;
}

tssa_status *pass_identity(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
